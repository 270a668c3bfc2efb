#include "inputs.hpp"

#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace netsim {
namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> span_of(const Array<T>& array) {
    return {array.data(), array.size()};
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

}  // namespace

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
        .drain_rate = arrays.integers("drain_rate"),
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
        .epochs =
            {
                .time = arrays.integers("epoch_time"),
                .set = arrays.integers("epoch_set"),
                .offset = arrays.get<std::uint32_t>("path_set_offset"),
                .flow = arrays.get<std::uint32_t>("path_set_flow"),
                .position = arrays.get<std::uint32_t>("path_set_position"),
            },
        .faults =
            {
                .time = arrays.integers("fault_time"),
                .effect = arrays.integers("fault_effect"),
                .port = arrays.integers("fault_port"),
                .value = arrays.get<double>("fault_value"),
            },
        .priorities =
            {
                .weight = arrays.integers("priority_weight"),
                .is_lossless = arrays.integers("priority_is_lossless"),
                .alpha = arrays.get<double>("priority_alpha"),
                .ecn_min = arrays.integers("priority_ecn_min"),
                .ecn_max = arrays.integers("priority_ecn_max"),
                .ecn_max_fraction = arrays.get<double>("priority_ecn_max_fraction"),
                .output_reserve = arrays.integers("priority_output_reserve"),
                .input_reserve = arrays.integers("priority_input_reserve"),
                .input_headroom = arrays.integers("priority_input_headroom"),
                .resume_offset = arrays.integers("priority_resume_offset"),
                .port_node = arrays.integers("priority_port_node"),
                .shared_buffer = arrays.integers("priority_shared_buffer"),
                .headroom_pool = arrays.integers("priority_headroom_pool"),
                .queue_pair = arrays.integers("priority_queue_pair"),
            },
        .retransmission_wait = arrays.integers("retransmission_wait"),
        .reorder_window = arrays.integers("reorder_window"),
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
        .probed_flow = arrays.integers("probed_flow"),
        .captured_flow = arrays.integers("captured_flow"),
    });
}

}  // namespace netsim
