// A congestion-control law as the engine sees it: C pointers to its handlers, and records laid out by
// `cc/interface.py`.
#pragma once

#include <cstdint>

#include "clock.hpp"

namespace netsim {

inline constexpr int NUM_TIMERS = 4;
inline constexpr int MAX_TELEMETRY_HOPS = 16;
inline constexpr double MIN_RATE_BPS = 1;
inline constexpr double MIN_CWND_BYTES = 0.001;

// What every flow record begins with; the law's own state follows. The law writes the first three fields.
struct FlowHeader {
    double rate_bps;
    double cwnd_bytes;
    Picoseconds deadline_ps[NUM_TIMERS];
    double line_rate_bps;
    Picoseconds base_rtt_ps;
    std::int32_t mtu_bytes;
    std::int32_t num_hops;
};
static_assert(sizeof(FlowHeader) == 72);

// What a port says of itself as a packet leaves through it.
struct TelemetryRecord {
    Picoseconds time_ps;
    std::int64_t tx_bytes;
    std::int64_t queue_bytes;
    double rate_bps;
};
static_assert(sizeof(TelemetryRecord) == 32);

// What the ports on a packet's way said, the NIC's first.
struct Trail {
    std::int32_t num_hops = 0;
    TelemetryRecord hops[MAX_TELEMETRY_HOPS];
};

enum LawStatus : std::int32_t { OK, RAISED, REFUSED, BAD_RATE, BAD_CWND, BAD_DEADLINE };

enum LawEvent : std::int32_t { ON_START, ON_ACK, ON_CNP, ON_TIMER, ON_NACK, ON_TIMEOUT, ON_SEND };

// A handler that the law does not define is null.
struct Law {
    using OnInstant = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps);
    using OnAck = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int64_t acked_bytes,
                                   Picoseconds rtt_ps, Picoseconds endpoint_delay_ps, std::int32_t num_hops,
                                   std::int32_t is_ecn_marked, const TelemetryRecord* telemetry);
    using OnTimer = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int32_t timer);
    using OnSend = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int64_t sent_bytes);

    OnInstant on_start = nullptr;
    OnAck on_ack = nullptr;
    OnInstant on_cnp = nullptr;
    OnTimer on_timer = nullptr;
    OnInstant on_nack = nullptr;
    OnInstant on_timeout = nullptr;
    OnSend on_send = nullptr;
    void* params = nullptr;
    bool uses_telemetry = false;
};

// Thrown when a handler misbehaves; ends the run.
struct LawFault {
    LawEvent event;
    LawStatus status;
    std::uint32_t queue_pair;
    Picoseconds now_ps;
};

}  // namespace netsim
