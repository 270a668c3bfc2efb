// The Python module `fabrictune.netsim._engine`: arrays in, a Simulation that advances without the interpreter's lock,
// columns out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "../state/simulation.hpp"
#include "columns.hpp"
#include "inputs.hpp"
#include "law.hpp"

namespace nb = nanobind;
using namespace nb::literals;

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
    bind_law(module);

    nb::enum_<Outcome>(module, "Outcome")
        .value("RUNNING", Outcome::Running)
        .value("FINISHED", Outcome::Finished)
        .value("STALLED", Outcome::Stalled)
        .value("TIME_LIMIT", Outcome::TimeLimit);
    nb::class_<Simulation>(module, "Simulation")
        .def(nb::new_(&make_simulation), nb::kw_only(), "settings"_a, "law"_a, "arrays"_a)
        .def("advance", &Simulation::advance, "num_events"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_ro("now_ps", &Simulation::now_ps)
        .def_ro("acknowledged_bytes", &Simulation::acknowledged_bytes)
        .def_ro("num_captured", &Simulation::num_captured)
        .def_ro("has_all_samples", &Simulation::has_all_samples)
        .def("settle", &Simulation::settle)
        .def_prop_ro("num_events", &Simulation::num_events)
        .def_ro("num_skipped_events", &Simulation::num_skipped_events)
        .def_ro("not_skipped", &Simulation::not_skipped)
        .def_prop_ro("peak_packets", [](const Simulation& simulation) { return simulation.packets.peak_live(); })
        .def("packet_counts", &packet_counts)
        .def("transfer_columns", &transfer_columns)
        .def("port_columns", &port_columns)
        .def("port_sample_columns", &port_sample_columns)
        .def("flow_sample_columns", &flow_sample_columns)
        .def("capture_columns", &capture_columns)
        .def("message_columns", &message_columns)
        .def("queue_columns", &queue_columns)
        .def("waiting_columns", &waiting_columns)
        .def("hold_columns", &hold_columns)
        .def("input_columns", &input_columns)
        .def("fault_drop_columns", &fault_drop_columns)
        .def("milestone_columns", &milestone_columns)
        .def("failure_columns", &failure_columns)
        .def("flow_records", &flow_records);
}
