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
    const auto visit_group = [&](std::uint32_t port) {
        if (!is_full || skip.groups.empty()) return visit(port);
        for (const std::uint32_t other : skip.groups[skip.group_of_port[port]]) visit(other);
    };
    for (std::uint32_t direction = 0; direction < 2; direction++) {
        if (is_full && path_chooser.chooses_for(direction == 0 ? PacketType::Data : PacketType::Ack)) {
            for_each_choice_of(qp, direction, visit_group);
            continue;
        }
        for (std::uint32_t place = path_begin(qp, direction); path[place] < NO_ROUTE; place++) visit_group(path[place]);
    }
}

// Visit all ports that switches may choose.
template <bool is_full>
template <typename Visit>
void Engine<is_full>::for_each_choice_of(std::uint32_t qp, std::uint32_t direction, Visit visit) const {
    std::vector<std::uint32_t> reached{path[path_begin(qp, direction)]};
    for (std::size_t place = 0; place < reached.size(); place++) {
        visit(reached[place]);
        path_chooser.for_each_port_behind(reached[place], 2 * qp + direction, [&](std::uint32_t port) {
            if (std::ranges::find(reached, port) == reached.end()) reached.push_back(port);
        });
    }
}

// A queue pair has more to send: what it shares a port with, and it, are one component from now on, and awake.
template <bool is_full>
void Engine<is_full>::join_component(std::uint32_t qp) {
    if (!rounds.is_chosen) choose_rounds();
    if (skip.component_of_pair[qp] == NONE) return merge_into_one(qp);
    const std::uint32_t index = skip.component_of_pair[qp];
    rouse(index);
    Component& component = skip.components[index];
    if (!is_busy(qp) && component.num_at_rest > 0) component.num_at_rest--;
    start_search(component, index);
    if (!is_busy(qp)) note_change(index);
}

// Make one component of a queue pair, its own if it has one, and all that share a port with its paths.
template <bool is_full>
void Engine<is_full>::merge_into_one(std::uint32_t qp) {
    std::uint32_t into = NONE;
    std::vector<std::uint32_t> touched;
    if (skip.component_of_pair[qp] != NONE) touched.push_back(skip.component_of_pair[qp]);
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
        if (index != into) absorb(into, index);
    }
    add_to_component(into, qp);
    start_search(skip.components[into], into);
    note_change(into);
}

// Move all that a component has into another one.
template <bool is_full>
void Engine<is_full>::absorb(std::uint32_t into, std::uint32_t index) {
    Component& to = skip.components[into];
    const Component& from = skip.components[index];
    to.queue_pairs.insert(to.queue_pairs.end(), from.queue_pairs.begin(), from.queue_pairs.end());
    to.ports.insert(to.ports.end(), from.ports.begin(), from.ports.end());
    to.num_at_rest += from.num_at_rest;
    for (const std::uint32_t qp : from.queue_pairs) skip.component_of_pair[qp] = into;
    for (const std::uint32_t port : from.ports) skip.component_of_port[port] = into;
    free_component(index);
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
    end_audit(index);
    stop_search(skip.components[index]);
    forget_log(skip.components[index]);
    skip.components[index] = {};
    skip.free_components.push_back(index);
}

template <bool is_full>
void Engine<is_full>::add_to_component(std::uint32_t index, std::uint32_t qp) {
    Component& component = skip.components[index];
    if (skip.component_of_pair[qp] != index) component.queue_pairs.push_back(qp);
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
    note_change(index);
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
