// Pauses by priority: pause frames that take their time, pauses that run out and are sent again, and the watchdog.
//
// A pause frame goes before all else at its port, behind the frame that is on the wire. It names a length of time; a
// pause that must go on is sent again after half of it. Where no length is set, a pause lasts until it is ended.
// The watchdog of a queue that is paused and has packets for long enough drops or sends them, until no pause has come
// for a while.
// Source: IEEE 802.1Qbb (time in quanta of 512 bits); SONiC's PFC watchdog for detection, restoration and actions.
// Left out: pause frames that are lost; hosts that pause their switch.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
Picoseconds Engine<is_full>::pause_length_ps(std::uint32_t port) const {
    constexpr std::int64_t QUANTUM_BYTES = 64;
    return transfer_ps(settings.pause_quanta * QUANTUM_BYTES, port_stats[port].rate_bps);
}

template <bool is_full>
void Engine<is_full>::schedule_pause_event(Picoseconds time_ps, std::uint32_t port, PauseEvent event,
                                           std::uint32_t priority) {
    if (event != PauseEvent::Watch) priorities.num_pause_events++;
    const std::uint32_t payload = pause_generation(port) << 6 | static_cast<std::uint32_t>(event) << 3 | priority;
    if constexpr (SKIPS) note_pause_event(port, event <= PauseEvent::Begin, time_ps, payload);
    if (event == PauseEvent::Begin || event == PauseEvent::End) return push_at_sender(time_ps, port, payload);
    queue.push(time_ps, identify(EventKind::PauseFrame, port, payload));
}

template <bool is_full>
void Engine<is_full>::on_pause_event(std::uint32_t port, std::uint32_t payload) {
    const auto event = static_cast<PauseEvent>(payload >> 3 & 7);
    const std::uint32_t priority = payload & 7;
    QueueStats& own = priorities.queue_stats(port, priority);
    if (event != PauseEvent::Watch) priorities.num_pause_events--;
    if constexpr (SKIPS) {
        if (event <= PauseEvent::Begin) note_pause_frame_arrival(port);
    }
    if (payload >> 6 != pause_generation(port) && event != PauseEvent::Watch) return;
    switch (event) {
        case PauseEvent::End:
            own.pause_frames_received++;
            return end_pause(port, priority);
        case PauseEvent::Begin:
            own.pause_frames_received++;
            return begin_pause(port, priority);
        case PauseEvent::Expire:
            if (own.pause_ends_ps == now_ps) end_pause(port, priority);
            return;
        case PauseEvent::Refresh:
            return refresh_pause(port, priority);
        case PauseEvent::Watch:
            if (priorities.watchdog(port, priority).look_ps == now_ps) look_at_storm(port, priority);
            return;
    }
}

// The node behind `port` tells it to pause a priority, or to go on.
template <bool is_full>
void Engine<is_full>::send_priority_pause(std::uint32_t port, std::uint32_t priority, bool is_pause) {
    const PortStats& stats = port_stats[port];
    Port& carrier = ports[stats.peer];
    QueueStats& own = priorities.queue_stats(port, priority);
    if constexpr (SKIPS) note_carrier(port, stats.peer);
    carrier.busy_until_ps = std::max(now_ps, carrier.busy_until_ps) +
                            serialization_ps(settings.pause_frame_bytes, port_stats[stats.peer].rate_bps);
    priorities.queue_stats(stats.peer, priority).pause_frames_sent++;
    schedule_pause_event(carrier.busy_until_ps + carrier.delay_ps + stats.pause_response_ps, port,
                         is_pause ? PauseEvent::Begin : PauseEvent::End, priority);
    priorities.input(port, priority).pauses_sender = is_pause;
    own.refresh_ps = NEVER;
    if (!is_pause || settings.pause_quanta == 0 || !settings.is_pause_refreshed) return;
    own.refresh_ps = now_ps + pause_length_ps(port) / 2;
    schedule_pause_event(own.refresh_ps, port, PauseEvent::Refresh, priority);
}

// Pauses that only renew one another go on for ever; when they are all that is left, nothing more can happen.
template <bool is_full>
void Engine<is_full>::refresh_pause(std::uint32_t port, std::uint32_t priority) {
    if (priorities.queue_stats(port, priority).refresh_ps != now_ps) return;
    const bool has_probe = settings.probe_interval_ps != NEVER && has_all_samples;
    const bool has_limit = settings.time_limit_ps != NEVER;
    const std::size_t num_meaningful = queue.size() - skip.num_void_resumes;
    const bool is_alone = skip.num_asleep == 0 && num_meaningful == priorities.num_pause_events + has_probe + has_limit;
    if (is_alone && now_ps - priorities.last_transmission_ps > settings.pause_patience_ps) {
        outcome = Outcome::Stalled;
        return;
    }
    send_priority_pause(port, priority, true);
}

template <bool is_full>
void Engine<is_full>::begin_pause(std::uint32_t port, std::uint32_t priority) {
    OutputQueue& output = priorities.output(port, priority);
    QueueStats& own = priorities.queue_stats(port, priority);
    if (settings.pause_quanta > 0) {
        own.pause_ends_ps = now_ps + pause_length_ps(port);
        schedule_pause_event(own.pause_ends_ps, port, PauseEvent::Expire, priority);
    }
    if (!priorities.watchdogs.empty()) priorities.watchdog(port, priority).last_pause_ps = now_ps;
    if (output.is_paused) return;
    output.is_paused = true;
    priorities.note_pause(port, priority);
    own.paused_since_ps = now_ps;
    own.num_pauses++;
    if (!ports[port].is_paused) {
        ports[port].is_paused = true;
        port_stats[port].paused_since_ps = now_ps;
        port_stats[port].num_pauses++;
    }
    watch(port, priority);
}

template <bool is_full>
void Engine<is_full>::end_pause(std::uint32_t port, std::uint32_t priority) {
    OutputQueue& output = priorities.output(port, priority);
    QueueStats& own = priorities.queue_stats(port, priority);
    if (!output.is_paused) return;
    output.is_paused = false;
    priorities.note_pause(port, priority);
    own.pause_ends_ps = NEVER;
    own.paused_ps += now_ps - own.paused_since_ps;
    if (!output.is_storm && !priorities.watchdogs.empty()) priorities.watchdog(port, priority).look_ps = NEVER;
    bool is_any_paused = false;
    for (std::uint32_t other = 0; other < priorities.size(); other++) {
        is_any_paused |= priorities.output(port, other).is_paused;
    }
    if (!is_any_paused) {
        ports[port].is_paused = false;
        port_stats[port].paused_ps += now_ps - port_stats[port].paused_since_ps;
    }
    kick(port);
}

// Let the watchdog look at a queue of a switch later, if it is paused and has packets.
template <bool is_full>
void Engine<is_full>::watch(std::uint32_t port, std::uint32_t priority) {
    if (priorities.watchdogs.empty() || ports[port].is_host) return;
    const OutputQueue& output = priorities.output(port, priority);
    Watchdog& watchdog = priorities.watchdog(port, priority);
    if (output.is_storm || !output.is_paused || output.head == NONE || watchdog.look_ps != NEVER) return;
    watchdog.look_ps = now_ps + settings.watchdog_detect_ps;
    schedule_pause_event(watchdog.look_ps, port, PauseEvent::Watch, priority);
}

template <bool is_full>
void Engine<is_full>::look_at_storm(std::uint32_t port, std::uint32_t priority) {
    OutputQueue& output = priorities.output(port, priority);
    Watchdog& watchdog = priorities.watchdog(port, priority);
    const Picoseconds over_ps = watchdog.last_pause_ps + settings.watchdog_restore_ps;
    watchdog.look_ps = NEVER;
    if (output.is_storm && over_ps <= now_ps) {
        output.is_storm = false;
        priorities.note_pause(port, priority);
        return watch(port, priority);
    }
    watchdog.look_ps = output.is_storm ? over_ps : now_ps + settings.watchdog_restore_ps;
    schedule_pause_event(watchdog.look_ps, port, PauseEvent::Watch, priority);
    if (output.is_storm) return;
    output.is_storm = true;
    priorities.note_pause(port, priority);
    watchdog.num_storms++;
    if (settings.watchdog_drops) {
        while (output.head != NONE) {
            const std::uint32_t packet = take_out(port, priority);
            priorities.queue_stats(port, priority).dropped_packets++;
            drop(packets[packet].ingress_port, packet);
        }
    } else {
        kick(port);
    }
}

// PFC begins anew on a link that is down.
template <bool is_full>
void Engine<is_full>::forget_priority_pauses(std::uint32_t port) {
    for (std::uint32_t priority = 0; priority < priorities.size(); priority++) {
        OutputQueue& output = priorities.output(port, priority);
        QueueStats& own = priorities.queue_stats(port, priority);
        if (output.is_paused) own.paused_ps += now_ps - own.paused_since_ps;
        output.is_paused = false;
        priorities.note_pause(port, priority);
        own.pause_ends_ps = own.refresh_ps = NEVER;
        priorities.input(port, priority).pauses_sender = false;
        if (!output.is_storm && !priorities.watchdogs.empty()) priorities.watchdog(port, priority).look_ps = NEVER;
    }
}

}  // namespace netsim
