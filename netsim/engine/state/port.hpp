// A directed port: a transmitter with two queues, the wire behind it, and the buffer the wire ends in.
//
// Everything a packet needs at a hop stands in one cache line (Port); what is rare or only counted stands in
// PortStats. The ingress buffer and its thresholds belong to the node behind the wire, but are kept with the port that
// fills them: that port is also the one which a pause frame stops.
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "packet.hpp"
#include "random.hpp"

namespace netsim {

enum TrafficClass : std::uint32_t { CONTROL, DATA, NUM_CLASSES };  // CONTROL goes first and is never paused

constexpr TrafficClass class_of(PacketType type) {
    return type == PacketType::Data ? DATA : CONTROL;
}

// Queue pairs that may send, in turn, linked by Sender::ring_next.
struct Ring {
    std::uint32_t head = NONE, tail = NONE;
};

struct alignas(64) Port {
    Picoseconds busy_until_ps = 0;
    std::uint64_t tx_bytes = 0;
    std::uint32_t head[NUM_CLASSES] = {NONE, NONE};
    std::uint32_t tail[NUM_CLASSES] = {NONE, NONE};
    std::uint32_t tx_packets[NUM_CLASSES] = {0, 0};
    std::int32_t queued_bytes = 0;     // of class DATA
    std::int32_t max_queue_bytes = 0;  // of class DATA
    std::int32_t ingress_bytes = 0;    // of class DATA, in the node behind the wire
    std::int32_t ingress_threshold_bytes = 0;
    std::uint32_t delay_ps = 0;
    std::uint16_t ps_per_byte = 0;  // 0: not a whole number, see PortStats::rate_bps
    bool has_wake : 1 = false;      // a Wake event is pending
    bool is_paused : 1 = false;
    bool pauses_sender : 1 = false;  // the node behind the wire has asked this port to pause
    bool is_host : 1 = false;        // data come from the host's queue pairs
};
static_assert(sizeof(Port) == 64);

struct alignas(64) PortStats {
    std::int64_t rate_bps = 0;
    Picoseconds paused_since_ps = 0;
    Picoseconds paused_ps = 0;
    RandomStream random;
    double loss_fraction = 0;
    std::uint32_t peer = NONE;  // the same link's other direction
    std::int32_t resume_below_bytes = 0;
    std::int32_t ingress_limit_bytes = 0;
    std::uint32_t pause_frames = 0;  // sent to this port; odd while the last one asks for a pause
    std::uint32_t num_pauses = 0;
    std::uint32_t marked_packets = 0;
    std::uint32_t dropped_packets = 0;  // lost behind this port, on the wire or for want of buffer
    Ring ring;                          // hosts only
    Picoseconds pause_response_ps = 0;
};

}  // namespace netsim
