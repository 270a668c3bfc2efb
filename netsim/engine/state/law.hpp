// A congestion-control law as the engine sees it: C pointers to its handlers, and records laid out by
// `cc/interface.py`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

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

// What the ports on a packet's way said, the NIC's first. There is room for a path over three tiers, and more once one
// is longer: packets are many, and what they carry should stay in the caches. How many hops each has stands apart, so
// that who writes the next record need not wait for the last ones.
class Trails {
    static constexpr std::size_t PER_LINE = 2;
    struct alignas(64) Line {
        TelemetryRecord record[PER_LINE];
    };
    static_assert(sizeof(Line) == PER_LINE * sizeof(TelemetryRecord));
    static constexpr std::size_t FIRST_LINES = 3, MOST_LINES = MAX_TELEMETRY_HOPS / PER_LINE;

  public:
    static constexpr std::size_t BYTES_PER_PACKET = FIRST_LINES * sizeof(Line) + sizeof(std::uint8_t);

    // Packets have room from then on, and no hops yet.
    void make_room(std::size_t num_packets) {
        if (num_packets <= num_hops_.size()) return;
        num_hops_.resize(2 * num_packets);
        lines_.resize(num_hops_.size() * lines_per_packet_);
    }

    void begin(std::uint32_t packet) { num_hops_[packet] = 0; }

    // Beyond MAX_TELEMETRY_HOPS the first ones are kept.
    void append(std::uint32_t packet, const TelemetryRecord& record) {
        const std::size_t hop = num_hops_[packet];
        if (hop == MAX_TELEMETRY_HOPS) return;
        if (hop == lines_per_packet_ * PER_LINE) [[unlikely]]
            lengthen();
        lines_[packet * lines_per_packet_ + hop / PER_LINE].record[hop % PER_LINE] = record;
        ++num_hops_[packet];
    }

    std::int32_t num_hops(std::uint32_t packet) const { return num_hops_[packet]; }

    const TelemetryRecord* hops(std::uint32_t packet) const { return lines_[packet * lines_per_packet_].record; }

    [[gnu::always_inline]] void prefetch(std::uint32_t packet) const {
        const Line* first = &lines_[packet * lines_per_packet_];
        for (std::size_t hop = 0; hop < num_hops_[packet]; hop += PER_LINE) __builtin_prefetch(first + hop / PER_LINE);
    }

  private:
    void lengthen() {
        const std::size_t before = lines_per_packet_;
        lines_per_packet_ = std::min(2 * before, MOST_LINES);
        std::vector<Line> longer(num_hops_.size() * lines_per_packet_);
        for (std::size_t packet = 0; packet < num_hops_.size(); ++packet)
            std::copy_n(&lines_[packet * before], before, &longer[packet * lines_per_packet_]);
        lines_ = std::move(longer);
    }

    std::vector<std::uint8_t> num_hops_;  // by packet
    std::vector<Line> lines_;             // by packet, lines_per_packet_ each
    std::size_t lines_per_packet_ = FIRST_LINES;
};

enum LawStatus : std::int32_t { OK, RAISED, REFUSED, BAD_RATE, BAD_CWND, BAD_DEADLINE };

enum LawEvent : std::int32_t { ON_START, ON_ACK, ON_CNP, ON_TIMER, ON_NACK, ON_TIMEOUT, ON_SEND, ON_TRIM };

// A handler that the law does not define is null.
struct Law {
    using OnInstant = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps);
    using OnAck = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int64_t acked_bytes,
                                   Picoseconds rtt_ps, Picoseconds endpoint_delay_ps, std::int32_t num_hops,
                                   std::int32_t is_ecn_marked, const TelemetryRecord* telemetry);
    using OnTimer = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int32_t timer);
    using OnSend = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int64_t sent_bytes);
    using OnTrim = std::int64_t (*)(void* params, void* flow, Picoseconds now_ps, std::int64_t trimmed_bytes,
                                    Picoseconds rtt_ps, std::int32_t is_last_hop);

    OnInstant on_start = nullptr;
    OnAck on_ack = nullptr;
    OnInstant on_cnp = nullptr;
    OnTimer on_timer = nullptr;
    OnInstant on_nack = nullptr;
    OnInstant on_timeout = nullptr;
    OnSend on_send = nullptr;
    OnTrim on_trim = nullptr;
    void* params = nullptr;
    bool uses_telemetry = false;
    bool reads_marks = true;  // has on_cnp, or an on_ack that looks at is_ecn_marked
};

// Thrown when a handler misbehaves; ends the run.
struct LawFault {
    LawEvent event;
    std::int64_t status;  // a LawStatus, and in the upper half the place that failed
    std::uint32_t queue_pair;
    Picoseconds now_ps;
};

}  // namespace netsim
