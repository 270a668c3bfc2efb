// What of the full engine a run uses, as bits of one word: a hop asks for all that it seldom meets at once.
#pragma once

#include <cstdint>

#include "inputs.hpp"

namespace netsim {

enum Feature : std::uint32_t {
    USES_PRIORITIES = 1 << 0,
    USES_SELECTIVE_REPEAT = 1 << 1,
    USES_FAULTS = 1 << 2,  // or new paths
    USES_LOSSES = 1 << 3,  // on any wire, apart from faults
    USES_CAPTURES = 1 << 4,
    USES_TELEMETRY = 1 << 5,
    USES_HOST_LINKS = 1 << 6,
    USES_SAMPLED_LOADS = 1 << 7,
    USES_TRIMMING = 1 << 8,
    USES_SLOW_HOSTS = 1 << 9,  // packets are in hosts for a time
    USES_RECEIVE_QUEUES = 1 << 10,
    USES_CREDITS = 1 << 11,
    USES_COALESCING = 1 << 12,  // of acknowledgements
    USES_ENTROPY = 1 << 13,
    USES_ACKNOWLEDGEMENTS_AS_DATA = 1 << 14,
};

inline std::uint32_t features_of(const Inputs& inputs) {
    const Settings& settings = inputs.settings;
    std::uint32_t features = 0;
    const auto add = [&](bool is_used, Feature feature) {
        if (is_used) features |= feature;
    };
    add(inputs.has_priorities(), USES_PRIORITIES);
    add(!inputs.reorder_window.empty(), USES_SELECTIVE_REPEAT);
    add(inputs.can_go_wrong(), USES_FAULTS);
    add(inputs.has_losses(), USES_LOSSES);
    add(!inputs.captured_flow.empty(), USES_CAPTURES);
    add(inputs.law.uses_telemetry, USES_TELEMETRY);
    add(!inputs.host_link.empty(), USES_HOST_LINKS);
    add(settings.path_rule == PathRule::Quality, USES_SAMPLED_LOADS);
    add(settings.trim_above_bytes > 0, USES_TRIMMING);
    add(inputs.has_slow_host() || inputs.has_late_answers(), USES_SLOW_HOSTS);
    add(settings.num_receives > 0, USES_RECEIVE_QUEUES);
    add(!inputs.credit_window.empty(), USES_CREDITS);
    add(settings.acknowledge_after_bytes > 0, USES_COALESCING);
    add(settings.num_entropy_values > 0, USES_ENTROPY);
    add(settings.acknowledgements_are_data, USES_ACKNOWLEDGEMENTS_AS_DATA);
    return features;
}

}  // namespace netsim
