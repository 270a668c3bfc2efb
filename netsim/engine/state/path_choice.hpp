// Path choice: which of the equal-cost ports a packet leaves a switch through, where its path is not fixed.
//
// Topology supplies the ports for each switch and destination (topology/next_hops.py), anew for every set of paths that
// routing converges on; a rule takes one of them. With a
// flowlet gap the rule is asked only when a flow (a queue pair's data, or its acknowledgements) was silent at the
// switch for that long. Random numbers come from one stream a port, that of the port through which the packet arrived;
// a weighted choice is a function of flow and switch alone, one by entropy of flow, switch and the packet's value.
//
// Source: netsim/config/path_choice.py has the papers.
// Left out: what a port's queue is elsewhere than at this switch (CONGA's feedback).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "flowlet_table.hpp"
#include "huge_pages.hpp"
#include "inputs.hpp"
#include "packet.hpp"
#include "port.hpp"
#include "port_loads.hpp"
#include "random.hpp"

namespace netsim {

class PathChooser {
  public:
    explicit PathChooser(const Inputs& inputs);

    bool chooses_for(PacketType type) const {
        return rule_ != PathRule::Hash && (is_forward(type) || control_has_choice_);
    }

    // The port for a packet that came through `arrived`; NONE in a host.
    std::uint32_t next_port(std::uint32_t arrived, const Packet& packet, std::uint16_t entropy, Picoseconds now_ps,
                            const Array<Port>& ports);

    // Visit every port that a packet of a flow may leave a switch through when it has come through `arrived`.
    template <typename Visit>
    void for_each_port_behind(std::uint32_t arrived, std::uint32_t flow, Visit visit) const;

    // From now on choose among the next hops of this set of paths.
    void begin_set(std::size_t number) { first_row_ = number * num_flows_; }

    PortLoads loads;

  private:
    std::uint32_t exit_from(std::uint32_t switch_number, std::size_t row) const;
    std::uint64_t entry_of(std::uint32_t set, std::uint64_t visit) const;
    std::uint32_t choose(std::uint32_t set, std::uint32_t arrived, std::uint64_t visit, Picoseconds now_ps,
                         const Array<Port>& ports);
    template <class Rank>
    std::uint32_t least(std::span<const std::uint32_t> choices, RandomStream& random, Rank rank);
    std::uint32_t by_weight(std::uint32_t set, std::uint64_t visit) const;

    std::span<const std::uint32_t> ports_of(std::uint32_t set) const {
        return {port_.data() + offset_[set], port_.data() + offset_[set + 1]};
    }

    PathRule rule_;
    bool control_has_choice_, is_tie_random_;
    Picoseconds flowlet_gap_ps_;
    std::int32_t queue_step_bytes_, last_level_;
    std::uint64_t key_, max_flows_;
    std::size_t num_flows_, first_row_ = 0;
    std::uint32_t num_switches_ = 0;
    std::vector<std::uint32_t> switch_behind_, peer_, row_, exit_;
    Array<std::uint32_t> set_;
    std::vector<std::uint32_t> offset_, port_, weight_;
    std::vector<RandomStream> random_;      // a port, used by what arrives through it
    std::vector<std::uint32_t> next_turn_;  // a set, for round robin
    std::vector<std::int64_t> ranks_;       // of the ports of a set, while one of them is chosen
    FlowletTable flowlets_;
};

inline PathChooser::PathChooser(const Inputs& inputs)
    : loads(inputs),
      rule_(inputs.settings.path_rule),
      control_has_choice_(inputs.settings.control_has_choice),
      is_tie_random_(inputs.settings.is_tie_random),
      flowlet_gap_ps_(inputs.settings.flowlet_gap_ps),
      queue_step_bytes_(inputs.settings.queue_step_bytes),
      last_level_(inputs.settings.queue_levels - 1),
      key_(inputs.settings.path_choice_key),
      max_flows_(inputs.settings.max_flows),
      num_flows_(inputs.num_flows()),
      switch_behind_(inputs.next_hop_switch.begin(), inputs.next_hop_switch.end()),
      row_(inputs.next_hop_row.begin(), inputs.next_hop_row.end()),
      exit_(inputs.next_hop_exit.begin(), inputs.next_hop_exit.end()),
      set_(inputs.next_hop_set.begin(), inputs.next_hop_set.end()),
      offset_(inputs.next_hop_offset.begin(), inputs.next_hop_offset.end()),
      port_(inputs.next_hop_port.begin(), inputs.next_hop_port.end()),
      weight_(inputs.next_hop_weight.begin(), inputs.next_hop_weight.end()) {
    if (rule_ == PathRule::Hash) return;
    peer_.assign(inputs.port_peer.begin(), inputs.port_peer.end());
    for (const std::uint32_t number : switch_behind_) {
        if (number != NONE) num_switches_ = std::max(num_switches_, number + 1);
    }
    random_.reserve(switch_behind_.size());
    for (std::size_t port = 0; port < switch_behind_.size(); port++) random_.emplace_back(key_, port);
    next_turn_.resize(offset_.size() - 1);
}

inline std::uint32_t PathChooser::next_port(std::uint32_t arrived, const Packet& packet, std::uint16_t entropy,
                                            Picoseconds now_ps, const Array<Port>& ports) {
    const std::uint32_t switch_number = switch_behind_[arrived];
    if (switch_number == NONE) return NONE;
    const std::uint32_t flow = 2 * packet.queue_pair + !is_forward(packet.type);
    const std::uint32_t set = set_[row_[first_row_ + flow] + switch_number];
    const std::uint32_t num_choices = offset_[set + 1] - offset_[set];
    if (num_choices == 0) return exit_from(switch_number, first_row_ + flow);
    if (num_choices == 1) return port_[offset_[set]];
    const std::uint64_t visit = std::uint64_t{flow} * num_switches_ + switch_number;
    if (rule_ == PathRule::Entropy)
        return ports_of(set)[RandomStream(key_, visit << 16 | entropy).next_below(num_choices)];
    if (flowlet_gap_ps_ == 0) return choose(set, arrived, visit, now_ps, ports);
    Flowlet& flowlet = flowlets_.find(entry_of(set, visit), now_ps, flowlet_gap_ps_);
    const bool is_over = flowlet.last_ps <= now_ps - flowlet_gap_ps_ || flowlet.set != set;
    if (is_over) flowlet.port = choose(set, arrived, visit, now_ps, ports);
    flowlet.set = set;
    flowlet.last_ps = now_ps;
    return flowlet.port;
}

template <typename Visit>
void PathChooser::for_each_port_behind(std::uint32_t arrived, std::uint32_t flow, Visit visit) const {
    const std::uint32_t switch_number = switch_behind_[arrived];
    if (switch_number == NONE) return;
    const std::uint32_t set = set_[row_[first_row_ + flow] + switch_number];
    for (const std::uint32_t port : ports_of(set)) visit(port);
    if (!ports_of(set).empty()) return;
    const std::uint32_t last = exit_from(switch_number, first_row_ + flow);
    if (last != NO_ROUTE) visit(last);
}

// A port of this switch straight to the destination, that of the hash path rather than the other; NO_ROUTE if none is
// left.
inline std::uint32_t PathChooser::exit_from(std::uint32_t switch_number, std::size_t row) const {
    for (const std::uint32_t port : {exit_[2 * row], exit_[2 * row + 1]}) {
        if (port != NONE && switch_behind_[peer_[port]] == switch_number) return port;
    }
    return NO_ROUTE;
}

// The place of a flow among those that a set of ports keeps apart, by an ideal hash, or of its own.
inline std::uint64_t PathChooser::entry_of(std::uint32_t set, std::uint64_t visit) const {
    return max_flows_ == 0 ? visit : set * max_flows_ + RandomStream(key_, visit).next_below(max_flows_);
}

inline std::uint32_t PathChooser::choose(std::uint32_t set, std::uint32_t arrived, std::uint64_t visit,
                                         Picoseconds now_ps, const Array<Port>& ports) {
    const std::span<const std::uint32_t> choices = ports_of(set);
    switch (rule_) {
        case PathRule::Hash:
        case PathRule::Entropy:
            break;
        case PathRule::Random:
            return choices[random_[arrived].next_below(choices.size())];
        case PathRule::RoundRobin:
            return choices[next_turn_[set]++ % choices.size()];
        case PathRule::LeastQueue:
            return least(choices, random_[arrived], [&](std::uint32_t port) {
                const std::int32_t bytes = ports[port].queued_bytes;
                return std::min(queue_step_bytes_ == 1 ? bytes : bytes / queue_step_bytes_, last_level_);
            });
        case PathRule::Quality:
            for (const std::uint32_t port : choices) loads.settle(port, ports[port], now_ps);
            return least(choices, random_[arrived], [&](std::uint32_t port) { return loads.quality(port); });
        case PathRule::Weighted:
            return by_weight(set, visit);
    }
    return NONE;
}

// The port of the lowest rank; among equals the first, or any with equal chances.
template <class Rank>
std::uint32_t PathChooser::least(std::span<const std::uint32_t> choices, RandomStream& random, Rank rank) {
    ranks_.clear();
    for (const std::uint32_t port : choices) ranks_.push_back(rank(port));
    const std::int64_t lowest = std::ranges::min(ranks_);
    const auto num_lowest = static_cast<std::uint64_t>(std::ranges::count(ranks_, lowest));
    std::uint64_t turn = num_lowest > 1 && is_tie_random_ ? random.next_below(num_lowest) : 0;
    for (std::size_t place = 0; place < choices.size(); place++) {
        if (ranks_[place] == lowest && turn-- == 0) return choices[place];
    }
    return NONE;
}

inline std::uint32_t PathChooser::by_weight(std::uint32_t set, std::uint64_t visit) const {
    std::uint64_t total = 0;
    for (std::uint32_t place = offset_[set]; place < offset_[set + 1]; place++) total += weight_[place];
    std::uint64_t drawn = RandomStream(key_, visit).next_below(total);
    std::uint32_t place = offset_[set];
    while (drawn >= weight_[place]) drawn -= weight_[place++];
    return port_[place];
}

}  // namespace netsim
