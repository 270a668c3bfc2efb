#include "water_filling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fairness {

WaterFilling::WaterFilling(const Problem& problem)
    : problem_(problem),
      ports_(problem.capacity_bps.size() + 1),  // the last one only ends the flows of the one before
      rate_bps_(problem.demand_bps.size()),
      has_stopped_(problem.demand_bps.size()),
      num_rising_(problem.demand_bps.size()) {
    list_flows_by_port();
    list_flows_by_demand();
    for (std::uint32_t port = 0; port < problem_.capacity_bps.size(); port++) {
        if (ports_[port].rising_weight == 0) continue;
        ports_[port].level = full_level(ports_[port], problem_.capacity_bps[port]);
        ports_by_level_.emplace(ports_[port].level, port);
    }
}

std::vector<double> WaterFilling::fill() {
    while (num_rising_ > 0) {
        const double level = std::min(next_full_level(), next_demand_level());
        stop_flows_of_full_ports(level);
        stop_satisfied_flows(level);
        settle(level);
    }
    return std::move(rate_bps_);
}

void WaterFilling::list_flows_by_port() {
    for (const std::int32_t port : problem_.port) {
        if (port != NO_PORT) ports_[port + 1].first_flow++;
    }
    for (std::size_t port = 1; port < ports_.size(); port++) ports_[port].first_flow += ports_[port - 1].first_flow;
    flow_of_port_.resize(ports_.back().first_flow);
    std::vector<std::size_t> next(ports_.size());
    std::ranges::transform(ports_, next.begin(), &Port::first_flow);
    for (std::uint32_t flow = 0; flow < problem_.demand_bps.size(); flow++) {
        for (const std::int32_t port : path(flow)) {
            if (port == NO_PORT) continue;
            flow_of_port_[next[port]++] = flow;
            ports_[port].rising_weight += problem_.weight[flow];
        }
    }
}

void WaterFilling::list_flows_by_demand() {
    for (std::uint32_t flow = 0; flow < problem_.demand_bps.size(); flow++) {
        const double demand_bps = problem_.demand_bps[flow];
        if (std::isfinite(demand_bps))
            demands_.emplace_back(demand_bps / static_cast<double>(problem_.weight[flow]), flow);
    }
    std::ranges::sort(demands_);
}

std::span<const std::int32_t> WaterFilling::path(std::uint32_t flow) const {
    return problem_.port.subspan(flow * problem_.num_hops, problem_.num_hops);
}

// What remains never is a small difference of large numbers: flows that stopped did so at no higher a level, so of the
// capacity at least the share by weight remains for those still rising.
double WaterFilling::full_level(const Port& port, double capacity_bps) const {
    return std::max(port.level, (capacity_bps - port.stopped_bps) / static_cast<double>(port.rising_weight));
}

// Ports are looked at again only when they come first: a level rises with every flow that stops elsewhere.
double WaterFilling::next_full_level() {
    while (!ports_by_level_.empty()) {
        const auto [level, number] = ports_by_level_.top();
        Port& port = ports_[number];
        if (port.rising_weight > 0) {
            port.level = full_level(port, problem_.capacity_bps[number]);
            if (port.level == level) return level;
        }
        ports_by_level_.pop();
        if (port.rising_weight > 0) ports_by_level_.emplace(port.level, number);
    }
    return std::numeric_limits<double>::infinity();
}

double WaterFilling::next_demand_level() const {
    return next_demand_ < demands_.size() ? demands_[next_demand_].first : std::numeric_limits<double>::infinity();
}

void WaterFilling::stop_flows_of_full_ports(double level) {
    while (next_full_level() <= level) {
        const std::uint32_t number = ports_by_level_.top().second;
        ports_by_level_.pop();
        for (std::size_t row = ports_[number].first_flow; row < ports_[number + 1].first_flow; row++) {
            const std::uint32_t flow = flow_of_port_[row];
            const double share_bps = static_cast<double>(problem_.weight[flow]) * level;
            stop(flow, std::min(share_bps, problem_.demand_bps[flow]));
        }
    }
}

void WaterFilling::stop_satisfied_flows(double level) {
    for (; next_demand_level() <= level; next_demand_++) {
        const std::uint32_t flow = demands_[next_demand_].second;
        stop(flow, problem_.demand_bps[flow]);
    }
}

void WaterFilling::stop(std::uint32_t flow, double rate_bps) {
    if (has_stopped_[flow]) return;
    has_stopped_[flow] = true;
    num_rising_--;
    rate_bps_[flow] = rate_bps;
    const std::int64_t weight = problem_.weight[flow];
    for (const std::int32_t port : path(flow)) {
        if (port == NO_PORT) continue;
        if (ports_[port].stopping_weight == 0) stopping_ports_.push_back(port);
        ports_[port].stopping_weight += weight;
    }
}

void WaterFilling::settle(double level) {
    for (const std::uint32_t number : stopping_ports_) {
        Port& port = ports_[number];
        port.stopped_bps += static_cast<double>(port.stopping_weight) * level;
        port.rising_weight -= port.stopping_weight;
        port.stopping_weight = 0;
    }
    stopping_ports_.clear();
}

}  // namespace fairness
