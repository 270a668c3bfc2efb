// Sleep: a component whose state has come again is left alone for as many periods as it will repeat, then moved.
//
// Its events are put aside when their time comes. The one that wakes it finds them all there, moves them with the
// state, and hands them out again. Something from outside wakes it early: then it is moved by the whole periods that
// are over, and takes the events before that instant in their order, which nothing else can have felt.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

// Whether the engine should handle this event of `now_ps`.
template <bool is_full>
bool Engine<is_full>::is_awake(std::uint64_t key) {
    if (skip.look_ps < now_ps) look_at_components();
    if (!skip.is_attentive) return true;
    skip.current = identity_of(key);
    if (skip.num_asleep && park(skip.current)) return false;
    if (skip.num_logging) log_event(skip.current);
    const std::uint64_t resume = identify(EventKind::Clock, RESUME) >> PAYLOAD_BITS;
    if (skip.current >> PAYLOAD_BITS == resume) {
        on_resume(payload_of(key));
        return false;
    }
    if (skip.current >> PAYLOAD_BITS == identify(EventKind::Clock, WINDOW) >> PAYLOAD_BITS) {
        on_window(payload_of(key));
        return false;
    }
    skip.before_ps = skip.handled_ps;
    skip.handled_ps = now_ps;
    return true;
}

// Put an event of a sleeping component aside.
template <bool is_full>
bool Engine<is_full>::park(EventIdentity identity) {
    const std::uint32_t index = component_of(identity);
    if (index == NONE || !skip.components[index].is_asleep) return is_timer_of_span(identity);
    skip.components[index].parked.push_back({now_ps, identity});
    num_unqueued_events--;  // it will come again
    return true;
}

// The timers of what a span takes are moved with it; those of queue pairs at rest go on.
template <bool is_full>
bool Engine<is_full>::is_timer_of_span(EventIdentity identity) {
    if (kind_of(identity) != EventKind::Timer) return false;
    const std::uint32_t qp = id_of(identity), index = skip.component_of_pair[qp];
    if (index == NONE || !skip.components[index].windows_of_rates.is_span || !is_busy(qp)) return false;
    num_unqueued_events--;
    return true;
}

// A component that was waked early leaves behind an event that means nothing, and is no part of the run.
template <bool is_full>
void Engine<is_full>::on_resume(std::uint32_t index) {
    num_unqueued_events--;
    skip.num_resumes--;
    Component& component = skip.components[index];
    if (component.is_asleep && component.wake_ps == now_ps) {
        if (component.windows_of_rates.is_span) {
            end_span(component, index, now_ps - component.slept_ps);
        } else {
            wake_up(component, index, component.num_periods);
        }
    } else {
        skip.num_void_resumes--;
        now_ps = skip.handled_ps;
    }
    update_attention();
}

// How many periods fit before the first message comes to its end, or before `event_ps`.
template <bool is_full>
std::int64_t Engine<is_full>::num_repeats(const Component& component, const std::vector<CallsOfPair>& groups,
                                          Picoseconds instant_ps, Picoseconds event_ps) const {
    static constexpr std::int64_t MARGIN = 2;  // the last packet of a message may be short
    static constexpr std::int64_t MOST_CALLS = 1 << 24;
    std::int64_t num = MOST_CALLS / (num_repeated(component, groups) + 1);
    for (std::size_t place = 0; place < component.queue_pairs.size(); place++) {
        const std::uint32_t qp = component.queue_pairs[place];
        const Sender& sender = senders[qp];
        const Receiver& receiver = receivers[qp];
        event_ps = std::min(event_ps, sender.timer_event_ps);
        const std::int64_t moved = std::int64_t{sender.next_sequence} - component.next_sequences[place];
        if (moved == 0) continue;
        const std::int64_t left = std::min({std::int64_t{sender.message_end} - sender.next_sequence,
                                            std::int64_t{sender.oldest_end} - sender.oldest_sequence,
                                            std::int64_t{receiver.message_end} - receiver.expected_sequence});
        num = std::min(num, (left - MARGIN) / moved);
    }
    event_ps = std::min({event_ps, settings.time_limit_ps, next_probe_ps(instant_ps)});
    if constexpr (is_full) event_ps = std::min(event_ps, next_change_ps());
    if (event_ps != NEVER) num = std::min(num, (event_ps - 1 - instant_ps) / component.period_ps);
    return std::max<std::int64_t>(num, 0);
}

template <bool is_full>
Picoseconds Engine<is_full>::next_probe_ps(Picoseconds instant_ps) const {
    if (settings.probe_interval_ps == NEVER || !has_all_samples) return NEVER;
    return (instant_ps / settings.probe_interval_ps + 1) * settings.probe_interval_ps;
}

// When the last of a component's pending events comes, its timers apart.
template <bool is_full>
Picoseconds Engine<is_full>::last_pending_ps(const Component& component) const {
    Picoseconds last_ps = 0;
    for (const std::uint32_t port : component.ports) {
        if (!skip.wires[port].is_empty()) last_ps = std::max(last_ps, skip.wires[port].last_ps());
        if (ports[port].has_wake) last_ps = std::max(last_ps, ports[port].busy_until_ps);
        for (const PauseFrame& frame : skip.pause_frames[port]) last_ps = std::max(last_ps, frame.effective_ps);
    }
    for (const std::uint32_t qp : component.queue_pairs) {
        if (senders[qp].pace_event_ps != NEVER) last_ps = std::max(last_ps, senders[qp].pace_event_ps);
    }
    if constexpr (is_full) last_ps = std::max(last_ps, last_pending_feature_ps(component));
    return last_ps;
}

// What has happened since the kept state will happen again and again; take no event of the component meanwhile.
template <bool is_full>
void Engine<is_full>::sleep(Component& component, std::uint32_t index, Picoseconds instant_ps, Picoseconds event_ps) {
    component.period_ps = instant_ps - component.state_ps;
    component.slept_ps = instant_ps;
    component.horizon_ps = last_pending_ps(component);
    const auto is_long = [&](std::int64_t num) {
        return instant_ps + num * component.period_ps > component.horizon_ps;
    };
    close_section(component);
    const std::vector<CallsOfPair> groups = group_calls(component);
    std::int64_t num = num_repeats(component, groups, instant_ps, event_ps);
    if (!is_long(num)) return rest(component);
    save_records(component);
    const std::int64_t num_same = repeat_calls(component, groups, num);
    if (num_same < num) {
        restore_records(component);
        if (!is_long(num_same)) return rest(component);
        repeat_calls(component, groups, num_same);
    }
    component.num_periods = num_same;
    component.wake_ps = instant_ps + num_same * component.period_ps;
    end_log(component);
    component.is_asleep = true;
    for (const std::uint32_t port : component.ports) ports[port].is_asleep = true;
    skip.num_asleep++;
    skip.num_resumes++;
    queue.push(component.wake_ps, identify(EventKind::Clock, RESUME, index));
    update_attention();
}

// Something from outside comes: wake a component, as it is before the event being handled.
template <bool is_full>
inline void Engine<is_full>::rouse(std::uint32_t index) {
    if (skip.components[index].is_asleep) rouse_before(index, skip.current);
}

template <bool is_full>
void Engine<is_full>::rouse_before(std::uint32_t index, EventIdentity identity) {
    Component& component = skip.components[index];
    if (component.windows_of_rates.is_span) return rouse_from_span(index, identity);
    std::int64_t num = std::min(component.num_periods, (now_ps - 1 - component.slept_ps) / component.period_ps);
    if (now_ps <= component.horizon_ps) num = 0;  // some of its events have not been put aside yet
    restore_records(component);
    repeat_calls(component, group_calls(component), num);
    skip.num_void_resumes++;
    queue.begin_catching_up(now_ps, identity);
    wake_up(component, index, num);
    catch_up();
    queue.end_catching_up();
    if constexpr (is_full) order_captures(component.slept_ps);
}

// Move a component by some periods, and give its events back.
template <bool is_full>
void Engine<is_full>::wake_up(Component& component, std::uint32_t index, std::int64_t num_periods) {
    component.is_asleep = false;
    for (const std::uint32_t port : component.ports) ports[port].is_asleep = false;
    skip.num_asleep--;
    if (num_periods > 0) {
        if (rounds.is_kept) log_repeats(component, num_periods);
        move(component, num_periods);
    }
    if constexpr (is_full) order_captures(component.slept_ps);
    const Picoseconds moved_ps = num_periods * component.period_ps;
    for (const PendingEvent& event : component.parked) queue.push(event.time_ps + moved_ps, event.identity);
    component.parked.clear();
    const std::uint32_t limit = component.limit;
    start_search(component, index);
    component.limit = limit;
}

template <bool is_full>
void Engine<is_full>::move(Component& component, std::int64_t num_periods) {
    std::uint64_t num_packets = 0;
    for (std::size_t place = 0; place < component.queue_pairs.size(); place++) {
        num_packets += senders[component.queue_pairs[place]].next_sequence - component.next_sequences[place];
    }
    repeat_draws(component, num_periods);
    if constexpr (is_full) repeat_captures(component, num_periods);
    Moving moving{component.values, component.period_ps, num_periods};
    walk(moving, component, true);
    const auto num = static_cast<std::uint64_t>(num_periods);
    data_packets.sent += num * component.num_data;
    data_packets.delivered += num * component.num_data;
    control_packets.sent += num * component.num_control;
    control_packets.delivered += num * component.num_control;
    acknowledged_bytes += num * num_packets * static_cast<std::uint64_t>(settings.mtu_bytes);
    num_skipped_events += num * component.num_events;
}

// Take the events that come before what has waked their component.
template <bool is_full>
void Engine<is_full>::catch_up() {
    const Picoseconds resume_ps = now_ps;
    const EventIdentity current = skip.current;
    skip.is_catching_up = true;
    run(0, true);
    skip.is_catching_up = false;
    now_ps = resume_ps;
    skip.current = current;
}

// Wake all that sleeps, as it is after the event last handled.
template <bool is_full>
void Engine<is_full>::rouse_all() {
    for (std::uint32_t index = 0; index < skip.components.size(); index++) {
        if (skip.components[index].is_asleep) rouse_before(index, skip.current + 1);
    }
    update_attention();
}

}  // namespace netsim
