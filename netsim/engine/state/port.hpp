// A directed port: a transmitter with two queues, the wire behind it, and the buffer the wire ends in.
//
// Everything a packet needs at a hop stands in one cache line (Port); what is rare or only counted stands in
// PortStats. Both are made here from the arrays of a run. The ingress buffer and its thresholds belong to the node
// behind the wire, but are kept with the port that fills them: that port is also the one which a pause frame stops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock.hpp"
#include "inputs.hpp"
#include "packet.hpp"
#include "random.hpp"

namespace netsim {

enum TrafficClass : std::uint32_t { CONTROL, DATA, NUM_CLASSES };  // CONTROL goes first and is never paused

// The class of a type of packets where no setting moves it.
constexpr TrafficClass own_class_of(PacketType type) {
    return type == PacketType::Data ? DATA : CONTROL;
}

// Queue pairs that may send, in turn, linked by Sender::ring_next.
struct Ring {
    std::uint32_t head = NONE, tail = NONE;
};

struct alignas(64) Port {
    Port(const Inputs& inputs, std::size_t port)
        : tx_packets{inputs.settings.first_packet_count, inputs.settings.first_packet_count},
          ingress_threshold_bytes(static_cast<std::int32_t>(inputs.pause_above[port])),
          delay_ps(static_cast<std::uint32_t>(inputs.port_delay_ps[port])),
          ps_per_byte(whole_ps_per_byte(inputs.port_rate_bps[port])),
          is_host(inputs.port_is_host[port] != 0) {}

    Picoseconds busy_until_ps = 0;
    std::uint64_t tx_bytes = 0;
    std::uint32_t head[NUM_CLASSES] = {NONE, NONE};
    std::uint32_t tail[NUM_CLASSES] = {NONE, NONE};
    std::uint32_t tx_packets[NUM_CLASSES];  // by the class of their type; see PortStats::tx_packet_carries
    std::int32_t queued_bytes = 0;          // of class DATA
    std::int32_t max_queue_bytes = 0;       // of class DATA
    std::int32_t ingress_bytes = 0;         // of class DATA, in the node behind the wire
    std::int32_t ingress_threshold_bytes;
    std::uint32_t delay_ps;
    std::uint16_t ps_per_byte;  // 0: not a whole number, see PortStats::rate_bps
    bool has_wake : 1 = false;  // a Wake event is pending
    bool is_paused : 1 = false;
    bool pauses_sender : 1 = false;  // the node behind the wire has asked this port to pause
    bool is_host : 1;                // data come from the host's queue pairs
    bool is_asleep : 1 = false;      // as its component, see skip/
    bool is_watched : 1 = false;     // what leaves is noted, see skip/
    bool is_cut : 1 = false;         // the wire ends in another part of the run, see parts/
};
static_assert(sizeof(Port) == 64);

struct alignas(64) PortStats {
    PortStats(const Inputs& inputs, std::size_t port)
        : rate_bps(inputs.port_rate_bps[port]),
          random(inputs.settings.random_key, port),
          loss_fraction(inputs.loss_fraction[port]),
          peer(static_cast<std::uint32_t>(inputs.port_peer[port])),
          resume_below_bytes(static_cast<std::int32_t>(inputs.resume_below[port])),
          ingress_limit_bytes(static_cast<std::int32_t>(inputs.ingress_limit[port])),
          pause_response_ps(inputs.pause_response[port]) {}

    std::int64_t rate_bps;
    Picoseconds paused_since_ps = 0;
    Picoseconds paused_ps = 0;
    RandomStream random;
    double loss_fraction;
    std::uint32_t peer;  // the same link's other direction
    std::int32_t resume_below_bytes;
    std::int32_t ingress_limit_bytes;
    std::uint32_t tx_packet_carries[NUM_CLASSES] = {0, 0};  // how often the counts of Port were full
    std::uint64_t num_pauses = 0;
    std::uint64_t marked_packets = 0;
    std::uint64_t dropped_packets = 0;  // lost behind this port, on the wire or for want of buffer
    Ring ring;                          // hosts only
    Picoseconds pause_response_ps;
};

}  // namespace netsim
