// A transfer: one message of a queue pair, or a delay that crosses no fabric.
#pragma once

#include <cstdint>

#include "packet.hpp"

namespace netsim {

enum class Medium : std::int64_t { Fabric, Nvlink, None };

inline constexpr Picoseconds NOT_YET = -1;

struct Transfer {
    std::int64_t bytes = 0;
    Picoseconds earliest_ps = 0;  // it is not ready before
    Picoseconds delay_ps = 0;     // after the last dependency
    Picoseconds ready_ps = NOT_YET;
    Picoseconds start_ps = NOT_YET;
    Picoseconds finish_ps = NOT_YET;        // the last byte is at the destination
    Picoseconds acknowledged_ps = NOT_YET;  // and the source knows
    Medium medium = Medium::Fabric;
    std::uint64_t num_retransmitted = 0;  // packets
    std::uint32_t queue_pair = NONE;
    std::uint32_t next = NONE;           // of the same queue pair, in the order they became ready
    std::uint32_t num_dependencies = 0;  // still unfinished
    std::uint32_t first_sequence = 0, end_sequence = 0;
    std::uint32_t last_payload_bytes = 0;
    std::uint32_t num_cnps = 0;
};

}  // namespace netsim
