// What NICs remember of packets on their way to the host, and what is summed up of round trips.
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "packet.hpp"
#include "random.hpp"

namespace netsim {

// Data packets that a host has not taken yet, in the order of their arrival through one port.
struct NicBuffer {
    std::int64_t drain_rate_bps = 0;  // 0: at once, and nothing waits
    std::uint32_t head = NONE, tail = NONE;
    Picoseconds drained_ps = 0;  // when the host will have taken the first of them
};

// A queue pair's answers.
struct Endpoint {
    RandomStream random;
    Picoseconds answer_ps = -1;  // when the last one was, or will be, given
};

// A transfer's acknowledgements.
struct RoundTrips {
    std::int64_t num = 0;
    Picoseconds rtt_ps = 0, endpoint_ps = 0;  // sums
};

}  // namespace netsim
