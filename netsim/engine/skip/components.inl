// Components: which queue pairs share ports, as transfers become ready and end.
//
// Components only grow until they are rebuilt: one that holds pairs at rest is still closed, but may hold together what
// no longer shares a port. A rebuild costs as much as the component is large, and is made when the budget allows.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
template <typename Visit>
void Engine<is_full>::for_each_port_of(std::uint32_t qp, Visit visit) const {
    for (std::uint32_t direction = 0; direction < 2; direction++) {
        for (std::uint32_t place = path_begin(qp, direction); path[place] != NONE; place++) visit(path[place]);
    }
}

// A queue pair has more to send: what it shares a port with, and it, are one component from now on, and awake.
template <bool is_full>
void Engine<is_full>::join_component(std::uint32_t qp) {
    if (skip.component_of_pair[qp] == NONE) return merge_into_one(qp);
    const std::uint32_t index = skip.component_of_pair[qp];
    rouse(index);
    Component& component = skip.components[index];
    if (senders[qp].oldest_sequence == senders[qp].end_sequence && component.num_at_rest > 0) component.num_at_rest--;
    start_search(component, index);
}

template <bool is_full>
void Engine<is_full>::merge_into_one(std::uint32_t qp) {
    std::uint32_t into = NONE;
    std::vector<std::uint32_t> touched;
    for_each_port_of(qp, [&](std::uint32_t port) {
        const std::uint32_t index = skip.component_of_port[port];
        if (index == NONE || std::ranges::find(touched, index) != touched.end()) return;
        touched.push_back(index);
    });
    for (const std::uint32_t index : touched) {
        rouse(index);
        const auto size = [&](std::uint32_t which) { return skip.components[which].queue_pairs.size(); };
        if (into == NONE || size(index) > size(into)) into = index;
    }
    if (into == NONE) into = make_component();
    for (const std::uint32_t index : touched) {
        if (index == into) continue;
        for (const std::uint32_t other : skip.components[index].queue_pairs) add_to_component(into, other);
        skip.components[into].num_at_rest += skip.components[index].num_at_rest;
        free_component(index);
    }
    add_to_component(into, qp);
    start_search(skip.components[into], into);
}

template <bool is_full>
std::uint32_t Engine<is_full>::make_component() {
    if (skip.free_components.empty()) {
        skip.components.emplace_back();
        return static_cast<std::uint32_t>(skip.components.size() - 1);
    }
    const std::uint32_t index = skip.free_components.back();
    skip.free_components.pop_back();
    return index;
}

// Its queue pairs and ports belong to others, or to none, already.
template <bool is_full>
void Engine<is_full>::free_component(std::uint32_t index) {
    stop_search(skip.components[index]);
    skip.components[index] = {};
    skip.free_components.push_back(index);
}

template <bool is_full>
void Engine<is_full>::add_to_component(std::uint32_t index, std::uint32_t qp) {
    Component& component = skip.components[index];
    component.queue_pairs.push_back(qp);
    skip.component_of_pair[qp] = index;
    for_each_port_of(qp, [&](std::uint32_t port) {
        if (skip.component_of_port[port] == index) return;
        skip.component_of_port[port] = index;
        component.ports.push_back(port);
    });
}

// A transfer was acknowledged; `is_last` if its queue pair is at rest now.
template <bool is_full>
void Engine<is_full>::leave_component(std::uint32_t qp, bool is_last) {
    const std::uint32_t index = skip.component_of_pair[qp];
    if (index == NONE) return;
    Component& component = skip.components[index];
    start_search(component, index);
    if (!is_last) return;
    component.num_at_rest++;
    if (component.is_loose) return;
    component.is_loose = true;
    skip.loose.push_back(index);
    look_after(now_ps);
}

// Make components anew of the queue pairs that are not at rest, if that is worth it.
template <bool is_full>
void Engine<is_full>::rebuild_component(std::uint32_t index) {
    Component& old = skip.components[index];
    if (!old.is_loose) return;
    old.is_loose = false;
    const std::size_t cost = 16 * old.queue_pairs.size();
    if (2 * old.num_at_rest < old.queue_pairs.size() && !can_spend(cost)) return;
    skip.num_spent += cost;
    const std::vector<std::uint32_t> queue_pairs = std::move(old.queue_pairs);
    for (const std::uint32_t port : old.ports) skip.component_of_port[port] = NONE;
    for (const std::uint32_t qp : queue_pairs) skip.component_of_pair[qp] = NONE;
    free_component(index);
    for (const std::uint32_t qp : queue_pairs) {
        const bool is_at_rest = senders[qp].oldest_sequence == senders[qp].end_sequence;
        // What was sent again may still be on its way when all is acknowledged.
        if (!is_at_rest || senders[qp].has_rewound) merge_into_one(qp);
    }
}

}  // namespace netsim
