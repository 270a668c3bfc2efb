// Turns: where nothing repeats, the engine without skip runs the next while, at its own speed.
//
// A run begins with a search. One in which nothing has come again by half its turn, or that finds too little in all of
// it, makes place for the plain engine, for sixteen turns at first and for more after each that was in vain. A run's
// state is handed over as it stands: a search begins anew behind it, with components of what is busy then.

#include <algorithm>
#include <memory>

#include "../engine.hpp"

namespace netsim {

namespace plain {
std::unique_ptr<Simulation> take_over(Simulation&& run, bool is_full);
}

template <bool is_full>
void Engine<is_full>::advance_in_turns(std::uint64_t stop_at) {
    while (outcome == Outcome::Running && queue.num_events() < stop_at) {
        if (queue.num_events() >= turns.end) begin_next_turn();
        const std::uint64_t end = std::min(stop_at, turns.end);
        if (turns.are_plain) {
            run_plainly(end);
        } else {
            run(end, false);
        }
    }
}

template <bool is_full>
void Engine<is_full>::begin_next_turn() {
    const std::uint64_t num_handled = queue.num_events() - turns.begin;
    if (turns.are_plain) {
        begin_search();
        turns.has_match = false;
    } else if (num_handled < search_length()) {
        turns.end = turns.begin + search_length();
        return;
    } else if (is_worth_it(num_handled)) {
        turns.length_of_plain = Turns::SHORTEST_PLAIN;
        turns.has_match = num_handled > 0;
    } else {
        return begin_plain_turn(turns.has_match ? num_handled : 2 * num_handled);
    }
    turns.begin = queue.num_events();
    turns.end = turns.begin + search_length();
    turns.num_skipped = num_skipped_events;
}

// Events that every queue pair's first packets take, until they have come again; of rounds, a share of the run so far.
// Half of them must do where nothing has come again, if only some senders, and the turn before was not worth it.
template <bool is_full>
std::uint64_t Engine<is_full>::search_length() const {
    static constexpr std::uint64_t FEWEST_PAIRS = 4;
    const std::uint64_t num_pairs = std::min<std::uint64_t>(num_open, senders.size());
    std::uint64_t length = settings.search_events_per_pair * std::max(num_pairs, FEWEST_PAIRS);
    if (rounds.reference != NONE) length = std::max(length, queue.num_events() / 4);
    return turns.has_match || must_search() ? length : length / 2;
}

// What the plain engine cannot do.
template <bool is_full>
bool Engine<is_full>::must_search() const {
    return is_bounded() || skip.num_resumes > 0 || !captured_flows.empty();
}

// What is skipped must pay for the hooks and the search. What is asleep has not been counted yet.
template <bool is_full>
bool Engine<is_full>::is_worth_it(std::uint64_t num_handled) const {
    static constexpr std::uint64_t LEAST_SHARE = 8;
    return must_search() || num_skipped_events - turns.num_skipped >= num_handled / LEAST_SHARE;
}

template <bool is_full>
void Engine<is_full>::begin_plain_turn(std::uint64_t turn_length) {
    static constexpr std::uint64_t LONGEST = 128;
    forget_components();
    turns.are_plain = true;
    turns.begin = queue.num_events();
    turns.end = turns.begin + turns.length_of_plain * turn_length;
    turns.length_of_plain = std::min(2 * turns.length_of_plain, LONGEST);
}

template <bool is_full>
void Engine<is_full>::forget_components() {
    drop_round();
    if (rounds.reference != NONE) senders[rounds.reference].gives_rounds = false;
    rounds.reference = NONE;
    rounds.is_chosen = false;
    for (std::uint32_t index = 0; index < skip.components.size(); index++) {
        if (!skip.components[index].queue_pairs.empty()) free_component(index);
    }
    skip.component_of_pair.assign(senders.size(), NONE);
    skip.component_of_port.assign(ports.size(), NONE);
    skip.beating.clear();
    skip.loose.clear();
    look_after(NEVER);
}

// The state comes back even if a law fails.
template <bool is_full>
void Engine<is_full>::run_plainly(std::uint64_t stop_at) {
    struct Return {
        RunState &to, &from;
        ~Return() { to = std::move(from); }
    };
    const std::unique_ptr<Simulation> engine = plain::take_over(std::move(*this), is_full);
    const Return when_done{*this, *engine};
    engine->advance(stop_at - engine->queue.num_events());
}

// The next event is of a later instant than the last.
template <bool is_full>
void Engine<is_full>::begin_search() {
    turns.are_plain = false;
    note_pending();
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) {
        if (is_busy(qp) || senders[qp].has_rewound) merge_into_one(qp);
    }
    for (Component& component : skip.components) {
        for (const std::uint32_t port : component.ports) {
            component.unsettled_until_ps = std::max(component.unsettled_until_ps, ports[port].busy_until_ps);
        }
    }
    update_attention();
    skip.handled_ps = now_ps;
}

// What is on its way and is not found in ports and queue pairs.
template <bool is_full>
void Engine<is_full>::note_pending() {
    for (std::vector<PauseFrame>& frames : skip.pause_frames) frames.clear();
    for (Wire& answers : skip.replies) answers.clear();
    for (const auto& event : pending_events()) {
        const std::uint32_t id = id_of(event.identity), payload = payload_of(event.identity);
        if (kind_of(event.identity) == EventKind::Reply) skip.replies[id].add(now_ps, event.time_ps, payload);
        if (kind_of(event.identity) != EventKind::PauseFrame) continue;
        if (!has_priorities() || is_pause_frame(payload)) skip.pause_frames[id].push_back({event.time_ps, payload});
    }
}

}  // namespace netsim
