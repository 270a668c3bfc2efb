#include "columns.hpp"

#include "../state/wait_graph.hpp"

namespace nb = nanobind;

namespace netsim {
namespace {

// A column of the values of the numbers from 0 to `size` - 1.
template <typename Value>
Column numbered_column(std::size_t size, Value value) {
    auto* numbers = new std::int64_t[size ? size : 1];
    nb::capsule owner(numbers, [](void* memory) noexcept { delete[] static_cast<std::int64_t*>(memory); });
    for (std::size_t i = 0; i < size; i++) numbers[i] = static_cast<std::int64_t>(value(i));
    return Column(numbers, {size}, owner);
}

template <typename Rows, typename Value>
Column column(const Rows& rows, Value value) {
    return numbered_column(rows.size(), [&](std::size_t i) { return value(rows[i]); });
}

// When and of what each of `size` samples was taken, if all of `probed` were at every instant.
Column sample_times(const Simulation& simulation, std::size_t size, const std::vector<std::uint32_t>& probed) {
    return numbered_column(size, [&](std::size_t i) { return simulation.sample_times_ps[i / probed.size()]; });
}

Column sampled(std::size_t size, const std::vector<std::uint32_t>& probed) {
    return numbered_column(size, [&](std::size_t i) { return probed[i % probed.size()]; });
}

// Packets of a transfer that left at least once, and those that left again.
std::int64_t packets_sent(const Simulation& simulation, const Transfer& transfer) {
    if (transfer.start_ps == NOT_YET || transfer.queue_pair == NONE) return 0;
    const std::uint32_t highest = simulation.senders[transfer.queue_pair].highest_sequence;
    return std::int64_t{std::min(highest, transfer.end_sequence)} -
           transfer.first_sequence(simulation.settings.mtu_bytes) +
           static_cast<std::int64_t>(transfer.num_retransmitted);
}

Picoseconds mean_ps(Picoseconds sum_ps, std::int64_t num) {
    return num > 0 ? sum_ps / num : NOT_YET;
}

// A column of transfers `begin` to `end` - 1, or of what is kept of each beside it.
template <typename Rows, typename Value>
Column column_of_rows(const Rows& rows, std::size_t begin, std::size_t end, Value value) {
    return numbered_column(end - begin, [&](std::size_t i) { return value(rows[begin + i]); });
}

}  // namespace

std::vector<std::string> transfer_column_names(const Simulation& simulation) {
    std::vector<std::string> names{
        "ready_ps", "start_ps", "finish_ps", "acknowledged_ps", "packets_sent", "packets_retransmitted", "cnps"};
    if (!simulation.round_trips.empty()) names.insert(names.end(), {"mean_rtt_ps", "mean_endpoint_ps"});
    if (simulation.at_mean_rates.are_taken) names.insert(names.end(), {"finish_low_ps", "finish_high_ps"});
    return names;
}

Column transfer_column(const Simulation& simulation, const std::string& name, std::size_t begin, std::size_t end) {
    const auto of_transfer = [&](auto value) { return column_of_rows(simulation.transfers, begin, end, value); };
    const auto of_trips = [&](auto value) { return column_of_rows(simulation.round_trips, begin, end, value); };
    if (begin > end || end > simulation.transfers.size()) throw nb::index_error("transfers that do not exist");
    if (name == "ready_ps") return of_transfer([](const Transfer& row) { return row.ready_ps; });
    if (name == "start_ps") return of_transfer([](const Transfer& row) { return row.start_ps; });
    if (name == "finish_ps") return of_transfer([](const Transfer& row) { return row.finish_ps; });
    if (name == "acknowledged_ps") return of_transfer([](const Transfer& row) { return row.acknowledged_ps; });
    if (name == "packets_sent") return of_transfer([&](const Transfer& row) { return packets_sent(simulation, row); });
    if (name == "packets_retransmitted") return of_transfer([](const Transfer& row) { return row.num_retransmitted; });
    if (name == "cnps") return of_transfer([](const Transfer& row) { return row.num_cnps; });
    if (simulation.at_mean_rates.are_taken && name.starts_with("finish_")) {
        const auto& bounds_ps =
            name == "finish_low_ps" ? simulation.at_mean_rates.low_ps : simulation.at_mean_rates.high_ps;
        return numbered_column(end - begin, [&](std::size_t i) {
            return simulation.transfers[begin + i].finish_ps == NOT_YET ? NOT_YET : bounds_ps[begin + i];
        });
    }
    if (simulation.round_trips.empty()) throw nb::key_error(name.c_str());
    if (name == "mean_rtt_ps") return of_trips([](const RoundTrips& row) { return mean_ps(row.rtt_ps, row.num); });
    if (name == "mean_endpoint_ps")
        return of_trips([](const RoundTrips& row) { return mean_ps(row.endpoint_ps, row.num); });
    throw nb::key_error(name.c_str());
}

Columns transfer_columns(const Simulation& simulation) {
    Columns columns;
    for (const std::string& name : transfer_column_names(simulation)) {
        columns.insert_or_assign(name, transfer_column(simulation, name, 0, simulation.transfers.size()));
    }
    return columns;
}

// Not known where a span has passed.
static std::int64_t largest_queue(const Simulation& simulation, std::size_t port) {
    const std::vector<bool>& passed = simulation.at_mean_rates.passed_port;
    return !passed.empty() && passed[port] ? -1 : simulation.ports[port].max_queue_bytes;
}

Columns port_columns(const Simulation& simulation) {
    const auto& ports = simulation.ports;
    const auto& port_stats = simulation.port_stats;
    const auto index_of = [&](const Port& port) { return static_cast<std::uint32_t>(&port - ports.data()); };
    return {
        {"tx_bytes", column(ports, [](const Port& port) { return port.tx_bytes; })},
        {"tx_packets", numbered_column(ports.size(),
                                       [&](std::size_t port) {
                                           return simulation.tx_packets(port, DATA) +
                                                  simulation.tx_packets(port, CONTROL);
                                       })},
        {"data_packets",
         numbered_column(ports.size(), [&](std::size_t port) { return simulation.tx_packets(port, DATA); })},
        {"dropped_packets", column(port_stats, [](const PortStats& stats) { return stats.dropped_packets; })},
        {"ecn_marked_packets", column(port_stats, [](const PortStats& stats) { return stats.marked_packets; })},
        {"pauses", column(port_stats, [](const PortStats& stats) { return stats.num_pauses; })},
        {"paused_ps", column(ports, [&](const Port& port) { return simulation.paused_ps(index_of(port)); })},
        {"max_queue_bytes",
         numbered_column(ports.size(), [&](std::size_t port) { return largest_queue(simulation, port); })},
    };
}

Columns queue_columns(const Simulation& simulation) {
    const auto& outputs = simulation.priorities.outputs;
    const auto& inputs = simulation.priorities.inputs;
    const auto& stats = simulation.priorities.stats;
    const std::uint32_t num_priorities = simulation.priorities.size();
    const auto& watchdogs = simulation.priorities.watchdogs;
    const auto storms = [&](std::size_t queue) { return watchdogs.empty() ? 0 : watchdogs[queue].num_storms; };
    const auto paused_ps = [&](std::size_t queue) {
        const Picoseconds present_ps = simulation.now_ps - stats[queue].paused_since_ps;
        return stats[queue].paused_ps + (outputs[queue].is_paused ? present_ps : 0);
    };
    return {
        {"port", numbered_column(outputs.size(), [&](std::size_t queue) { return queue / num_priorities; })},
        {"priority", numbered_column(outputs.size(), [&](std::size_t queue) { return queue % num_priorities; })},
        {"tx_bytes", column(outputs, [](const OutputQueue& output) { return output.tx_bytes; })},
        {"tx_packets", column(outputs, [](const OutputQueue& output) { return output.tx_packets; })},
        {"ecn_marked_packets", column(stats, [](const QueueStats& queue) { return queue.marked_packets; })},
        {"dropped_packets", column(stats, [](const QueueStats& queue) { return queue.dropped_packets; })},
        {"max_queue_bytes", column(outputs, [](const OutputQueue& output) { return output.max_queue_bytes; })},
        {"pauses", column(stats, [](const QueueStats& queue) { return queue.num_pauses; })},
        {"paused_ps", numbered_column(outputs.size(), paused_ps)},
        {"pause_frames_sent", column(stats, [](const QueueStats& queue) { return queue.pause_frames_sent; })},
        {"pause_frames_received", column(stats, [](const QueueStats& queue) { return queue.pause_frames_received; })},
        {"pause_storms", numbered_column(outputs.size(), storms)},
        {"input_dropped_packets", column(stats, [](const QueueStats& queue) { return queue.input_dropped_packets; })},
        {"max_headroom_bytes", column(inputs, [](const InputQueue& input) { return input.max_headroom_bytes; })},
    };
}

Columns port_sample_columns(const Simulation& simulation) {
    const auto& rows = simulation.port_samples;
    return {
        {"time_ps", sample_times(simulation, rows.size(), simulation.probed_ports)},
        {"port", sampled(rows.size(), simulation.probed_ports)},
        {"queue_bytes", column(rows, [](const PortSample& row) { return row.queue_bytes; })},
        {"tx_bytes", column(rows, [](const PortSample& row) { return row.tx_bytes; })},
        {"paused", column(rows, [](const PortSample& row) { return row.is_paused; })},
        {"paused_ps", column(rows, [](const PortSample& row) { return row.paused_ps; })},
    };
}

Columns flow_sample_columns(const Simulation& simulation) {
    constexpr double MOST = 1e18;  // a law may set any number
    const auto& rows = simulation.flow_samples;
    return {
        {"time_ps", sample_times(simulation, rows.size(), simulation.probed_flows)},
        {"qp", sampled(rows.size(), simulation.probed_flows)},
        {"rate_bps", column(rows, [&](const FlowSample& row) { return std::min(row.rate_bps, MOST); })},
        {"cwnd_bytes", column(rows, [&](const FlowSample& row) { return std::min(row.cwnd_bytes, MOST); })},
        {"rtt_ps", column(rows, [](const FlowSample& row) { return row.rtt_ps; })},
        {"in_flight_bytes", column(rows, [](const FlowSample& row) { return row.in_flight_bytes; })},
        {"acknowledged_packets", column(rows, [](const FlowSample& row) { return row.acknowledged_packets; })},
    };
}

Columns capture_columns(const Simulation& simulation) {
    const auto& rows = simulation.captured;
    return {
        {"time_ps", column(rows, [](const CapturedPacket& row) { return row.time_ps; })},
        {"qp", column(rows, [](const CapturedPacket& row) { return row.queue_pair; })},
        {"sequence", column(rows, [](const CapturedPacket& row) { return row.sequence; })},
        {"type", column(rows, [](const CapturedPacket& row) { return static_cast<std::int64_t>(row.type); })},
        {"is_marked", column(rows, [](const CapturedPacket& row) { return row.is_marked; })},
        {"is_last_hop", column(rows, [](const CapturedPacket& row) { return row.is_last_hop; })},
        {"entropy", column(rows, [](const CapturedPacket& row) { return row.entropy; })},
        {"expected_sequence", column(rows, [](const CapturedPacket& row) { return row.expected_sequence; })},
        {"report_first", column(rows, [](const CapturedPacket& row) { return row.report.first; })},
        {"report_bits",
         column(rows, [](const CapturedPacket& row) { return static_cast<std::int64_t>(row.report.arrived); })},
        {"credit_bytes", column(rows, [](const CapturedPacket& row) { return row.credit_bytes; })},
    };
}

Columns message_columns(const Simulation& simulation) {
    const auto& rows = simulation.transfers;
    return {
        {"first_sequence",
         column(rows, [&](const Transfer& row) { return row.first_sequence(simulation.settings.mtu_bytes); })},
        {"end_sequence", column(rows, [](const Transfer& row) { return row.end_sequence; })},
    };
}

Columns waiting_columns(Simulation& simulation) {
    const auto bytes = waiting_bytes(simulation);
    const std::vector rows(bytes.begin(), bytes.end());
    return {
        {"ingress", column(rows, [](const auto& row) { return row.first.first; })},
        {"port", column(rows, [](const auto& row) { return row.first.second; })},
        {"bytes", column(rows, [](const auto& row) { return row.second; })},
    };
}

Columns hold_columns(const Simulation& simulation) {
    const std::vector<Hold> rows = holds(simulation);
    return {
        {"port", column(rows, [](const Hold& hold) { return hold.queue; })},
        {"resume_below_bytes", column(rows, [](const Hold& hold) { return hold.resume_below_bytes; })},
    };
}

Columns input_columns(const Simulation& simulation) {
    const auto& inputs = simulation.priorities.inputs;
    return {{"headroom_bytes", column(inputs, [](const InputQueue& input) { return input.headroom_bytes; })}};
}

Columns fault_drop_columns(const Simulation& simulation) {
    const auto& rows = simulation.faults.health;
    return {
        {"link_down", column(rows, [](const PortHealth& row) { return row.dropped[LINK_DOWN]; })},
        {"no_route", column(rows, [](const PortHealth& row) { return row.dropped[NO_WAY]; })},
        {"bit_error", column(rows, [](const PortHealth& row) { return row.dropped[BIT_ERROR]; })},
    };
}

Columns milestone_columns(const Simulation& simulation) {
    const auto& rows = simulation.faults.milestones;
    return {
        {"time_ps", column(rows, [](const Milestone& row) { return row.time_ps; })},
        {"acknowledged_bytes", column(rows, [](const Milestone& row) { return row.acknowledged_bytes; })},
    };
}

Columns failure_columns(const Simulation& simulation) {
    const auto& rows = simulation.failed_pairs;
    return {
        {"time_ps", column(rows, [](const FailedPair& row) { return row.time_ps; })},
        {"qp", column(rows, [](const FailedPair& row) { return row.queue_pair; })},
    };
}

std::map<std::string, std::uint64_t> skip_counts(const Simulation& simulation) {
    const MeanRateResults& results = simulation.at_mean_rates;
    return {
        {"spans", results.num_spans},
        {"packets", results.num_packets},
        {"events", results.num_events},
        {"audits", results.num_audits},
        {"audited_counts", results.num_predicted},
        {"audited_counts_inside", results.num_inside},
    };
}

std::map<std::string, std::uint64_t> packet_counts(const Simulation& simulation) {
    const PacketCounts &data = simulation.data_packets, &control = simulation.control_packets;
    std::map<std::string, std::uint64_t> counts = {
        {"sent", data.sent + control.sent},
        {"delivered", data.delivered + control.delivered},
        {"dropped", data.dropped + control.dropped},
        {"in_flight", simulation.packets.num_live()},
        {"data_sent", data.sent},
        {"data_delivered", data.delivered},
        {"data_dropped", data.dropped},
        {"data_out_of_order", simulation.num_out_of_order},
        {"data_refused", simulation.num_refused},
    };
    if (simulation.settings.trim_above_bytes > 0) counts["data_trimmed"] = simulation.num_trimmed;
    if (!simulation.credited_senders.empty()) counts["grants"] = simulation.num_grants;
    return counts;
}

nb::bytes flow_records(const Simulation& simulation) {
    std::string records;
    for (std::size_t qp = 0; qp < simulation.senders.size(); qp++) {
        records.append(reinterpret_cast<const char*>(&simulation.flows[qp * simulation.flow_stride]),
                       simulation.settings.flow_bytes);
    }
    return nb::bytes(records.data(), records.size());
}

}  // namespace netsim
