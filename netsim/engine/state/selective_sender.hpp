// What a queue pair's sender knows of each packet under selective repeat.
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "ring_buffer.hpp"
#include "sequence_set.hpp"

namespace netsim {

struct Transmission {
    std::uint32_t sequence;
    Picoseconds sent_ps;
};

// A packet flies from its sending until it is acknowledged or taken for lost: then it is at rest. It has one entry
// among `transmissions` at least while it flies. No set has what is below the sender's oldest packet.
struct alignas(64) SelectiveSender {
    std::uint32_t num_flying = 0;
    Picoseconds reorder_window_ps = 0;
    Picoseconds newest_sent_ps = -1;         // when the packet was sent that was sent last of all that have arrived
    Picoseconds newest_rtt_ps = 0;           // and its round trip
    Picoseconds deadline_ps = NEVER;         // when the first transmission will be taken for lost
    RingBuffer<Transmission> transmissions;  // in the order of sending; those at rest leave when they are first
    SequenceSet at_rest;
    SequenceSet lost;  // those at rest that are to be sent again
};
static_assert(sizeof(SelectiveSender) == 128);

// Which packets a receiver has beyond the one it expects.
struct SelectiveReceiver {
    SequenceSet arrived;
    SequenceSet unreported;             // of those, what no acknowledgement has named; only where these are coalesced
    std::int64_t unanswered_bytes = 0;  // since the last acknowledgement, as coalescing counts them
};

// What a coalesced acknowledgement says of packets beyond the one expected.
struct ArrivalReport {
    std::uint32_t first = 0;
    std::uint64_t arrived = 0;  // a bit for each of 64 packets from the first on
};

}  // namespace netsim
