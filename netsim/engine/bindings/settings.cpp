#include "settings.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "../settings.hpp"

namespace nb = nanobind;

namespace netsim {

void bind_settings(nb::module_& module) {
    nb::class_<Settings>(module, "Settings")
        .def(nb::init<>())
        .def_rw("mtu_bytes", &Settings::mtu_bytes)
        .def_rw("wire_overhead_bytes", &Settings::wire_overhead_bytes)
        .def_rw("ack_bytes", &Settings::ack_bytes)
        .def_rw("pause_frame_bytes", &Settings::pause_frame_bytes)
        .def_rw("ack_every_packets", &Settings::ack_every_packets)
        .def_prop_rw(
            "marking",
            [](const Settings& settings) {
                const MarkingCurve& curve = settings.marking;
                return std::tuple(curve.min_bytes, curve.max_bytes, curve.max_fraction);
            },
            [](Settings& settings, const std::tuple<std::int64_t, std::int64_t, double>& curve) {
                settings.marking = std::make_from_tuple<MarkingCurve>(curve);
            })
        .def_rw("is_pfc_enabled", &Settings::is_pfc_enabled)
        .def_rw("cnp_interval_ps", &Settings::cnp_interval_ps)
        .def_rw("cnp_delay_ps", &Settings::cnp_delay_ps)
        .def_rw("endpoint_delay_ps", &Settings::endpoint_delay_ps)
        .def_rw("endpoint_jitter_ps", &Settings::endpoint_jitter_ps)
        .def_rw("endpoint_key", &Settings::endpoint_key)
        .def_rw("window_packets", &Settings::window_packets)
        .def_rw("num_receives", &Settings::num_receives)
        .def_rw("replenish_ps", &Settings::replenish_ps)
        .def_rw("rnr_wait_ps", &Settings::rnr_wait_ps)
        .def_rw("rnr_retries", &Settings::rnr_retries)
        .def_rw("rnr_retries_are_limited", &Settings::rnr_retries_are_limited)
        .def_rw("nvlink_rate_bps", &Settings::nvlink_rate_bps)
        .def_rw("time_limit_ps", &Settings::time_limit_ps)
        .def_rw("probe_interval_ps", &Settings::probe_interval_ps)
        .def_rw("max_samples", &Settings::max_samples)
        .def_prop_rw(
            "capture_at", [](const Settings& settings) { return static_cast<std::uint32_t>(settings.capture_at); },
            [](Settings& settings, std::uint32_t point) { settings.capture_at = static_cast<CapturePoint>(point); })
        .def_rw("capture_port", &Settings::capture_port)
        .def_rw("max_captured", &Settings::max_captured)
        .def_rw("random_key", &Settings::random_key)
        .def_rw("fault_key", &Settings::fault_key)
        .def_rw("force_full", &Settings::force_full)
        .def_rw("full_frame_bytes", &Settings::full_frame_bytes)
        .def_rw("acknowledgement_priority", &Settings::acknowledgement_priority)
        .def_rw("cnp_priority", &Settings::cnp_priority)
        .def_rw("pause_quanta", &Settings::pause_quanta)
        .def_rw("is_pause_refreshed", &Settings::is_pause_refreshed)
        .def_rw("pause_patience_ps", &Settings::pause_patience_ps)
        .def_rw("watchdog_detect_ps", &Settings::watchdog_detect_ps)
        .def_rw("watchdog_restore_ps", &Settings::watchdog_restore_ps)
        .def_rw("watchdog_drops", &Settings::watchdog_drops)
        .def_prop_rw(
            "path_rule", [](const Settings& settings) { return static_cast<std::uint32_t>(settings.path_rule); },
            [](Settings& settings, std::uint32_t rule) { settings.path_rule = static_cast<PathRule>(rule); })
        .def_rw("flowlet_gap_ps", &Settings::flowlet_gap_ps)
        .def_rw("queue_step_bytes", &Settings::queue_step_bytes)
        .def_rw("queue_levels", &Settings::queue_levels)
        .def_rw("is_tie_random", &Settings::is_tie_random)
        .def_rw("control_has_choice", &Settings::control_has_choice)
        .def_rw("path_choice_key", &Settings::path_choice_key);
}

}  // namespace netsim
