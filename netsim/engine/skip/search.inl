// The search for what repeats: Brent's, with the sends of one queue pair as beats.
//
// At the end of an instant with a beat the component's state is compared with a kept one, which is replaced at growing
// distances. A state of some senders and receivers alone is kept first. When that has come again the wires are watched,
// and once all that is on them is known everything is kept; if that comes again too, the component sleeps.
// Source: R. P. Brent, "An improved Monte Carlo factorization algorithm", BIT 20 (1980), 176-184, section 2.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

// Whether the budget has so many values left; some eight cost as much as an event. Once some senders have come again,
// what follows is done at any cost, and the debt is paid before the next search.
template <bool is_full>
bool Engine<is_full>::can_spend(std::size_t num_values) const {
    static constexpr std::uint64_t EVENTS_PER_VALUE = 32;
    const std::uint64_t earned = queue.num_events() / EVENTS_PER_VALUE + num_skipped_events;
    return skip.num_spent + num_values < settings.free_search_values + earned;
}

// Look at the components of which something happened in the instant that has just ended.
template <bool is_full>
void Engine<is_full>::look_at_components() {
    const Picoseconds instant_ps = skip.look_ps;
    while (!skip.loose.empty()) {
        const std::uint32_t index = skip.loose.back();
        skip.loose.pop_back();
        rebuild_component(index);
    }
    while (!skip.beating.empty()) {
        const std::uint32_t index = skip.beating.back();
        skip.beating.pop_back();
        Component& component = skip.components[index];
        if (!component.is_beating) continue;
        component.is_beating = false;
        on_beat(component, index, instant_ps);
    }
    look_after(NEVER);
}

template <bool is_full>
void Engine<is_full>::look_after(Picoseconds instant_ps) {
    skip.look_ps = instant_ps;
    skip.attention_ps = skip.is_attentive ? LONG_AGO : instant_ps;
}

// Nothing kept holds any more: begin anew, at the end of this instant.
template <bool is_full>
void Engine<is_full>::start_search(Component& component, std::uint32_t index) {
    stop_search(component);
    component.rest = 0;
    component.limit = 1;
    schedule_look(component, index);
}

template <bool is_full>
void Engine<is_full>::schedule_look(Component& component, std::uint32_t index) {
    if (skip.is_catching_up || component.is_beating) return;
    component.is_beating = true;
    skip.beating.push_back(index);
    look_after(now_ps);
}

template <bool is_full>
void Engine<is_full>::stop_search(Component& component) {
    if (component.reference != NONE) senders[component.reference].sends_to_beat = 0;
    component.reference = NONE;
    if (component.stage == SearchStage::Whole) end_log(component);
    if (component.stage >= SearchStage::Watching) set_watched(component, false);
    component.stage = SearchStage::Idle;
    forget_state(component);
    update_attention();
}

template <bool is_full>
void Engine<is_full>::set_watched(Component& component, bool is_watched) {
    for (const std::uint32_t port : component.ports) {
        ports[port].is_watched = is_watched;
        skip.wires[port].clear();
    }
}

template <bool is_full>
void Engine<is_full>::update_attention() {
    const bool was_attentive = skip.is_attentive;
    skip.is_attentive =
        skip.num_asleep || skip.num_logging || skip.num_resumes || settings.probe_interval_ps != NEVER || is_bounded();
    if (skip.is_attentive && !was_attentive) skip.handled_ps = queue.previous_ps();
    look_after(skip.look_ps);
}

// How many packets of its message a queue pair has yet to send.
template <bool is_full>
inline std::uint32_t Engine<is_full>::num_left(std::uint32_t qp) const {
    const Sender& sender = senders[qp];
    const bool is_sending = sender.sending != NONE && sender.next_sequence < sender.message_end;
    return is_sending ? sender.message_end - sender.next_sequence : 0;
}

// The queue pair that has most left to send gives the beat, or, where to look for it is dear, the one that gave
// it last.
template <bool is_full>
bool Engine<is_full>::choose_reference(Component& component) {
    static constexpr std::uint32_t FEWEST_PACKETS = 8;
    static constexpr std::size_t WORTH = 256;
    std::uint32_t most = FEWEST_PACKETS;
    const std::uint32_t last = component.last_reference;
    const std::uint32_t index = last == NONE ? NONE : skip.component_of_pair[last];
    const bool is_of_it = index != NONE && &skip.components[index] == &component;
    const bool is_dear = !can_spend(WORTH * component.queue_pairs.size());
    if (is_dear && is_of_it && num_left(last) > 2 * FEWEST_PACKETS) {
        component.reference = last;
    } else {
        skip.num_spent += component.queue_pairs.size();
        for (const std::uint32_t qp : component.queue_pairs) {
            if (num_left(qp) <= most) continue;
            most = num_left(qp);
            component.reference = qp;
        }
    }
    component.last_reference = component.reference;
    if (component.reference == NONE) return false;
    senders[component.reference].sends_to_beat = 1;
    component.num_beats = 0;
    return true;
}

// Leave out twice as many beats as after the last failure.
template <bool is_full>
void Engine<is_full>::rest(Component& component) {
    static constexpr std::uint32_t MOST_BEATS = 1 << 14;
    const std::uint32_t reference = component.reference;
    stop_search(component);
    component.rest = std::clamp<std::uint32_t>(2 * component.rest, 16, MOST_BEATS);
    component.reference = reference;
    senders[reference].sends_to_beat = static_cast<std::uint16_t>(component.rest);
}

// A queue pair has sent a packet.
template <bool is_full>
void Engine<is_full>::note_send(std::uint32_t qp, Sender& sender, std::uint32_t payload_bytes) {
    if (sender.is_logged && law.on_send) log_call(ON_SEND, qp, payload_bytes);
    if (sender.sends_to_beat == 0 || --sender.sends_to_beat > 0) return;
    sender.sends_to_beat = 1;
    const std::uint32_t index = skip.component_of_pair[qp];
    schedule_look(skip.components[index], index);
}

template <bool is_full>
void Engine<is_full>::on_beat(Component& component, std::uint32_t index, Picoseconds instant_ps) {
    static constexpr std::uint32_t FEWEST_LEFT = 4;
    if (component.reference == NONE) {  // if there is none, it is looked for again when a transfer begins or ends
        if (!can_spend(0) || !choose_reference(component)) return;
    }
    const Sender& leader = senders[component.reference];
    if (leader.message_end - leader.next_sequence < FEWEST_LEFT) return stop_search(component);
    component.num_beats++;
    if (component.is_disturbed) search_anew(component);
    switch (component.stage) {
        case SearchStage::Idle:
            break;
        case SearchStage::Watching:
            if (instant_ps < std::max(component.wires_are_known_ps, component.unsettled_until_ps)) return;
            return keep_whole(component, instant_ps);
        case SearchStage::Senders:
        case SearchStage::Whole:
            if (compare(component, index, instant_ps)) return;
            if (component.num_beats < component.limit && can_spend(0)) return;
    }
    keep_senders(component, instant_ps);
}

// Forget what is kept, and go on with the same beats.
template <bool is_full>
void Engine<is_full>::search_anew(Component& component) {
    const std::uint32_t reference = component.reference;
    stop_search(component);
    component.is_disturbed = false;
    component.reference = reference;
    senders[reference].sends_to_beat = 1;
}

// True if the kept state has come again, and has been dealt with.
template <bool is_full>
bool Engine<is_full>::compare(Component& component, std::uint32_t index, Picoseconds instant_ps) {
    static constexpr std::uint64_t BEAT = 24;
    const bool is_whole = component.stage == SearchStage::Whole;
    if (is_whole) drop_arrived(component, instant_ps);
    Comparing comparing{component.values, component.state_ps, instant_ps - component.state_ps};
    const bool is_same = walk(comparing, component, is_whole);
    skip.num_spent += comparing.place + BEAT;
    if (!is_same) return false;
    turns.has_match = true;
    if (is_whole) {
        sleep(component, index, instant_ps, comparing.until_ps);
        return true;
    }
    component.limit = std::max(component.limit, component.num_beats + 1);
    watch_wires(component);
    return true;
}

// Know what is on the wires, from when what is on them now has arrived.
template <bool is_full>
void Engine<is_full>::watch_wires(Component& component) {
    component.stage = SearchStage::Watching;
    set_watched(component, true);
    component.wires_are_known_ps = 0;
    for (const std::uint32_t index : component.ports) {
        const Port& port = ports[index];
        component.wires_are_known_ps = std::max(component.wires_are_known_ps, port.busy_until_ps + port.delay_ps);
    }
}

template <bool is_full>
void Engine<is_full>::drop_arrived(Component& component, Picoseconds instant_ps) {
    for (const std::uint32_t port : component.ports) skip.wires[port].drop_arrived(instant_ps);
    if (!is_full || skip.replies.empty()) return;
    for (const std::uint32_t qp : component.queue_pairs) skip.replies[qp].drop_arrived(instant_ps);
}

template <bool is_full>
void Engine<is_full>::keep_senders(Component& component, Picoseconds instant_ps) {
    static constexpr std::uint32_t MOST_BEATS = 1 << 12;
    if (component.stage == SearchStage::Whole) search_anew(component);
    static constexpr std::size_t COST = 256;
    const bool is_hopeless = component.limit >= MOST_BEATS;
    if (is_hopeless || !can_spend(COST)) {
        if (is_hopeless) component.limit = 1;
        return rest(component);
    }
    component.limit += std::max(1u, component.limit / 2);
    component.stage = SearchStage::Senders;
    keep(component, instant_ps);
}

template <bool is_full>
void Engine<is_full>::keep_whole(Component& component, Picoseconds instant_ps) {
    drop_arrived(component, instant_ps);
    component.stage = SearchStage::Whole;
    keep(component, instant_ps);
    component.next_sequences.clear();
    for (const std::uint32_t qp : component.queue_pairs) component.next_sequences.push_back(senders[qp].next_sequence);
    start_log(component);
}

template <bool is_full>
void Engine<is_full>::keep(Component& component, Picoseconds instant_ps) {
    forget_state(component);
    Keeping keeping{component.values};
    walk(keeping, component, component.stage == SearchStage::Whole);
    skip.num_kept += component.values.size();
    component.state_ps = instant_ps;
    component.num_beats = 0;
    component.is_disturbed = skip.num_kept > settings.most_values_kept;  // then it is dropped at the next beat
    skip.num_spent += component.values.size();
}

template <bool is_full>
void Engine<is_full>::forget_state(Component& component) {
    skip.num_kept -= component.values.size();
    component.values.clear();
}

}  // namespace netsim
