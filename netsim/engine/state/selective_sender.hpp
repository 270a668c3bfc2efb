// What a queue pair's sender knows of each packet under selective repeat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "clock.hpp"

namespace netsim {

inline constexpr std::size_t EMPTY_DEQUE_BYTES = 512 + 64;  // a block and the map of blocks, as libstdc++ has them

enum class PacketFate : std::uint8_t { Flying, Lost, Arrived };

struct Transmission {
    std::uint32_t sequence;
    Picoseconds sent_ps;
};

// `fates` are of the packets from the sender's oldest on; a packet flies from its sending until it is acknowledged or
// taken for lost, and has one entry among `transmissions` at least while it does.
struct SelectiveSender {
    std::deque<PacketFate> fates;
    std::deque<Transmission> transmissions;  // in the order of sending; those at rest leave when they are first
    std::set<std::uint32_t> lost;            // sequences to be sent again
    std::uint32_t num_flying = 0;
    Picoseconds reorder_window_ps = 0;
    Picoseconds newest_sent_ps = -1;  // when the packet was sent that was sent last of all that have arrived
    Picoseconds newest_rtt_ps = 0;    // and its round trip
    Picoseconds deadline_ps = NEVER;  // when the first transmission will be taken for lost
};

// Which packets a receiver has from the one it expects on: the first is always missing.
struct SelectiveReceiver {
    std::deque<bool> has_arrived;
};

}  // namespace netsim
