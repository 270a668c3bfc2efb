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

namespace {

// What of a run only the full engine has, in the words of the configuration.
std::vector<std::string> features(const Inputs& inputs) {
    const Settings& settings = inputs.settings;
    const bool is_answer_late = settings.endpoint_delay_ps > 0 || settings.endpoint_jitter_ps > 0;
    const std::pair<bool, const char*> all[] = {
        {inputs.law.uses_telemetry, "telemetry"},
        {inputs.has_priorities(), "priorities"},
        {!inputs.reorder_window.empty(), "selective repeat"},
        {settings.num_receives > 0, "receivers that are not ready"},
        {inputs.has_slow_host() || is_answer_late, "hosts that take time"},
        {settings.path_rule != PathRule::Hash, "switches that choose paths"},
        {settings.trim_above_bytes > 0, "switches that trim"},
        {inputs.can_go_wrong(), "faults"},
        {inputs.has_losses(), "random loss"},
        {settings.acknowledgements_are_data, "acknowledgements in the class of data"},
        {!inputs.captured_flow.empty(), "captures"},
    };
    std::vector<std::string> names;
    for (const auto& [is_there, name] : all) {
        if (is_there) names.emplace_back(name);
    }
    return names;
}

}  // namespace

std::unique_ptr<Simulation> Simulation::create(const Inputs& inputs) {
    const std::vector<std::string> names = features(inputs);
    const bool is_full = !names.empty() || inputs.settings.force_full;
    const bool skips = inputs.settings.skips_repeats && !is_full;
    std::unique_ptr<Simulation> simulation =
        skips ? skipping::make_engine(inputs, is_full) : plain::make_engine(inputs, is_full);
    simulation->not_skipped = names;
    return simulation;
}

}  // namespace netsim
