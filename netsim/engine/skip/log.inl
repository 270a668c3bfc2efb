// The log of a period: events, calls of laws, comparisons with windows, draws.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::start_log(Component& component) {
    component.num_events = component.num_data = component.num_control = 0;
    forget_log(component);
    component.windows.assign(component.queue_pairs.size(), {});
    for (std::size_t place = 0; place < component.queue_pairs.size(); place++) {
        senders[component.queue_pairs[place]].is_logged = true;
        skip.place_of_pair[component.queue_pairs[place]] = static_cast<std::uint32_t>(place);
    }
    skip.num_logging++;
    update_attention();
}

template <bool is_full>
void Engine<is_full>::forget_log(Component& component) {
    skip.num_logged -= component.calls.size() + component.draws.size() + component.captured.size();
    std::vector<LawCall>().swap(component.calls);
    component.sections.clear();
    std::vector<Draw>().swap(component.draws);
    std::vector<CapturedPacket>().swap(component.captured);
}

// Whether there is room for one entry more, which is then taken; what does not fit in cannot be repeated. What rounds
// log is bounded by itself.
template <bool is_full>
bool Engine<is_full>::has_room_to_log(Component& component) {
    const bool is_whole = &component == &rounds.whole;
    const std::uint64_t num_logged = is_whole ? component.calls.size() + component.draws.size() : skip.num_logged;
    const bool has_room = num_logged < settings.most_logged;
    component.is_disturbed |= !has_room;
    skip.num_logged += has_room && !is_whole;
    return has_room;
}

// Wires stay watched, since what is on them is part of the state.
template <bool is_full>
void Engine<is_full>::end_log(Component& component) {
    component.stage = SearchStage::Watching;
    for (const std::uint32_t qp : component.queue_pairs) senders[qp].is_logged = rounds.is_kept;
    skip.num_logging--;
    skip.num_spent += 2 * component.num_events;
}

template <bool is_full>
inline std::uint32_t Engine<is_full>::component_of(EventIdentity identity) const {
    const std::uint32_t id = id_of(identity);
    switch (kind_of(identity)) {
        case EventKind::PauseFrame:
            return has_priorities() && !is_pause_frame(payload_of(identity)) ? NONE : skip.component_of_port[id];
        case EventKind::Arrival:
        case EventKind::Wake:
            return skip.component_of_port[id];
        case EventKind::Pace:
            return senders[id].pace_event_ps == now_ps ? skip.component_of_pair[id] : NONE;
        case EventKind::Reply:
            return skip.component_of_pair[id];
        case EventKind::Clock:
            return id == DRAIN ? skip.component_of_port[payload_of(identity)] : NONE;
        case EventKind::Timer:
        case EventKind::Transfer:
            break;
    }
    return NONE;
}

// Count an event of a component that is logged.
template <bool is_full>
void Engine<is_full>::log_event(EventIdentity identity) {
    const std::uint32_t index = component_of(identity);
    if (index == NONE || skip.components[index].stage != SearchStage::Whole) return;
    Component& component = skip.components[index];
    component.num_events++;
    if (kind_of(identity) != EventKind::Arrival) return;
    const Packet& packet = packets[payload_of(identity)];
    if (!ports[port_stats[id_of(identity)].peer].is_host) return;
    (packet.type == PacketType::Data ? component.num_data : component.num_control)++;
}

template <bool is_full>
void Engine<is_full>::log_call(LawEvent event, std::uint32_t qp, std::int64_t bytes, Picoseconds rtt_ps,
                               Picoseconds endpoint_ps, std::int32_t num_hops, bool is_marked) {
    const auto append_to = [&](Component& component) {
        if (!has_room_to_log(component)) return;
        component.calls.push_back(
            {event, qp, now_ps - component.state_ps, bytes, rtt_ps, endpoint_ps, num_hops, is_marked});
    };
    if (Component* component = logged_component(skip.component_of_pair[qp])) append_to(*component);
    if (rounds.is_kept) append_to(rounds.whole);
}

template <bool is_full>
inline Component* Engine<is_full>::logged_component(std::uint32_t index) const {
    const bool is_logged = index != NONE && skip.components[index].stage == SearchStage::Whole;
    return is_logged ? &skip.components[index] : nullptr;
}

template <bool is_full>
void Engine<is_full>::log_window(std::uint32_t qp, double wanted_bytes, bool is_open) const {
    const auto note_in = [&](WindowUse& use) {
        if (is_open) {
            use.most_let = std::max(use.most_let, wanted_bytes);
        } else {
            use.least_held = std::min(use.least_held, wanted_bytes);
        }
    };
    if (Component* component = logged_component(skip.component_of_pair[qp]))
        note_in(component->windows[skip.place_of_pair[qp]]);
    if (rounds.is_kept) note_in(rounds.whole.windows[qp]);
}

template <bool is_full>
void Engine<is_full>::log_draw(std::uint32_t port, std::int32_t queued_bytes, std::uint32_t priority) {
    if (marks_matter()) return;
    const auto append_to = [&](Component& component) {
        if (has_room_to_log(component)) component.draws.push_back({port, queued_bytes, priority});
    };
    if (Component* component = logged_component(skip.component_of_port[port])) append_to(*component);
    if (rounds.is_kept) append_to(rounds.whole);
}

// A packet has left through a port that is watched.
template <bool is_full>
void Engine<is_full>::note_flight(std::uint32_t port, Picoseconds arrives_ps, std::uint32_t packet) {
    skip.wires[port].add(now_ps, arrives_ps, packet);
}

// What has just happened to a queue pair must not be repeated.
template <bool is_full>
void Engine<is_full>::disturb(std::uint32_t qp) {
    rounds.whole.is_disturbed = true;
    if (skip.component_of_pair[qp] != NONE) skip.components[skip.component_of_pair[qp]].is_disturbed = true;
}

// The law is told something other than what a packet's sending or acknowledgement tells it.
template <bool is_full>
void Engine<is_full>::note_notification(LawEvent event, std::uint32_t qp) {
    if (event != ON_CNP) return disturb(qp);
    if (senders[qp].is_logged && law.on_cnp) log_call(ON_CNP, qp);
}

// Events of pauses by priority that are no frames stand or are overtaken: neither is repeated.
template <bool is_full>
void Engine<is_full>::note_pause_event(std::uint32_t port, bool is_frame, Picoseconds time_ps, std::uint32_t payload) {
    if (!is_frame) return disturb_port(port);
    skip.pause_frames[port].push_back({time_ps, payload});
}

template <bool is_full>
void Engine<is_full>::note_pause_frame_arrival(std::uint32_t port) {
    skip.pause_frames[port].erase(skip.pause_frames[port].begin());
}

// A port will be told to pause or to resume by a frame that its peer carries.
template <bool is_full>
void Engine<is_full>::note_carrier(std::uint32_t port, std::uint32_t carrier) {
    const std::uint32_t index = skip.component_of_port[port], other = skip.component_of_port[carrier];
    if (other != NONE && other != index) {
        rouse(other);
        skip.components[other].is_disturbed = true;
    }
    if (index == NONE || (other == index && !ports[carrier].has_wake)) return;
    Component& component = skip.components[index];
    component.is_disturbed = true;
    component.unsettled_until_ps = std::max(now_ps, ports[carrier].busy_until_ps) +
                                   serialization_ps(settings.pause_frame_bytes, port_stats[carrier].rate_bps);
}

}  // namespace netsim
