// Makes the state of a run from its arrays.
#include "simulation.hpp"

#include <algorithm>
#include <cstring>

namespace netsim {

RunState::RunState(const Inputs& inputs)
    : port_node(inputs.port_node.begin(), inputs.port_node.end()),
      retransmission_waits(inputs.retransmission_wait.begin(), inputs.retransmission_wait.end()),
      path(inputs.path.begin(), inputs.path.end()),
      epochs(inputs),
      faults(inputs),
      host_links(inputs),
      path_chooser(inputs),
      priorities(inputs),
      probed_ports(inputs.probed_port.begin(), inputs.probed_port.end()),
      probed_flows(inputs.probed_flow.begin(), inputs.probed_flow.end()),
      captured_flows(inputs.captured_flow.begin(), inputs.captured_flow.end()) {}

Simulation::Simulation(const Inputs& inputs)
    : RunState(inputs),
      settings(inputs.settings),
      law(inputs.law),
      features(features_of(inputs)),
      flow_stride((settings.flow_bytes + sizeof(CacheLine) - 1) / sizeof(CacheLine)) {
    path.push_back(NONE);  // the main loop looks one entry ahead
    add_ports(inputs);
    add_queue_pairs(inputs);
    transfers.reserve(settings.num_transfers);
    for (const FarEvents::Event& event : first_clock_events()) queue.push(event.time_ps, event.identity);
}

std::vector<FarEvents::Event> Simulation::first_clock_events() const {
    std::vector<FarEvents::Event> events;
    const auto add = [&](Picoseconds time_ps, ClockEvent event) {
        events.push_back({time_ps, identify(EventKind::Clock, event)});
    };
    if (settings.time_limit_ps != NEVER) add(settings.time_limit_ps, TIME_LIMIT);
    if (!faults.changes.empty()) add(faults.changes.front().time_ps, FAULT);
    if (!epochs.times_ps.empty()) add(epochs.times_ps.front(), REROUTE);
    if (settings.probe_interval_ps != NEVER) add(0, PROBE);
    return events;
}

void Simulation::add_ports(const Inputs& inputs) {
    const std::size_t num_ports = inputs.port_rate_bps.size();
    ports.reserve(num_ports);
    port_stats.reserve(num_ports);
    for (std::size_t port = 0; port < num_ports; port++) {
        ports.emplace_back(inputs, port);
        port_stats.emplace_back(inputs, port);
    }
}

void Simulation::add_queue_pairs(const Inputs& inputs) {
    const std::size_t num_queue_pairs = inputs.num_queue_pairs();
    senders.resize(num_queue_pairs);
    if (settings.cnp_delay_ps > 0) pending_notifications.resize(num_queue_pairs);
    receivers.resize(num_queue_pairs);
    if (inputs.has_slow_host()) {
        for (const std::int64_t rate_bps : inputs.drain_rate) nics.push_back({.drain_rate_bps = rate_bps});
    }
    for (std::size_t qp = 0; inputs.has_late_answers() && qp < num_queue_pairs; qp++) {
        endpoints.push_back({.random = RandomStream(settings.endpoint_key, qp)});
    }
    if (features & USES_SLOW_HOSTS) round_trips.resize(settings.num_transfers);
    for (std::size_t qp = 0; settings.num_entropy_values > 0 && qp < num_queue_pairs; qp++) {
        entropy_caches.emplace_back(settings.entropy_key, qp);
    }
    if (settings.num_receives > 0) {
        refused_senders.resize(num_queue_pairs);
        for (std::size_t qp = 0; qp < num_queue_pairs; qp++) {
            receive_queues.emplace_back(settings.num_receives, settings.replenish_ps);
        }
    }
    selective_senders.resize(inputs.reorder_window.size());
    selective_receivers.resize(inputs.reorder_window.size());
    for (std::size_t qp = 0; qp < selective_senders.size(); qp++) {
        selective_senders[qp].reorder_window_ps = inputs.reorder_window[qp];
    }
    for (const std::int64_t window_bytes : inputs.credit_window) {
        credited_senders.push_back({.window_bytes = window_bytes, .credit_bytes = window_bytes});
    }
    credited_receivers.resize(inputs.credit_window.size());
    for (const std::int64_t rate_bps : inputs.grant_rate) grant_pacers.push_back({.rate_bps = rate_bps});
    flows.resize(num_queue_pairs * flow_stride);
    for (std::size_t qp = 0; qp < num_queue_pairs; qp++) {
        std::memcpy(&flows[qp * flow_stride], &inputs.flow[qp * settings.flow_bytes], settings.flow_bytes);
        FlowHeader header;
        std::memcpy(&header, &inputs.flow[qp * settings.flow_bytes], sizeof header);
        senders[qp].port = path[qp * 2 * settings.path_stride];
        senders[qp].rate_bps = header.rate_bps;
        senders[qp].rtt_ps = header.base_rtt_ps;
    }
}

void Simulation::add_transfers(const TransferRows& rows) {
    for (std::size_t row = 0; row < rows.transfer_bytes.size(); row++) {
        Transfer& transfer = transfers.emplace_back();
        transfer.bytes = rows.transfer_bytes[row];
        transfer.num_dependencies = static_cast<std::uint32_t>(rows.num_dependencies[row]);
        const ReadyRule rule{rows.transfer_start[row], rows.transfer_delay[row]};
        if (!ready_rules.empty() || rule.earliest_ps > 0 || rule.delay_ps > 0) {
            ready_rules.resize(transfers.size());
            ready_rules.back() = rule;
        }
        if (static_cast<Medium>(rows.transfer_medium[row]) != Medium::Fabric) continue;
        transfer.queue_pair = static_cast<std::uint32_t>(rows.transfer_qp[row]);
        senders[transfer.queue_pair].num_unacknowledged++;
    }
    dependency_row.insert(dependency_row.end(), rows.dependency_row.begin(), rows.dependency_row.end());
    nvlink_source.insert(nvlink_source.end(), rows.nvlink_source.begin(), rows.nvlink_source.end());
    nvlink_destination.insert(nvlink_destination.end(), rows.nvlink_destination.begin(), rows.nvlink_destination.end());
}

void Simulation::start() {
    has_started = true;
    num_unfinished = static_cast<std::uint32_t>(transfers.size());
    if (!ready_rules.empty()) ready_rules.resize(transfers.size());
    turn_dependencies_round();
    for (std::uint32_t row = 0; row < transfers.size(); row++) push_when_ready(row);
    std::uint32_t num_gpus = 0;
    for (const auto* ends : {&nvlink_source, &nvlink_destination}) {
        for (const std::uint32_t gpu : *ends) num_gpus = std::max(num_gpus, gpu + 1);  // NONE + 1 is 0
    }
    nvlink_out_until_ps.resize(num_gpus);
    nvlink_in_until_ps.resize(num_gpus);
    if (transfers.empty()) outcome = Outcome::Finished;
}

// A transfer that waits for none is ready at a time of its own.
void Simulation::push_when_ready(std::uint32_t row) {
    if (transfers[row].num_dependencies > 0) return;
    num_transfer_events++;
    const ReadyRule rule = ready_rules.empty() ? ReadyRule{} : ready_rules[row];
    queue.push(rule.earliest_ps + rule.delay_ps, identify_transfer(row, false));
}

// Who waits for each transfer, in the order of rows.
void Simulation::turn_dependencies_round() {
    dependent_offset.assign(transfers.size() + 1, 0);
    for (const std::uint32_t row : dependency_row) dependent_offset[row]++;
    std::uint32_t end = 0;
    for (std::uint32_t& offset : dependent_offset) offset = end += offset;  // where the transfer's dependents end
    dependent_row.resize(dependency_row.size());
    std::size_t dependency = dependency_row.size();
    for (auto waiting = static_cast<std::uint32_t>(transfers.size()); waiting-- > 0;) {
        for (std::uint32_t i = 0; i < transfers[waiting].num_dependencies; i++) {
            dependent_row[--dependent_offset[dependency_row[--dependency]]] = waiting;
        }
    }
    std::vector<std::uint32_t>().swap(dependency_row);
}

// Nothing is left to set free: the results have more use for the memory.
void Simulation::forget_dependents() {
    std::vector<std::uint32_t>().swap(dependent_offset);
    std::vector<std::uint32_t>().swap(dependent_row);
}

}  // namespace netsim
