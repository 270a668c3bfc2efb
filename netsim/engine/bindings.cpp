// The Python module `netsim._engine`: arrays in, a Simulation that advances without the interpreter's lock, columns
// out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <map>
#include <string>

#include "simulation.hpp"
#include "waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace netsim {
namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;
using Columns = std::map<std::string, Column>;

template <typename T>
std::span<const T> span_of(const Array<T>& array) {
    return {array.data(), array.size()};
}

template <typename Rows, typename Value>
Column column(const Rows& rows, Value value) {
    auto* numbers = new std::int64_t[rows.size() ? rows.size() : 1];
    nb::capsule owner(numbers, [](void* memory) noexcept { delete[] static_cast<std::int64_t*>(memory); });
    for (std::size_t i = 0; i < rows.size(); i++) numbers[i] = static_cast<std::int64_t>(value(rows[i]));
    return Column(numbers, {rows.size()}, owner);
}

Law make_law(const std::map<std::string, std::uintptr_t>& handlers, std::uintptr_t params, bool uses_telemetry) {
    const auto address = [&](const char* event) {
        const auto found = handlers.find(event);
        return found == handlers.end() ? std::uintptr_t{0} : found->second;
    };
    Law law;
    law.on_start = reinterpret_cast<Law::OnInstant>(address("on_start"));
    law.on_ack = reinterpret_cast<Law::OnAck>(address("on_ack"));
    law.on_cnp = reinterpret_cast<Law::OnInstant>(address("on_cnp"));
    law.on_timer = reinterpret_cast<Law::OnTimer>(address("on_timer"));
    law.on_nack = reinterpret_cast<Law::OnInstant>(address("on_nack"));
    law.on_timeout = reinterpret_cast<Law::OnInstant>(address("on_timeout"));
    law.on_send = reinterpret_cast<Law::OnSend>(address("on_send"));
    law.params = reinterpret_cast<void*>(params);
    law.uses_telemetry = uses_telemetry;
    return law;
}

// The arrays of a run by name. They must live, in Python, as long as the spans are used.
class Arrays {
  public:
    explicit Arrays(const nb::dict& arrays) : arrays_(arrays) {}

    // Throws KeyError if it is missing and TypeError if it is not a contiguous column of T.
    template <typename T>
    std::span<const T> get(const char* name) const {
        Array<T> array;
        if (!nb::try_cast(arrays_[name], array, false)) throw nb::type_error(name);
        return span_of(array);
    }

    std::span<const std::int64_t> integers(const char* name) const { return get<std::int64_t>(name); }

  private:
    const nb::dict& arrays_;
};

std::unique_ptr<Simulation> make_simulation(const Settings& settings, const Law& law, const nb::dict& named_arrays,
                                            std::uint32_t path_stride, std::size_t flow_bytes) {
    const Arrays arrays(named_arrays);
    return Simulation::create({
        .settings = settings,
        .law = law,
        .port_rate_bps = arrays.integers("port_rate_bps"),
        .port_delay_ps = arrays.integers("port_delay_ps"),
        .port_peer = arrays.integers("port_peer"),
        .port_is_host = arrays.integers("port_is_host"),
        .pause_above = arrays.integers("pause_above"),
        .resume_below = arrays.integers("resume_below"),
        .ingress_limit = arrays.integers("ingress_limit"),
        .pause_response = arrays.integers("pause_response"),
        .loss_fraction = arrays.get<double>("loss_fraction"),
        .path = arrays.get<std::uint32_t>("path"),
        .path_stride = path_stride,
        .next_hops =
            {
                .switch_behind = arrays.get<std::uint32_t>("next_hop_switch"),
                .row = arrays.get<std::uint32_t>("next_hop_row"),
                .exit = arrays.get<std::uint32_t>("next_hop_exit"),
                .set = arrays.get<std::uint32_t>("next_hop_set"),
                .offset = arrays.get<std::uint32_t>("next_hop_offset"),
                .port = arrays.get<std::uint32_t>("next_hop_port"),
                .weight = arrays.get<std::uint32_t>("next_hop_weight"),
            },
        .retransmission_wait = arrays.integers("retransmission_wait"),
        .flow = std::as_bytes(arrays.get<std::uint8_t>("flow")),
        .flow_bytes = flow_bytes,
        .transfer_medium = arrays.integers("transfer_medium"),
        .transfer_qp = arrays.integers("transfer_qp"),
        .nvlink_source = arrays.integers("nvlink_source"),
        .nvlink_destination = arrays.integers("nvlink_destination"),
        .transfer_bytes = arrays.integers("transfer_bytes"),
        .transfer_start = arrays.integers("transfer_start"),
        .transfer_delay = arrays.integers("transfer_delay"),
        .num_dependencies = arrays.integers("num_dependencies"),
        .dependent_offset = arrays.integers("dependent_offset"),
        .dependent_row = arrays.integers("dependent_row"),
        .probed_port = arrays.integers("probed_port"),
    });
}

// Packets of a transfer that left at least once, and those that left again.
std::int64_t packets_sent(const Simulation& simulation, const Transfer& transfer) {
    if (transfer.start_ps == NOT_YET || transfer.medium != Medium::Fabric) return 0;
    const std::uint32_t highest = simulation.senders[transfer.queue_pair].highest_sequence;
    return std::int64_t{std::min(highest, transfer.end_sequence)} - transfer.first_sequence +
           transfer.num_retransmitted;
}

Columns transfer_columns(const Simulation& simulation) {
    const auto& rows = simulation.transfers;
    return {
        {"ready_ps", column(rows, [](const Transfer& row) { return row.ready_ps; })},
        {"start_ps", column(rows, [](const Transfer& row) { return row.start_ps; })},
        {"finish_ps", column(rows, [](const Transfer& row) { return row.finish_ps; })},
        {"acknowledged_ps", column(rows, [](const Transfer& row) { return row.acknowledged_ps; })},
        {"packets_sent", column(rows, [&](const Transfer& row) { return packets_sent(simulation, row); })},
        {"packets_retransmitted", column(rows, [](const Transfer& row) { return row.num_retransmitted; })},
        {"cnps", column(rows, [](const Transfer& row) { return row.num_cnps; })},
    };
}

Columns port_columns(const Simulation& simulation) {
    const auto& ports = simulation.ports;
    const auto& ledgers = simulation.ledgers;
    const auto index_of = [&](const Port& port) { return static_cast<std::uint32_t>(&port - ports.data()); };
    return {
        {"tx_bytes", column(ports, [](const Port& port) { return port.tx_bytes; })},
        {"tx_packets",
         column(ports,
                [](const Port& port) { return std::int64_t{port.tx_packets[DATA]} + port.tx_packets[CONTROL]; })},
        {"data_packets", column(ports, [](const Port& port) { return port.tx_packets[DATA]; })},
        {"dropped_packets", column(ledgers, [](const PortLedger& ledger) { return ledger.dropped_packets; })},
        {"ecn_marked_packets", column(ledgers, [](const PortLedger& ledger) { return ledger.marked_packets; })},
        {"pauses", column(ledgers, [](const PortLedger& ledger) { return ledger.num_pauses; })},
        {"paused_ps", column(ports, [&](const Port& port) { return simulation.paused_ps(index_of(port)); })},
        {"max_queue_bytes", column(ports, [](const Port& port) { return port.max_queue_bytes; })},
    };
}

Columns sample_columns(const Simulation& simulation) {
    const auto& rows = simulation.samples;
    return {
        {"time_ps", column(rows, [](const Sample& row) { return row.time_ps; })},
        {"port", column(rows, [](const Sample& row) { return row.port; })},
        {"queue_bytes", column(rows, [](const Sample& row) { return row.queue_bytes; })},
        {"tx_bytes", column(rows, [](const Sample& row) { return row.tx_bytes; })},
        {"paused", column(rows, [](const Sample& row) { return row.is_paused; })},
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
    std::vector<std::uint32_t> rows;
    for (std::uint32_t port = 0; port < simulation.ports.size(); port++) {
        if (is_held(simulation.ports[port])) rows.push_back(port);
    }
    return {
        {"port", column(rows, [](std::uint32_t port) { return port; })},
        {"resume_below_bytes",
         column(rows, [&](std::uint32_t port) { return simulation.ledgers[port].resume_below_bytes; })},
    };
}

std::map<std::string, std::uint64_t> packet_counts(const Simulation& simulation) {
    const PacketCounts &data = simulation.data_packets, &control = simulation.control_packets;
    return {
        {"sent", data.sent + control.sent},
        {"delivered", data.delivered + control.delivered},
        {"dropped", data.dropped + control.dropped},
        {"in_flight", simulation.packets.num_live()},
        {"data_sent", data.sent},
        {"data_delivered", data.delivered},
        {"data_dropped", data.dropped},
        {"data_out_of_order", simulation.num_out_of_order},
    };
}

nb::bytes flow_records(const Simulation& simulation, std::size_t flow_bytes) {
    std::string records;
    for (std::size_t qp = 0; qp < simulation.senders.size(); qp++) {
        records.append(reinterpret_cast<const char*>(&simulation.flows[qp * simulation.flow_stride]), flow_bytes);
    }
    return nb::bytes(records.data(), records.size());
}

// Raised as LawFaultError(event, status, queue pair, time in ps); the Python side words it.
void raise_law_fault(const std::exception_ptr& exception, void* type) {
    try {
        std::rethrow_exception(exception);
    } catch (const LawFault& fault) {
        const nb::tuple arguments = nb::make_tuple(static_cast<int>(fault.event), static_cast<int>(fault.status),
                                                   fault.queue_pair, fault.now_ps);
        PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
    }
}

}  // namespace
}  // namespace netsim

NB_MODULE(_engine, module) {
    using namespace netsim;
    module.doc() = "The packet engine, compiled; netsim.packet is its face.";
    const nb::object fault = nb::steal(PyErr_NewException("netsim._engine.LawFaultError", PyExc_RuntimeError, nullptr));
    module.attr("LawFaultError") = fault;
    nb::register_exception_translator(raise_law_fault, fault.ptr());
    module.attr("MAX_IDS") = MAX_IDS;
    module.attr("MAX_PACKETS") = MAX_PACKETS;
    module.attr("BYTES_PER_PACKET") = sizeof(Packet);
    module.attr("BYTES_PER_PORT") = sizeof(Port) + sizeof(PortLedger);
    module.attr("BYTES_PER_QUEUE_PAIR") = sizeof(Sender) + sizeof(Receiver);
    module.attr("BYTES_PER_TRANSFER") = sizeof(Transfer);
    module.attr("BYTES_PER_RANDOM_STREAM") = sizeof(RandomStream);
    module.attr("BYTES_PER_FLOWLET") = sizeof(Flowlet);
    module.attr("BYTES_PER_TELEMETRY") = sizeof(TelemetryRecord) * MAX_TELEMETRY_HOPS;
    module.def("law_layout", [] {
        return std::map<std::string, std::size_t>{
            {"rate_bps", offsetof(FlowHeader, rate_bps)},
            {"cwnd_bytes", offsetof(FlowHeader, cwnd_bytes)},
            {"deadline_ps", offsetof(FlowHeader, deadline_ps)},
            {"line_rate_bps", offsetof(FlowHeader, line_rate_bps)},
            {"base_rtt_ps", offsetof(FlowHeader, base_rtt_ps)},
            {"mtu_bytes", offsetof(FlowHeader, mtu_bytes)},
            {"num_hops", offsetof(FlowHeader, num_hops)},
            {"flow_header", sizeof(FlowHeader)},
            {"telemetry.time_ps", offsetof(TelemetryRecord, time_ps)},
            {"telemetry.tx_bytes", offsetof(TelemetryRecord, tx_bytes)},
            {"telemetry.queue_bytes", offsetof(TelemetryRecord, queue_bytes)},
            {"telemetry.rate_bps", offsetof(TelemetryRecord, rate_bps)},
            {"telemetry", sizeof(TelemetryRecord)},
        };
    });

    nb::enum_<Outcome>(module, "Outcome")
        .value("RUNNING", Outcome::Running)
        .value("FINISHED", Outcome::Finished)
        .value("STALLED", Outcome::Stalled)
        .value("TIME_LIMIT", Outcome::TimeLimit);

    nb::class_<Settings>(module, "Settings")
        .def(nb::init<>())
        .def_rw("mtu_bytes", &Settings::mtu_bytes)
        .def_rw("wire_overhead_bytes", &Settings::wire_overhead_bytes)
        .def_rw("ack_bytes", &Settings::ack_bytes)
        .def_rw("pause_frame_bytes", &Settings::pause_frame_bytes)
        .def_rw("ack_every_packets", &Settings::ack_every_packets)
        .def_rw("ecn_min_bytes", &Settings::ecn_min_bytes)
        .def_rw("ecn_max_bytes", &Settings::ecn_max_bytes)
        .def_rw("ecn_max_fraction", &Settings::ecn_max_fraction)
        .def_rw("is_pfc_enabled", &Settings::is_pfc_enabled)
        .def_rw("cnp_interval_ps", &Settings::cnp_interval_ps)
        .def_rw("cnp_delay_ps", &Settings::cnp_delay_ps)
        .def_rw("endpoint_delay_ps", &Settings::endpoint_delay_ps)
        .def_rw("nvlink_rate_bps", &Settings::nvlink_rate_bps)
        .def_rw("time_limit_ps", &Settings::time_limit_ps)
        .def_rw("probe_interval_ps", &Settings::probe_interval_ps)
        .def_rw("max_samples", &Settings::max_samples)
        .def_rw("random_key", &Settings::random_key)
        .def_prop_rw(
            "path_rule", [](const Settings& settings) { return static_cast<std::uint32_t>(settings.path_rule); },
            [](Settings& settings, std::uint32_t rule) { settings.path_rule = static_cast<PathRule>(rule); })
        .def_rw("flowlet_gap_ps", &Settings::flowlet_gap_ps)
        .def_rw("queue_step_bytes", &Settings::queue_step_bytes)
        .def_rw("queue_levels", &Settings::queue_levels)
        .def_rw("is_tie_random", &Settings::is_tie_random)
        .def_rw("control_has_choice", &Settings::control_has_choice)
        .def_rw("path_choice_key", &Settings::path_choice_key);

    nb::class_<Law>(module, "Law")
        .def(
            "__init__",
            [](Law* law, const std::map<std::string, std::uintptr_t>& handlers, std::uintptr_t params,
               bool uses_telemetry) { new (law) Law(make_law(handlers, params, uses_telemetry)); },
            nb::kw_only(), "handlers"_a, "params"_a, "uses_telemetry"_a);

    nb::class_<Simulation>(module, "Simulation")
        .def(nb::new_(&make_simulation), nb::kw_only(), "settings"_a, "law"_a, "arrays"_a, "path_stride"_a,
             "flow_bytes"_a)
        .def("advance", &Simulation::advance, "num_events"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_ro("now_ps", &Simulation::now_ps)
        .def_ro("acknowledged_bytes", &Simulation::acknowledged_bytes)
        .def_prop_ro("num_events", [](const Simulation& simulation) { return simulation.queue.num_events(); })
        .def_prop_ro("peak_packets", [](const Simulation& simulation) { return simulation.packets.peak_live(); })
        .def("packet_counts", &packet_counts)
        .def("transfer_columns", &transfer_columns)
        .def("port_columns", &port_columns)
        .def("sample_columns", &sample_columns)
        .def("waiting_columns", &waiting_columns)
        .def("hold_columns", &hold_columns)
        .def("flow_records", &flow_records, "flow_bytes"_a);
}
