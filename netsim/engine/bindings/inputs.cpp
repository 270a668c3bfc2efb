#include "inputs.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <set>
#include <string>
#include <tuple>
#include <type_traits>

namespace nb = nanobind;

namespace netsim {
namespace {

// A setting: a number, an enumerator by its number, or a curve or a range by its numbers.
template <typename T>
bool from_python(nb::handle source, T& value) {
    if constexpr (std::is_enum_v<T>) {
        std::underlying_type_t<T> number{};
        if (!nb::try_cast(source, number)) return false;
        value = static_cast<T>(number);
        return true;
    } else {
        return nb::try_cast(source, value);
    }
}

bool from_python(nb::handle source, MarkingCurve& curve) {
    std::tuple<std::int64_t, std::int64_t, double> numbers;
    if (!nb::try_cast(source, numbers)) return false;
    curve = std::make_from_tuple<MarkingCurve>(numbers);
    return true;
}

bool from_python(nb::handle source, LoadRange& range) {
    std::tuple<std::int64_t, std::int64_t> numbers;
    if (!nb::try_cast(source, numbers)) return false;
    range = std::make_from_tuple<LoadRange>(numbers);
    return true;
}

// An array: a contiguous column of just that type. It must live, in Python, as long as the span is used.
template <typename T>
bool from_python(nb::handle source, std::span<const T>& column) {
    nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(source, array, false)) return false;
    column = {array.data(), array.size()};
    return true;
}

bool from_python(nb::handle source, std::span<const std::byte>& column) {
    std::span<const std::uint8_t> bytes;
    if (!from_python(source, bytes)) return false;
    column = std::as_bytes(bytes);
    return true;
}

// The values of a mapping, each of which has to be taken once.
class NamedValues {
  public:
    NamedValues(const nb::mapping& values, std::string kind) : values_(values), kind_(std::move(kind)) {}

    template <typename T>
    void take(const char* name, T& value) {
        if (!values_.contains(name)) throw nb::key_error((kind_ + " " + name + " is missing").c_str());
        if (!from_python(values_[name], value))
            throw nb::type_error((kind_ + " " + name + " has a wrong type").c_str());
        taken_.insert(name);
    }

    void require_all_taken() const {
        for (const nb::handle key : values_.keys()) {
            const auto name = nb::cast<std::string>(key);
            if (!taken_.contains(name)) throw nb::type_error((kind_ + " " + name + " is unknown").c_str());
        }
    }

  private:
    const nb::mapping& values_;
    std::string kind_;
    std::set<std::string> taken_;
};

}  // namespace

std::unique_ptr<Simulation> make_simulation(const ByName& settings, const Law& law, const ByName& arrays) {
    Inputs inputs;
    inputs.law = law;
    NamedValues numbers(settings, "setting");
#define SETTING(type, name) numbers.take(#name, inputs.settings.name)
#include "../state/settings.inl"
#undef SETTING
    numbers.require_all_taken();
    NamedValues columns(arrays, "array");
#define ARRAY(type, name) columns.take(#name, inputs.name)
#include "../state/arrays.inl"
#undef ARRAY
    columns.require_all_taken();
    return Simulation::create(inputs);
}

void add_transfers(Simulation& simulation, const ByName& arrays) {
    TransferRows rows;
    NamedValues columns(arrays, "array");
#define ARRAY(type, name) columns.take(#name, rows.name)
#include "../state/transfer_arrays.inl"
#undef ARRAY
    columns.require_all_taken();
    simulation.add_transfers(rows);
}

}  // namespace netsim
