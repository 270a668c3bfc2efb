// The fabric as a fluid sees it: ports with rates, the paths of data and of acknowledgements, and what a transfer
// takes that is alone on its path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../state/clock.hpp"

namespace netsim::fluid {

inline constexpr std::uint32_t NONE = ~0u;  // no port, queue pair or transfer

inline constexpr double ACKNOWLEDGEMENT_UNIT = 1.0 / (std::int64_t{1} << 50);  // bytes a picosecond

struct Wire {
    std::int64_t mtu_bytes, overhead_bytes, acknowledgement_bytes, packets_per_acknowledgement;

    std::int64_t full_frame_bytes() const { return frame_bytes(mtu_bytes); }
    std::int64_t frame_bytes(std::int64_t payload_bytes) const {
        return std::max(payload_bytes + overhead_bytes, acknowledgement_bytes);
    }
};

class Paths {
  public:
    // `port` has two rows of `stride` ports for each queue pair: that of data and that of acknowledgements.
    Paths(std::vector<std::uint32_t> port, std::size_t stride, std::vector<std::int64_t> rate_bps,
          std::vector<std::int64_t> delay_ps, const Wire& wire);

    std::size_t num_ports() const { return rate_bps_.size(); }
    std::size_t num_pairs() const { return port_.size() / (2 * stride_); }
    std::size_t stride() const { return stride_; }  // the most ports of a path
    std::span<const std::uint32_t> data(std::uint32_t qp) const { return row(2 * std::size_t{qp}); }
    std::span<const std::uint32_t> acknowledgements(std::uint32_t qp) const { return row(2 * std::size_t{qp} + 1); }

    // In bytes on the wire a picosecond.
    double rate(std::uint32_t port) const { return static_cast<double>(rate_bps_[port]) / BIT_PS_PER_BYTE; }
    double slowest_rate(std::uint32_t qp) const { return rate(slowest_port_[qp]); }

    // What acknowledgements of a queue pair that sends at the rate of its slowest port take, one between two packets
    // of others; in whole ACKNOWLEDGEMENT_UNITs, so that the sum of some is the same in any order.
    std::int64_t acknowledgement_rate(std::uint32_t qp) const { return acknowledgement_rate_[qp]; }

    // The same for one that sends at another rate, in bytes a picosecond.
    double acknowledgements_of(std::uint32_t qp, double rate) const {
        return static_cast<double>(acknowledgement_rate_[qp]) * (rate / slowest_rate(qp));
    }

    std::int64_t num_packets(std::int64_t bytes) const;
    std::int64_t wire_bytes(std::int64_t bytes) const;

    // From the beginning of the first packet to the end of the last at the destination, packets back to back, each
    // port receiving a packet whole before it sends it on. Source: the makespan of a permutation flow shop (Johnson
    // 1954), as in netsim/ideal.py.
    Picoseconds alone_ps(std::uint32_t qp, std::int64_t bytes) const;

    // What of it is not sending at the rate of the slowest port.
    Picoseconds latency_ps(std::uint32_t qp, std::int64_t bytes) const;
    Picoseconds answer_ps(std::uint32_t qp) const;  // how long an acknowledgement is on its way

  private:
    std::span<const std::uint32_t> row(std::size_t number) const;

    std::vector<std::uint32_t> port_;
    std::size_t stride_;
    std::vector<std::int64_t> rate_bps_, delay_ps_;
    Wire wire_;
    // By queue pair.
    std::vector<std::uint32_t> slowest_port_;  // of data
    std::vector<std::int64_t> acknowledgement_rate_;
};

}  // namespace netsim::fluid
