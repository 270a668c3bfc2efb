#include "paths.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace netsim::fluid {

Paths::Paths(std::vector<std::uint32_t> port, std::size_t stride, std::vector<std::int64_t> rate_bps,
             std::vector<std::int64_t> delay_ps, const Wire& wire)
    : port_(std::move(port)),
      stride_(stride),
      rate_bps_(std::move(rate_bps)),
      delay_ps_(std::move(delay_ps)),
      wire_(wire) {
    const auto acknowledgement = static_cast<double>(wire.acknowledgement_bytes);
    const auto packets = static_cast<double>(wire.packets_per_acknowledgement * wire.full_frame_bytes());
    const double between_packets = acknowledgement / (packets + acknowledgement);
    for (std::uint32_t qp = 0; qp < num_pairs(); qp++) {
        slowest_port_.push_back(*std::ranges::min_element(data(qp), {}, [&](auto hop) { return rate_bps_[hop]; }));
        acknowledgement_rate_.push_back(std::llround(between_packets * slowest_rate(qp) / ACKNOWLEDGEMENT_UNIT));
    }
}

std::span<const std::uint32_t> Paths::row(std::size_t number) const {
    const std::uint32_t* first = &port_[number * stride_];
    return {first, std::find_if(first, first + stride_, [&](auto hop) { return hop >= num_ports(); })};
}

std::int64_t Paths::num_packets(std::int64_t bytes) const {
    return bytes > wire_.mtu_bytes ? (bytes + wire_.mtu_bytes - 1) / wire_.mtu_bytes : 1;
}

std::int64_t Paths::wire_bytes(std::int64_t bytes) const {
    const std::int64_t num_full = num_packets(bytes) - 1;
    return num_full * wire_.full_frame_bytes() + wire_.frame_bytes(bytes - num_full * wire_.mtu_bytes);
}

Picoseconds Paths::alone_ps(std::uint32_t qp, std::int64_t bytes) const {
    const std::int64_t num = num_packets(bytes);
    const std::int64_t last_bytes = wire_.frame_bytes(bytes - (num - 1) * wire_.mtu_bytes);
    Picoseconds rest_ps = 0, delay_ps = 0;
    for (const std::uint32_t port : data(qp)) {
        rest_ps += serialization_ps(last_bytes, rate_bps_[port]);
        delay_ps += delay_ps_[port];
    }
    if (num == 1) return delay_ps + rest_ps;
    Picoseconds full_ps = 0, slowest_ps = 0, longest_ps = 0;
    for (const std::uint32_t port : data(qp)) {
        const Picoseconds hop_ps = serialization_ps(wire_.full_frame_bytes(), rate_bps_[port]);
        full_ps += hop_ps;
        slowest_ps = std::max(slowest_ps, hop_ps);
        longest_ps = std::max(longest_ps, full_ps + (num - 2) * slowest_ps + rest_ps);
        rest_ps -= serialization_ps(last_bytes, rate_bps_[port]);
    }
    return delay_ps + longest_ps;
}

Picoseconds Paths::latency_ps(std::uint32_t qp, std::int64_t bytes) const {
    const double sending_ps = static_cast<double>(wire_bytes(bytes)) / slowest_rate(qp);
    return std::max<Picoseconds>(alone_ps(qp, bytes) - static_cast<Picoseconds>(std::ceil(sending_ps)), 0);
}

Picoseconds Paths::answer_ps(std::uint32_t qp) const {
    Picoseconds sum_ps = 0;
    for (const std::uint32_t port : acknowledgements(qp)) {
        sum_ps += delay_ps_[port] + serialization_ps(wire_.acknowledgement_bytes, rate_bps_[port]);
    }
    return sum_ps;
}

}  // namespace netsim::fluid
