// Max-min fair rates by water filling: all flows rise together until a port is full or a flow has what it asks for;
// those stop there, and the others rise on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace fairness {

inline constexpr std::int32_t NO_PORT = -1;

struct Problem {
    std::span<const std::int32_t> port;  // a row of `num_hops` for each flow, NO_PORT where a path has no hop
    std::size_t num_hops;
    std::span<const double> capacity_bps;  // of each port
    std::span<const double> demand_bps;    // of each flow; infinite where its path alone limits it
    std::span<const std::int64_t> weight;  // of each flow; it rises `weight` times as fast as the level
};

// The level, in bps per weight, rises from one stop to the next. What stops at one level is gathered first and settled
// together, and a port's books hold counts and not sums over flows: neither depends on the order of flows or ports.
class WaterFilling {
  public:
    explicit WaterFilling(const Problem& problem);

    // The rate of each flow in bps. Every flow has a port or a finite demand.
    std::vector<double> fill();

  private:
    struct Port {
        double level = 0;  // where it is full, as last worked out; never falls
        double stopped_bps = 0;
        std::int64_t rising_weight = 0;
        std::int64_t stopping_weight = 0;  // of the flows that stop at the present level
        std::size_t first_flow = 0;        // in flow_of_port_
    };
    using Entry = std::pair<double, std::uint32_t>;  // level, port

    void list_flows_by_port();
    void list_flows_by_demand();
    std::span<const std::int32_t> path(std::uint32_t flow) const;
    double full_level(const Port& port, double capacity_bps) const;
    double next_full_level();
    double next_demand_level() const;
    void stop_flows_of_full_ports(double level);
    void stop_satisfied_flows(double level);
    void stop(std::uint32_t flow, double rate_bps);
    void settle(double level);

    Problem problem_;
    std::vector<Port> ports_;
    std::vector<std::uint32_t> flow_of_port_;  // the flows of port 0, then those of port 1, ...
    std::vector<Entry> demands_;               // level at which each flow with a demand has it, rising
    std::size_t next_demand_ = 0;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ports_by_level_;  // levels may lie too low
    std::vector<std::uint32_t> stopping_ports_;  // with flows that stop at the present level
    std::vector<double> rate_bps_;
    std::vector<bool> has_stopped_;
    std::size_t num_rising_ = 0;
};

}  // namespace fairness
