// A transfer: one message of a queue pair, or a delay that crosses no fabric. One cache line, since a job has millions.
#pragma once

#include <cstdint>

#include "packet.hpp"

namespace netsim {

enum class Medium : std::int64_t { Fabric, Nvlink, None };

inline constexpr Picoseconds NOT_YET = -1;

struct alignas(64) Transfer {
    std::int64_t bytes = 0;
    Picoseconds ready_ps = NOT_YET;
    Picoseconds start_ps = NOT_YET;
    Picoseconds finish_ps = NOT_YET;        // the last byte is at the destination
    Picoseconds acknowledged_ps = NOT_YET;  // and the source knows
    std::uint64_t num_retransmitted = 0;    // packets
    std::uint32_t queue_pair = NONE;        // NONE: it crosses no fabric
    union {
        std::uint32_t num_dependencies = 0;  // still unfinished, until it is ready
        std::uint32_t next;                  // of the same queue pair, in the order they became ready
    };
    std::uint32_t end_sequence = 0;  // after its last packet; 0 before it is ready
    std::uint32_t num_cnps = 0;

    std::uint32_t num_packets(std::int64_t mtu_bytes) const {
        return static_cast<std::uint32_t>(bytes > mtu_bytes ? (bytes + mtu_bytes - 1) / mtu_bytes : 1);
    }
    std::uint32_t first_sequence(std::int64_t mtu_bytes) const {
        return end_sequence == 0 ? 0 : end_sequence - num_packets(mtu_bytes);
    }
    std::uint32_t last_payload_bytes(std::int64_t mtu_bytes) const {
        return static_cast<std::uint32_t>(bytes - std::int64_t{num_packets(mtu_bytes) - 1} * mtu_bytes);
    }
};
static_assert(sizeof(Transfer) == 64);

// When a transfer may be ready that does not follow its last dependency at once.
struct ReadyRule {
    Picoseconds earliest_ps;
    Picoseconds delay_ps;  // after the last dependency
};

}  // namespace netsim
