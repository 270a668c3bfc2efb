#include "fluid.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../fluid/fluid.hpp"
#include "columns.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace netsim {
namespace {

using fluid::Fluid;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ports = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Factors = std::pair<double, double>;

template <typename Array>
auto span_of(const Array& array) {
    return std::span(array.data(), array.size());
}

template <typename T, typename Array>
std::vector<T> values_of(const Array& array) {
    return {array.data(), array.data() + array.size()};
}

std::unique_ptr<Fluid> make_fluid(const Ports& path, std::size_t path_stride, const Integers& port_rate_bps,
                                  const Integers& port_delay_ps, std::int64_t mtu_bytes,
                                  std::int64_t wire_overhead_bytes, std::int64_t ack_bytes,
                                  std::int64_t ack_every_packets, std::int64_t nvlink_rate_bps,
                                  std::int64_t time_limit_ps, std::uint32_t num_transfers,
                                  std::uint32_t most_uncrowded) {
    const fluid::Wire wire{mtu_bytes, wire_overhead_bytes, ack_bytes, ack_every_packets};
    fluid::Paths paths(values_of<std::uint32_t>(path), path_stride, values_of<std::int64_t>(port_rate_bps),
                       values_of<std::int64_t>(port_delay_ps), wire);
    return std::make_unique<Fluid>(std::move(paths), fluid::Settings{
                                                         .wire = wire,
                                                         .nvlink_rate_bps = nvlink_rate_bps,
                                                         .time_limit_ps = time_limit_ps,
                                                         .num_transfers = num_transfers,
                                                         .most_uncrowded = most_uncrowded,
                                                     });
}

void add_transfers(Fluid& run, const nb::typed<nb::mapping, nb::str, nb::any>& arrays) {
    const auto column = [&](const char* name) { return nb::cast<Integers>(arrays[name]); };
    const Integers medium = column("transfer_medium"), qp = column("transfer_qp"), bytes = column("transfer_bytes"),
                   start = column("transfer_start"), delay = column("transfer_delay"),
                   num_dependencies = column("num_dependencies"), dependency_row = column("dependency_row"),
                   nvlink_source = column("nvlink_source"), nvlink_destination = column("nvlink_destination");
    run.add_transfers({span_of(medium), span_of(qp), span_of(bytes), span_of(start), span_of(delay),
                       span_of(num_dependencies), span_of(dependency_row), span_of(nvlink_source),
                       span_of(nvlink_destination)});
}

Column fluid_column(const Fluid& run, const std::string& name, std::size_t begin, std::size_t end) {
    if (begin > end || end > run.num_transfers()) throw nb::index_error("transfers that do not exist");
    auto numbers = std::make_unique<std::vector<std::int64_t>>();
    numbers->reserve(end - begin);
    for (std::size_t row = begin; row < end; row++) numbers->push_back(run.value(name, row));
    std::int64_t* const first = numbers->data();
    nb::capsule owner(numbers.release(),
                      [](void* memory) noexcept { delete static_cast<std::vector<std::int64_t>*>(memory); });
    return Column(first, {end - begin}, owner);
}

}  // namespace

void bind_fluid(nb::module_& module) {
    nb::class_<Fluid>(module, "Fluid")
        .def(nb::new_(&make_fluid), nb::kw_only(), "path"_a, "path_stride"_a, "port_rate_bps"_a, "port_delay_ps"_a,
             "mtu_bytes"_a, "wire_overhead_bytes"_a, "ack_bytes"_a, "ack_every_packets"_a, "nvlink_rate_bps"_a,
             "time_limit_ps"_a, "num_transfers"_a, "most_uncrowded"_a)
        .def("add_transfers", &add_transfers, "arrays"_a)
        .def(
            "start",
            [](Fluid& run, const Factors& alone, const Factors& held) {
                run.start({alone.first, alone.second}, {held.first, held.second});
            },
            "alone"_a, "held"_a)
        .def("advance", &Fluid::advance, "num_events"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("now_ps", &Fluid::now_ps)
        .def_prop_ro("num_events", &Fluid::num_events)
        .def_prop_ro("finished_bytes", &Fluid::finished_bytes)
        .def("transfer_column_names", [](const Fluid&) { return Fluid::transfer_column_names(); })
        .def("transfer_column", &fluid_column, "name"_a, "begin"_a, "end"_a);
    module.attr("BYTES_PER_FLUID_TRANSFER") = Fluid::BYTES_PER_TRANSFER;
}

}  // namespace netsim
