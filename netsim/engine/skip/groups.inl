// Groups of ports that feel one another without sharing a packet, and what comes to a component from outside.
//
// Ports of a switch with a shared buffer are one group, and so are those of NICs behind one PCIe link: what is in one
// of them is in a component with all. New paths leave packets behind on the old ones; what they bring wakes a
// component.

#include <algorithm>
#include <map>
#include <numeric>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::find_groups() {
    std::vector<std::uint32_t> root(ports.size());
    std::iota(root.begin(), root.end(), 0u);
    const auto root_of = [&](std::uint32_t port) {
        while (root[port] != port) port = root[port] = root[root[port]];
        return port;
    };
    std::map<std::pair<bool, std::uint32_t>, std::uint32_t> first;  // by whether it is a buffer, and its number
    const auto share = [&](bool is_buffer, std::uint32_t number, std::uint32_t port) {
        root[root_of(port)] = root_of(first.emplace(std::pair(is_buffer, number), port).first->second);
    };
    for (std::uint32_t port = 0; port < ports.size(); port++) {
        if (has_priorities() && priorities.pool(port).is_shared()) share(true, priorities.ports[port].node, port);
        for (const std::uint32_t nic_port : {port, port_stats[port].peer}) {
            if (!host_links.exist() || !ports[nic_port].is_host) continue;
            for (const std::uint32_t end : {0u, 1u}) share(false, host_links.links_of_port()[2 * nic_port + end], port);
        }
    }
    if (first.empty()) return;
    std::vector<std::uint32_t> group_of_root(ports.size(), NONE);
    skip.group_of_port.resize(ports.size());
    for (std::uint32_t port = 0; port < ports.size(); port++) {
        std::uint32_t& group = group_of_root[root_of(port)];
        if (group == NONE) {
            group = static_cast<std::uint32_t>(skip.groups.size());
            skip.groups.emplace_back();
        }
        skip.groups[group].push_back(port);
        skip.group_of_port[port] = group;
    }
}

// A packet comes to a port of a component that sleeps or is watched. One from outside ends both.
template <bool is_full>
void Engine<is_full>::note_entry(std::uint32_t port, std::uint32_t packet) {
    const std::uint32_t index = skip.component_of_port[port];
    if (ports[port].is_asleep) return rouse(index);
    if (skip.component_of_pair[packets[packet].queue_pair] != index) skip.components[index].is_disturbed = true;
}

// A packet has come to its end, perhaps over a port that its queue pair's component has left.
template <bool is_full>
void Engine<is_full>::note_delivery(std::uint32_t port, std::uint32_t packet) {
    const std::uint32_t index = skip.component_of_pair[packets[packet].queue_pair];
    if (index == NONE || index == skip.component_of_port[port]) return;
    rouse(index);
    skip.components[index].is_disturbed = true;
}

template <bool is_full>
void Engine<is_full>::disturb_port(std::uint32_t port) {
    const std::uint32_t index = skip.component_of_port[port];
    if (index != NONE) skip.components[index].is_disturbed = true;
}

// Paths have changed: a component has the ports of its pairs' new ones as well. Nothing sleeps at that time.
template <bool is_full>
void Engine<is_full>::rejoin_all() {
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) {
        if (skip.component_of_pair[qp] != NONE) merge_into_one(qp);
    }
}

// Whatever was kept is void.
template <bool is_full>
void Engine<is_full>::search_all_anew() {
    for (std::uint32_t index = 0; index < skip.components.size(); index++) {
        if (!skip.components[index].queue_pairs.empty()) start_search(skip.components[index], index);
    }
}

// When the network itself changes next.
template <bool is_full>
Picoseconds Engine<is_full>::next_change_ps() const {
    Picoseconds next_ps = NEVER;
    if (faults.next_change < faults.changes.size()) next_ps = faults.changes[faults.next_change].time_ps;
    if (epochs.next < epochs.times_ps.size()) next_ps = std::min(next_ps, epochs.times_ps[epochs.next]);
    return next_ps;
}

}  // namespace netsim
