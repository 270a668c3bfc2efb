// Which of the engines a run needs.
#include <utility>

#include "state/simulation.hpp"

namespace netsim {

namespace plain {
std::unique_ptr<Simulation> make_engine(const Inputs& inputs, bool is_full);
}
namespace skipping {
std::unique_ptr<Simulation> make_engine(const Inputs& inputs, bool is_full);
}

namespace parted {
std::unique_ptr<Simulation> make_engine(const Inputs& inputs, bool is_full);
}

namespace {

// Whether a run has what only the full engine has.
bool needs_full(const Inputs& inputs) {
    return features_of(inputs) != 0 || inputs.settings.path_rule != PathRule::Hash || inputs.settings.force_full;
}

// What of a run exact skip does not visit, in the words of the configuration.
std::vector<std::string> not_visited(const Inputs& inputs) {
    const Settings& settings = inputs.settings;
    const PathRule rule = settings.path_rule;
    const bool is_fixed = rule == PathRule::Hash || rule == PathRule::Entropy ||
                          (rule == PathRule::Weighted && settings.flowlet_gap_ps == 0);
    const std::pair<bool, const char*> all[] = {
        {inputs.law.uses_telemetry, "telemetry"},
        {settings.endpoint_jitter_ps > 0, "random delays in hosts"},
        {!is_fixed, "switches that choose paths by chance, turn or load"},
        {settings.num_entropy_values > 0 && !inputs.captured_flow.empty(), "captures of entropy values"},
        {settings.acknowledge_after_bytes > 0, "coalesced acknowledgements"},
        {!inputs.credit_window.empty(), "receiver credits"},
    };
    std::vector<std::string> names;
    for (const auto& [is_there, name] : all) {
        if (is_there) names.emplace_back(name);
    }
    return names;
}

// What keeps a run on one thread, whatever its traffic.
const char* obstacle_to_parts(const Inputs& inputs, bool skips) {
    const Settings& settings = inputs.settings;
    if (skips) return "bounded skip";
    if (settings.pause_quanta > 0 && settings.is_pause_refreshed) return "pauses that are refreshed";
    if (settings.acknowledge_after_bytes > 0) return "coalesced acknowledgements";
    if (!inputs.credit_window.empty()) return "receiver credits";
    return "";
}

}  // namespace

std::unique_ptr<Simulation> Simulation::create(const Inputs& inputs) {
    const std::vector<std::string> names = not_visited(inputs);
    const bool is_full = needs_full(inputs);
    const bool skips = inputs.settings.skips_repeats && names.empty();
    const bool is_cut = inputs.settings.num_threads > 1;
    const char* obstacle = is_cut ? obstacle_to_parts(inputs, skips) : "";
    const auto make = skips ? skipping::make_engine : is_cut && !*obstacle ? parted::make_engine : plain::make_engine;
    std::unique_ptr<Simulation> simulation = make(inputs, is_full);
    simulation->not_skipped = names;
    simulation->not_cut = obstacle;
    return simulation;
}

}  // namespace netsim
