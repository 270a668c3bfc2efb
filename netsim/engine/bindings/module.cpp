// The Python module `fabrictune.netsim._engine`: arrays in, a Simulation that advances without the interpreter's lock,
// columns out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <stdexcept>

#include "../skip/component.hpp"
#include "../state/simulation.hpp"
#include "columns.hpp"
#include "fluid.hpp"
#include "inputs.hpp"
#include "law.hpp"
#include "mean_rates.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace netsim {
namespace {

// While it advances, a simulation changes without the interpreter's lock.
void require_rest(const Simulation& simulation) {
    if (simulation.is_advancing)
        throw std::runtime_error("the simulation is advancing in another thread; use it between two calls of advance");
}

// It has all its transfers before it starts, and starts once, before it advances.
void require_start(const Simulation& simulation, bool has_started) {
    if (simulation.has_started == has_started) return;
    throw std::runtime_error(has_started ? "the simulation has not started; call start once it has all its transfers"
                                         : "the simulation has started; make a new one for other transfers");
}

class Advancing {
  public:
    explicit Advancing(Simulation& simulation) : simulation_(simulation) { simulation_.is_advancing = true; }
    ~Advancing() { simulation_.is_advancing = false; }
    Advancing(const Advancing&) = delete;
    Advancing& operator=(const Advancing&) = delete;

  private:
    Simulation& simulation_;
};

Outcome advance(Simulation& simulation, std::uint64_t num_events) {
    require_rest(simulation);
    require_start(simulation, true);
    const Advancing advancing(simulation);
    const nb::gil_scoped_release release;
    return simulation.advance(num_events);
}

void add_more_transfers(Simulation& simulation, const ByName& arrays) {
    require_start(simulation, false);
    add_transfers(simulation, arrays);
}

void start(Simulation& simulation) {
    require_start(simulation, false);
    simulation.start();
}

// A reader of a simulation at rest.
template <typename Result, typename Owner, typename... More>
auto at_rest(Result (*read)(Owner&, More...)) {
    return [read](Owner& simulation, More... more) {
        require_rest(simulation);
        return read(simulation, more...);
    };
}

template <typename Member, typename Owner>
auto at_rest(Member Owner::* member) {
    return [member](Simulation& simulation) {
        require_rest(simulation);
        return std::invoke(member, simulation);
    };
}

std::uint32_t peak_packets(const Simulation& simulation) {
    return simulation.packets.peak_live();
}

}  // namespace
}  // namespace netsim

NB_MODULE(_engine, module) {
    using namespace netsim;
    module.doc() = "The packet engine, compiled; fabrictune.netsim.packet is its face.";
    module.attr("MAX_IDS") = MAX_IDS;
    module.attr("MAX_PACKETS") = MAX_PACKETS;
    module.attr("BYTES_PER_PACKET") = sizeof(Packet);
    module.attr("BYTES_PER_PORT") = sizeof(Port) + sizeof(PortStats);
    module.attr("BYTES_PER_QUEUE_PAIR") = sizeof(Sender) + sizeof(Receiver);
    module.attr("BYTES_PER_SELECTIVE_PAIR") =
        sizeof(SelectiveSender) + sizeof(SelectiveReceiver) + RingBuffer<Transmission>::FIRST_BYTES;
    module.attr("BYTES_PER_TRACKED_PACKET") = 3 * sizeof(Transmission) + sizeof(std::uint32_t);
    module.attr("BYTES_PER_CREDITED_PAIR") = sizeof(CreditedSender) + sizeof(CreditedReceiver);
    module.attr("BYTES_PER_GRANT_PACER") = sizeof(GrantPacer);
    module.attr("BYTES_PER_ENDPOINT") = sizeof(Endpoint);
    module.attr("BYTES_PER_NIC_BUFFER") = sizeof(NicBuffer);
    module.attr("BYTES_PER_ROUND_TRIPS") = sizeof(RoundTrips);
    module.attr("BYTES_PER_RECEIVE_QUEUE") =
        sizeof(ReceiveQueue) + sizeof(RefusedSender) + RingBuffer<Picoseconds>::FIRST_BYTES;
    module.attr("BYTES_PER_TRANSFER") = sizeof(Transfer);
    module.attr("BYTES_PER_RANDOM_STREAM") = sizeof(RandomStream);
    module.attr("BYTES_PER_PORT_HEALTH") = sizeof(PortHealth);
    module.attr("BYTES_PER_FLOWLET") = sizeof(Flowlet);
    module.attr("BYTES_PER_PORT_SAMPLE") = sizeof(PortSample);
    module.attr("BYTES_PER_FLOW_SAMPLE") = sizeof(FlowSample);
    module.attr("BYTES_PER_CAPTURED_PACKET") = sizeof(CapturedPacket);
    module.attr("BYTES_PER_PRIORITY") = sizeof(OutputQueue) + sizeof(InputQueue) + sizeof(QueueStats);
    module.attr("BYTES_PER_WATCHDOG") = sizeof(Watchdog);
    module.attr("BYTES_PER_TELEMETRY") = Trails::BYTES_PER_PACKET;
    module.attr("SKIP_BYTES_PER_PORT") = SKIP_BYTES_PER_PORT;
    module.attr("SKIP_BYTES_PER_PAIR") = SKIP_BYTES_PER_PAIR;
    module.attr("SKIP_BYTES_PER_PACKET") = SKIP_BYTES_PER_PACKET;
    module.attr("SKIP_BYTES_PER_LOGGED") = sizeof(LawCall);
    module.attr("SKIP_BYTES_PER_VALUE") = sizeof(std::int64_t);
    bind_law(module);
    bind_mean_rates(module);
    bind_fluid(module);

    nb::enum_<Outcome>(module, "Outcome")
        .value("RUNNING", Outcome::Running)
        .value("FINISHED", Outcome::Finished)
        .value("STALLED", Outcome::Stalled)
        .value("TIME_LIMIT", Outcome::TimeLimit);
    nb::class_<Simulation>(module, "Simulation")
        .def(nb::new_(&make_simulation), nb::kw_only(), "settings"_a, "law"_a, "arrays"_a)
        .def("add_transfers", at_rest(add_more_transfers), "arrays"_a)
        .def("start", at_rest(start))
        .def("advance", &advance, "num_events"_a)
        .def_prop_ro("now_ps", at_rest(&Simulation::now_ps))
        .def_prop_ro("acknowledged_bytes", at_rest(&Simulation::acknowledged_bytes))
        .def_prop_ro("num_captured", at_rest(&Simulation::num_captured))
        .def_prop_ro("has_all_samples", at_rest(&Simulation::has_all_samples))
        .def("settle", at_rest(&Simulation::settle))
        .def_prop_ro("num_events", at_rest(&Simulation::num_events))
        .def_prop_ro("num_skipped_events", at_rest(&Simulation::num_skipped_events))
        .def_prop_ro("not_skipped", at_rest(&Simulation::not_skipped))
        .def_prop_ro("num_parts", at_rest(&Simulation::num_parts))
        .def_prop_ro("not_cut", at_rest(&Simulation::not_cut))
        .def_prop_ro("part_of_port", at_rest(&Simulation::part_of_port))
        .def_prop_ro("peak_packets", at_rest(peak_packets))
        .def("packet_counts", at_rest(packet_counts))
        .def("skip_counts", at_rest(skip_counts))
        .def("transfer_columns", at_rest(transfer_columns))
        .def("transfer_column_names", at_rest(transfer_column_names))
        .def("transfer_column", at_rest(transfer_column), "name"_a, "begin"_a, "end"_a)
        .def("port_columns", at_rest(port_columns))
        .def("port_sample_columns", at_rest(port_sample_columns))
        .def("flow_sample_columns", at_rest(flow_sample_columns))
        .def("capture_columns", at_rest(capture_columns))
        .def("message_columns", at_rest(message_columns))
        .def("queue_columns", at_rest(queue_columns))
        .def("waiting_columns", at_rest(waiting_columns))
        .def("hold_columns", at_rest(hold_columns))
        .def("input_columns", at_rest(input_columns))
        .def("fault_drop_columns", at_rest(fault_drop_columns))
        .def("milestone_columns", at_rest(milestone_columns))
        .def("failure_columns", at_rest(failure_columns))
        .def("flow_records", at_rest(flow_records));
}
