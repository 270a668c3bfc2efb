#include "mean_rates.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../skip/stationary.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace netsim {

// The fields of netsim/reference/mean_rates.py's MeanRate, in their order; no windows if there are too few.
void bind_mean_rates(nb::module_& module) {
    nb::class_<MeanRate>(module, "MeanRate")
        .def_ro("mean", &MeanRate::mean)
        .def_ro("deviation", &MeanRate::deviation)
        .def_ro("decline", &MeanRate::decline)
        .def_ro("window_ps", &MeanRate::window_ps)
        .def_ro("num_windows", &MeanRate::num_windows)
        .def_ro("is_stationary", &MeanRate::is_stationary);
    module.def(
        "estimate_mean_rate",
        [](const std::vector<double>& rates, const std::vector<double>& in_flight,
           const std::vector<double>& lengths_ps, std::size_t num) {
            if (in_flight.size() != rates.size() || lengths_ps.size() != rates.size() || num < rates.size())
                throw nb::value_error("series of different lengths");
            return estimate_mean_rate(rates.data(), in_flight.data(), lengths_ps.data(), rates.size(), num);
        },
        "rates"_a, "in_flight"_a, "lengths_ps"_a, "num"_a);
    module.def("half_width_packets", &half_width_packets, "rate"_a, "span_ps"_a);
}

}  // namespace netsim
