// What a run leaves of its spans at mean rates: how much they took, how audits went, and each transfer's interval.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"

namespace netsim {

struct MeanRateResults {
    bool are_taken = false;
    std::uint64_t num_spans = 0;       // taken
    std::uint64_t num_packets = 0;     // data packets moved
    std::uint64_t num_events = 0;      // that they stand for: arrivals of data and acknowledgements
    std::uint64_t num_audits = 0;      // of spans, those included that only served to calibrate half-widths
    std::uint64_t num_predicted = 0;   // counts of packets in audits, one a queue pair
    std::uint64_t num_inside = 0;      // of them, in their interval
    std::vector<Picoseconds> low_ps;   // by transfer: when its dependencies, then it, may be done at the earliest
    std::vector<Picoseconds> high_ps;  // and at the latest
    std::vector<bool> passed_port;     // by port: its largest queue is not known
};

}  // namespace netsim
