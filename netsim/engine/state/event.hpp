// Events and their order: strictly by time, then kind, then the port, queue pair or transfer they are about.
//
// An event is packed into 64 bits: offset in its slot (12) | kind (3) | id (24) | packet (25). Comparing two keys of
// one slot as integers is comparing (time, kind, id). The order of insertion never matters.
#pragma once

#include <cstdint>

#include "clock.hpp"

namespace netsim {

enum class EventKind : std::uint32_t {
    Arrival,     // a packet reaches the node behind a port; id: port, payload: packet
    PauseFrame,  // a port is told to pause or resume; id: port, payload: which of the two, or a PauseEvent and the
                 // priority it is about, and how often the link had been down
    Wake,        // a port's transmitter becomes free while something waits; id: port
    Reply,       // a host answers a packet after its endpoint delay; id: queue pair, payload: packet
    Pace,        // a queue pair's rate or window lets it send again; id: queue pair
    Timer,       // a queue pair's earliest deadline; id: queue pair
    Transfer,    // a transfer becomes ready, or one that crosses no fabric ends; id and payload together: row and phase
    Clock,       // whatever is rare, last of an instant; id: which ClockEvent, payload: what it is about
};

// Three bits of kind are full, and stay so: a kind of its own is for what happens with every packet or pause.
enum ClockEvent : std::uint32_t { TIME_LIMIT, FAULT, REROUTE, DRAIN, GRANT, PROBE, RESUME, ROUND, WINDOW };

inline constexpr int OFFSET_BITS = 12, ID_BITS = 24, PAYLOAD_BITS = 25;
inline constexpr std::uint32_t MAX_IDS = 1u << ID_BITS;
inline constexpr std::uint32_t MAX_PACKETS = 1u << PAYLOAD_BITS;
inline constexpr std::uint64_t MAX_TRANSFERS = 1ull << (ID_BITS + PAYLOAD_BITS - 1);

using EventIdentity = std::uint64_t;  // kind | id | payload

constexpr EventIdentity identify(EventKind kind, std::uint32_t id, std::uint32_t payload = 0) {
    return (static_cast<std::uint64_t>(kind) << ID_BITS | id) << PAYLOAD_BITS | payload;
}

constexpr EventIdentity identify_transfer(std::uint64_t row, bool is_end) {
    return static_cast<std::uint64_t>(EventKind::Transfer) << (ID_BITS + PAYLOAD_BITS) | row << 1 | is_end;
}

constexpr EventIdentity identity_of(std::uint64_t key) {
    return key & ((1ull << (64 - OFFSET_BITS)) - 1);
}
constexpr EventKind kind_of(std::uint64_t key) {
    return static_cast<EventKind>(key >> (ID_BITS + PAYLOAD_BITS) & 7);
}
constexpr std::uint32_t id_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key >> PAYLOAD_BITS) & (MAX_IDS - 1);
}
constexpr std::uint32_t payload_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key) & (MAX_PACKETS - 1);
}
constexpr std::uint64_t transfer_of(std::uint64_t key) {
    return (key & ((1ull << (ID_BITS + PAYLOAD_BITS)) - 1)) >> 1;
}
constexpr bool is_transfer_end(std::uint64_t key) {
    return key & 1;
}

}  // namespace netsim
