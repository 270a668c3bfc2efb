// The main loop: open a slot, fetch what its events will touch, handle them in order.
#include "engine.hpp"

#include <numeric>
#include <stdexcept>
#include <string>

#include "events/capture.inl"
#include "events/credits.inl"
#include "events/entropy.inl"
#include "events/faults.inl"
#include "events/forwarding.inl"
#include "events/laws.inl"
#include "events/nic.inl"
#include "events/priority_pauses.inl"
#include "events/priority_queues.inl"
#include "events/probes.inl"
#include "events/receiver_not_ready.inl"
#include "events/receivers.inl"
#include "events/retransmission.inl"
#include "events/selective_repeat.inl"
#include "events/senders.inl"
#include "events/transfers.inl"
#include "events/trimming.inl"
#include "parts/mail.inl"
#include "parts/results.inl"
#include "parts/windows.inl"
#if NETSIM_SKIPS
#include "skip/captures.inl"
#include "skip/components.inl"
#include "skip/features_walk.inl"
#include "skip/groups.inl"
#include "skip/intervals.inl"
#include "skip/law_calls.inl"
#include "skip/log.inl"
#include "skip/round_move.inl"
#include "skip/round_rows.inl"
#include "skip/round_walk.inl"
#include "skip/rounds.inl"
#include "skip/search.inl"
#include "skip/sleep.inl"
#include "skip/spans.inl"
#include "skip/state_walk.inl"
#include "skip/turns.inl"
#include "skip/windows.inl"
#endif

namespace netsim {

template <bool is_full>
Outcome Engine<is_full>::advance(std::uint64_t num_events) {
    if constexpr (PARTS) return advance_parts(num_events);
    const std::uint64_t stop_at = queue.num_events() + num_events;
    if constexpr (SKIPS) {
        advance_in_turns(stop_at);
    } else {
        run(stop_at, false);
    }
    if (outcome != Outcome::Running) forget_dependents();
    return outcome;
}

// With skip a component that was waked early is run by the same loop, so that what handles events has one caller and
// is inlined.
template <bool is_full>
Outcome Engine<is_full>::run(std::uint64_t stop_at, bool is_catching_up) {
    const auto prefetch_packet = [this](std::uint64_t key) { packets.prefetch(payload_of(key)); };
    while (outcome == Outcome::Running) {
        std::uint64_t key;
        if (SKIPS && is_catching_up) {
            if (!take_caught(key)) return outcome;
        } else {
            if (queue.is_slot_exhausted()) {
                if (queue.num_events() >= stop_at) return outcome;
                if (!queue.open_next_slot(prefetch_packet)) return outcome = Outcome::Stalled;
                if (queue.slot_start_ps() > LAST_INSTANT) [[unlikely]]
                    throw std::out_of_range("an instant beyond the clock");
                queue.look_ahead(prefetch_packet);
            }
            key = queue.take();
            now_ps = queue.time_of(key);
            prefetch_next_port();
            if constexpr (SKIPS) {
                if (skip.attention_ps < now_ps && !is_awake(key)) continue;
            }
        }
        handle(key);
        if (packets.num_live() == 0) [[unlikely]]
            end_if_nothing_is_left();
    }
    return outcome;
}

template <bool is_full>
inline bool Engine<is_full>::take_caught(std::uint64_t& key) {
    FarEvents::Event event;
    if (!queue.take_caught(event)) return false;
    key = event.identity;
    skip.current = key;
    now_ps = event.time_ps;
    num_unqueued_events++;
    return true;
}

template <bool is_full>
inline void Engine<is_full>::handle(std::uint64_t key) {
    const std::uint32_t id = id_of(key);
    if (kind_of(key) == EventKind::Arrival) [[likely]]
        return arrive(id, payload_of(key));
    if (kind_of(key) == EventKind::Wake) return wake(id);
    switch (kind_of(key)) {
        case EventKind::Arrival:
        case EventKind::Wake:
            break;
        case EventKind::Pace:
            return on_pace(id);
        case EventKind::PauseFrame:
            if (has_priorities()) return on_pause_event(id, payload_of(key));
            if constexpr (SKIPS) note_pause_frame_arrival(id);
            if (payload_of(key) >> 1 != pause_generation(id)) return;
            return obey_pause_frame(id, payload_of(key) % 2 == 1);
        case EventKind::Reply:
            return answer(payload_of(key));
        case EventKind::Timer:
            return on_timer(id);
        case EventKind::Transfer:
            return on_transfer(static_cast<std::uint32_t>(transfer_of(key)), is_transfer_end(key));
        case EventKind::Clock:
            return on_clock(static_cast<ClockEvent>(id), payload_of(key));
    }
}

// Measured on fat trees: fetching a slot's packets before it, then two events ahead the port each goes to, saves a
// tenth of the time at 1,024 hosts. In a long slot a packet has left the nearest cache again, and is fetched once more.
template <bool is_full>
inline void Engine<is_full>::prefetch_next_port() {
    packets.prefetch(payload_of(queue.peek(6)));
    const std::uint64_t key = queue.peek(1);
    const std::uint32_t id = id_of(key);
    prefetch(ports.data(), id);
    const std::uint32_t packet = payload_of(key);
    if (packet >= packets.size()) return;
    const std::uint32_t port = path[packets[packet].path_position + 1];
    prefetch(ports.data(), port);
    if (has_priorities()) prefetch_queues(key, port, packets[packet]);
}

// An arrival goes from the input queue behind its port to an output queue; a wake takes from one to the wire.
template <bool is_full>
inline void Engine<is_full>::prefetch_queues(std::uint64_t key, std::uint32_t next_port, const Packet& packet) {
    const std::uint32_t id = id_of(key);
    const bool is_arrival = kind_of(key) == EventKind::Arrival;
    priorities.prefetch(is_arrival ? next_port : id, packet.priority);
    priorities.prefetch_input(is_arrival ? id : packet.ingress_port, packet.priority);
}

// With no packet left, only a transfer still to come or a sender waiting for its pace can move the run on.
template <bool is_full>
void Engine<is_full>::end_if_nothing_is_left() {
    if (num_unfinished == 0) {
        outcome = Outcome::Finished;
    } else if (num_open == 0 && num_transfer_events == 0) {
        outcome = Outcome::Stalled;
    }
}

template <bool is_full>
void Engine<is_full>::on_clock(ClockEvent event, std::uint32_t about) {
    if (event == TIME_LIMIT) {
        outcome = Outcome::TimeLimit;
        return;
    }
    if constexpr (is_full) {
        if (event == FAULT) return on_fault();
        if (event == REROUTE) return on_reroute();
        if (event == DRAIN) return on_drain(about);
        if (event == GRANT) return on_grant(about);
    }
    if constexpr (SKIPS) {
        if (event == ROUND) return on_round_beat();
    }
    on_probe();
}

template <bool is_full>
Engine<is_full>::Engine(const Inputs& inputs) : Simulation(inputs) {
    if constexpr (SKIPS) {
        skip.component_of_pair.assign(senders.size(), NONE);
        skip.place_of_pair.resize(senders.size());
        skip.component_of_port.assign(ports.size(), NONE);
        skip.wires.resize(ports.size());
        skip.pause_frames.resize(ports.size());
        if (is_full && !endpoints.empty()) skip.replies.resize(senders.size());
        if constexpr (is_full) find_groups();
        rounds.whole.queue_pairs.resize(senders.size());
        std::iota(rounds.whole.queue_pairs.begin(), rounds.whole.queue_pairs.end(), 0u);
        skip.law_lag_ps.resize(senders.size());
        prepare_mean_rates();
        update_attention();
    }
}

template <bool is_full>
void Engine<is_full>::settle() {
    if constexpr (SKIPS) rouse_all();
    if constexpr (PARTS) settle_parts();
}

std::unique_ptr<Simulation> NETSIM_BUILD::make_engine(const Inputs& inputs, bool is_full) {
    if (is_full) return std::make_unique<Engine<true>>(inputs);
    return std::make_unique<Engine<false>>(inputs);
}

#if !NETSIM_SKIPS && !NETSIM_PARTS
// The engine to go on with a run; skip/turns.inl gives its state back.
std::unique_ptr<Simulation> NETSIM_BUILD::take_over(Simulation&& run, bool is_full) {
    if (is_full) return std::make_unique<Engine<true>>(std::move(run));
    return std::make_unique<Engine<false>>(std::move(run));
}
#endif

}  // namespace netsim
