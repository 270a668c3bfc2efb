// The Python module `fabrictune.topology._fairness`: paths, capacities and demands in, rates out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "water_filling.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Paths = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rates = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

template <typename T>
std::span<const T> span_of(const Array<T>& array) {
    return {array.data(), array.size()};
}

Rates max_min_rates(const Paths& port, const Array<double>& capacity_bps, const Array<double>& demand_bps,
                    const Array<std::int64_t>& weight) {
    auto rates = std::make_unique<std::vector<double>>();
    {
        const nb::gil_scoped_release release;
        fairness::WaterFilling filling({
            .port = {port.data(), port.size()},
            .num_hops = port.shape(1),
            .capacity_bps = span_of(capacity_bps),
            .demand_bps = span_of(demand_bps),
            .weight = span_of(weight),
        });
        *rates = filling.fill();
    }
    double* const numbers = rates->data();
    const std::size_t num_flows = rates->size();
    nb::capsule owner(rates.release(), [](void* memory) noexcept { delete static_cast<std::vector<double>*>(memory); });
    return Rates(numbers, {num_flows}, owner);
}

}  // namespace

NB_MODULE(_fairness, module) {
    module.doc() = "Max-min fair rates, compiled; fabrictune.topology.fairness is its face.";
    module.def("max_min_rates", &max_min_rates, nb::kw_only(), "port"_a, "capacity_bps"_a, "demand_bps"_a, "weight"_a);
}
