// Port loads: averages of what a port sends and of what waits for it, as adaptive routing samples them.
//
// A sample is taken at the end of every interval, of what the events before that instant have left. It costs no event:
// a port closes the intervals that have ended before its queue or its count of bytes changes, and when it is asked.
// Source: SAI, "Adaptive Routing and Switching"; docs/decisions/0061-adaptive-routing.md has what that leaves open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "inputs.hpp"
#include "port.hpp"

namespace netsim {

class PortLoads {
  public:
    explicit PortLoads(const Inputs& inputs);

    // Close the intervals of a port that have ended.
    void settle(std::uint32_t port, const Port& state, Picoseconds now_ps) {
        if (now_ps >= meters_[port].next_ps) close_intervals(meters_[port], state, now_ps);
    }

    // The mean band of a port's loads by weights; the lowest is the best.
    std::int64_t quality(std::uint32_t port) const { return meters_[port].quality; }

  private:
    static constexpr int FRACTION_BITS = 8;              // of an average
    static constexpr double MOST = 1e12;                 // of a sample, in the last band of any range
    static constexpr double BYTE_LOAD = 65536.0 * 8e12;  // of a byte, times what an interval carries

    struct Meter {
        double capacity, queue_scale;  // bit-picoseconds a second of an interval; 1 for the fastest ports
        Picoseconds next_ps;
        std::uint64_t tx_bytes = 0;  // when the last interval ended
        std::int64_t past_scaled = 0, future_scaled = 0;
        std::int64_t quality = 0;  // of these averages
    };

    void close_intervals(Meter& meter, const Port& state, Picoseconds now_ps);
    std::int64_t quality_of(const Meter& meter) const;
    bool sample(Meter& meter, double past, double future) const;
    std::int64_t moved(std::int64_t average_scaled, double sample) const;
    std::int64_t band(std::int64_t average_scaled, const LoadRange& range) const;

    Picoseconds interval_ps_;
    std::int64_t exponent_, bands_;
    bool falls_at_once_;
    LoadRange past_, future_;
    std::int64_t past_weight_, future_weight_;
    std::vector<Meter> meters_;  // by port; empty if no rule asks
};

inline PortLoads::PortLoads(const Inputs& inputs)
    : interval_ps_(inputs.settings.load_sampling_ps),
      exponent_(inputs.settings.load_exponent),
      bands_(inputs.settings.load_bands),
      falls_at_once_(inputs.settings.load_falls_at_once),
      past_(inputs.settings.past_load),
      future_(inputs.settings.future_load),
      past_weight_(inputs.settings.past_load_weight),
      future_weight_(inputs.settings.future_load_weight) {
    if (inputs.settings.path_rule != PathRule::Quality) return;
    const auto fastest_bps = static_cast<double>(std::ranges::max(inputs.port_rate_bps));
    for (const std::int64_t rate : inputs.port_rate_bps) {
        const auto rate_bps = static_cast<double>(rate);
        meters_.push_back({.capacity = rate_bps * static_cast<double>(interval_ps_),
                           .queue_scale = fastest_bps / rate_bps,
                           .next_ps = interval_ps_});
        meters_.back().quality = quality_of(meters_.back());
    }
}

// The first interval has what was sent since the one before it; those behind it have nothing but the queue.
inline void PortLoads::close_intervals(Meter& meter, const Port& state, Picoseconds now_ps) {
    const Picoseconds num_ended = (now_ps - meter.next_ps) / interval_ps_ + 1;
    const double sent = static_cast<double>(state.tx_bytes - meter.tx_bytes) * BYTE_LOAD / meter.capacity;
    const double queued = static_cast<double>(state.queued_bytes) * meter.queue_scale;
    meter.tx_bytes = state.tx_bytes;
    meter.next_ps += num_ended * interval_ps_;
    sample(meter, sent, queued);
    for (Picoseconds i = 1; i < num_ended && sample(meter, 0, queued); i++) continue;
    meter.quality = quality_of(meter);
}

inline std::int64_t PortLoads::quality_of(const Meter& meter) const {
    const std::int64_t past = past_weight_ * band(meter.past_scaled, past_);
    const std::int64_t future = future_weight_ * band(meter.future_scaled, future_);
    return (past + future) / (past_weight_ + future_weight_);
}

// Move both averages; returns whether one has changed.
inline bool PortLoads::sample(Meter& meter, double past, double future) const {
    const std::int64_t past_before = meter.past_scaled, future_before = meter.future_scaled;
    meter.past_scaled = moved(past_before, past);
    meter.future_scaled = moved(future_before, future);
    return meter.past_scaled != past_before || meter.future_scaled != future_before;
}

inline std::int64_t PortLoads::moved(std::int64_t average_scaled, double sample) const {
    const std::int64_t sample_scaled = static_cast<std::int64_t>(std::min(sample, MOST)) << FRACTION_BITS;
    if (falls_at_once_ && sample_scaled < average_scaled) return sample_scaled;
    return average_scaled + ((sample_scaled - average_scaled) >> exponent_);
}

inline std::int64_t PortLoads::band(std::int64_t average_scaled, const LoadRange& range) const {
    const std::int64_t above = (average_scaled >> FRACTION_BITS) - range.min;
    return std::clamp<std::int64_t>(above * bands_ / (range.max - range.min), 0, bands_ - 1);
}

}  // namespace netsim
