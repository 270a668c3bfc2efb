// What a run is made from: settings, the law, and arrays that live until the simulation has copied them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "law.hpp"
#include "settings.hpp"

namespace netsim {

struct Inputs {
    Settings settings;
    Law law;
#define ARRAY(type, name) std::span<const type> name
#include "arrays.inl"
#undef ARRAY

    std::size_t num_queue_pairs() const { return flow.size() / settings.flow_bytes; }
    std::size_t num_flows() const { return 2 * num_queue_pairs(); }  // a queue pair's data, then its acknowledgements
    bool has_priorities() const { return !priority_weight.empty(); }
    bool can_go_wrong() const { return !fault_time.empty() || !epoch_time.empty(); }
    bool has_losses() const {
        return std::ranges::any_of(loss_fraction, [](double fraction) { return fraction > 0; });
    }
    bool has_late_answers() const { return settings.endpoint_delay_ps > 0 || settings.endpoint_jitter_ps > 0; }
    bool has_slow_host() const {
        return std::ranges::any_of(drain_rate, [](std::int64_t rate_bps) { return rate_bps > 0; });
    }
};

// Some of a run's transfers.
struct TransferRows {
#define ARRAY(type, name) std::span<const type> name
#include "transfer_arrays.inl"
#undef ARRAY
};

}  // namespace netsim
