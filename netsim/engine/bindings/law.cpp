#include "law.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <string>

#include "../state/simulation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace netsim {
namespace {

Law make_law(const std::map<std::string, std::uintptr_t>& handlers, std::uintptr_t params, bool uses_telemetry,
             bool reads_marks) {
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
    law.on_trim = reinterpret_cast<Law::OnTrim>(address("on_trim"));
    law.params = reinterpret_cast<void*>(params);
    law.uses_telemetry = uses_telemetry;
    law.reads_marks = reads_marks;
    return law;
}

// Raised as LawFaultError(event, status, queue pair, time in ps); the Python side words it.
void raise_law_fault(const std::exception_ptr& exception, void* type) {
    try {
        std::rethrow_exception(exception);
    } catch (const LawFault& fault) {
        const nb::tuple arguments =
            nb::make_tuple(static_cast<int>(fault.event), fault.status, fault.queue_pair, fault.now_ps);
        PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
    }
}

std::map<std::string, std::size_t> law_layout() {
    return {
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
}

}  // namespace

void bind_law(nb::module_& module) {
    const nb::object fault =
        nb::steal(PyErr_NewException("fabrictune.netsim._engine.LawFaultError", PyExc_RuntimeError, nullptr));
    module.attr("LawFaultError") = fault;
    nb::register_exception_translator(raise_law_fault, fault.ptr());
    module.def("law_layout", &law_layout);
    module.attr("MIN_RATE_BPS") = MIN_RATE_BPS;
    module.attr("MIN_CWND_BYTES") = MIN_CWND_BYTES;
    nb::class_<Law>(module, "Law")
        .def(
            "__init__",
            [](Law* law, const std::map<std::string, std::uintptr_t>& handlers, std::uintptr_t params,
               bool uses_telemetry,
               bool reads_marks) { new (law) Law(make_law(handlers, params, uses_telemetry, reads_marks)); },
            nb::kw_only(), "handlers"_a, "params"_a, "uses_telemetry"_a, "reads_marks"_a);
}

}  // namespace netsim
