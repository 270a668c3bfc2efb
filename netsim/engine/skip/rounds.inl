// The search for rounds: states of the whole run at the starts of one queue pair's messages.
//
// A digest of some queue pairs tells which earlier beat one looks like. Then the whole state is kept, and compared at
// the beats that look like it. Components that sleep meanwhile are waked for that; what they skip is part of the round.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

// The queue pair with most messages left gives the beats; a few show whether all may have come again.
template <bool is_full>
void Engine<is_full>::choose_rounds() {
    static constexpr std::uint32_t FEWEST_MESSAGES = 6;
    static constexpr std::size_t SAMPLE = 8;
    rounds.is_chosen = true;
    if (rounds.reference != NONE) senders[rounds.reference].gives_rounds = false;
    rounds.reference = NONE;
    std::uint32_t most = FEWEST_MESSAGES - 1;
    const bool is_possible = !is_full && !is_bounded();  // a round has no interval
    for (std::uint32_t qp = 0; is_possible && qp < senders.size(); qp++) {
        if (senders[qp].num_unacknowledged <= most) continue;
        most = senders[qp].num_unacknowledged;
        rounds.reference = qp;
    }
    rounds.seen.clear();
    rounds.num_spent += senders.size();
    if (rounds.reference == NONE) return;
    senders[rounds.reference].gives_rounds = true;
    rounds.sample = {rounds.reference};
    const auto step = static_cast<std::uint32_t>(senders.size() / SAMPLE + 1);
    for (std::uint32_t qp = 0; qp < senders.size(); qp += step) rounds.sample.push_back(qp);
}

template <bool is_full>
void Engine<is_full>::note_round_beat() {
    if (skip.is_catching_up || rounds.beat_ps == now_ps) return;
    rounds.beat_ps = now_ps;
    queue.push(now_ps, identify(EventKind::Clock, ROUND));
}

// All of an instant has happened in which the reference has begun a message. The event is no part of the run.
template <bool is_full>
void Engine<is_full>::on_round_beat() {
    static constexpr std::uint32_t FEWEST_LEFT = 3;
    static constexpr std::size_t MOST_SEEN = 1 << 12;
    num_unqueued_events--;
    skip.current = identify(EventKind::Clock, ROUND);
    rounds.num_beats++;
    if (rounds.is_kept && rounds.whole.is_disturbed) drop_round();
    if (senders[rounds.reference].num_unacknowledged < FEWEST_LEFT) {
        drop_round();
        return choose_rounds();
    }
    const std::uint64_t digest = digest_of_round();
    if (rounds.is_kept) {
        if (digest == rounds.digest && compare_round()) return;
        if (rounds.num_beats < rounds.deadline) return;
        drop_round();
    }
    if (rounds.seen.size() == MOST_SEEN) rounds.seen.clear();
    const auto [beat, is_new] = rounds.seen.emplace(digest, rounds.num_beats);
    turns.has_match |= !is_new;
    const std::uint32_t num_beats = rounds.num_beats - beat->second;
    beat->second = rounds.num_beats;
    if (!is_new && can_spend_on_rounds()) keep_round(digest, num_beats);
}

// Some sixteen values may be visited for each event that was handled.
template <bool is_full>
bool Engine<is_full>::can_spend_on_rounds() const {
    static constexpr std::uint64_t FREE = 1 << 16, EVENTS_PER_VALUE = 16, VALUES_PER_PAIR = 48, VALUES_PER_PORT = 16;
    const std::uint64_t cost = VALUES_PER_PAIR * senders.size() + VALUES_PER_PORT * ports.size();
    return rounds.num_spent + cost < FREE + queue.num_events() / EVENTS_PER_VALUE + rounds.num_skipped;
}

template <bool is_full>
std::uint64_t Engine<is_full>::digest_of_round() {
    Hashing hashing{now_ps};
    for (const std::uint32_t qp : rounds.sample) {
        const std::uint32_t index = skip.component_of_pair[qp];
        if (index != NONE && skip.components[index].is_asleep) continue;
        walk_sender(hashing, qp);
        walk_receiver(hashing, qp);
    }
    return hashing.digest;
}

template <bool is_full>
void Engine<is_full>::keep_round(std::uint64_t digest, std::uint32_t num_beats) {
    rouse_all();
    rounds.values.clear();
    KeepingRound keeping{{rounds.values}};
    walk_run(keeping);
    keep_events();
    rounds.num_spent += rounds.values.size();
    rounds.digest = digest;
    rounds.deadline = rounds.num_beats + num_beats;
    rounds.totals = totals();
    rounds.is_kept = true;
    Component& whole = rounds.whole;
    whole.state_ps = now_ps;
    whole.is_disturbed = false;
    whole.windows.assign(senders.size(), {});
    whole.next_sequences.clear();
    for (const Sender& sender : senders) whole.next_sequences.push_back(sender.next_sequence);
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) senders[qp].is_logged = true;
}

template <bool is_full>
void Engine<is_full>::drop_round() {
    if (!rounds.is_kept) return;
    rounds.is_kept = false;
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) {
        senders[qp].is_logged = logged_component(skip.component_of_pair[qp]) != nullptr;
    }
    rounds.finishes.clear();
    rounds.releases.clear();
    rounds.whole.calls.clear();
    rounds.whole.draws.clear();
    rounds.whole.sections.clear();
}

// True if the kept state has come again, and what follows has been taken.
template <bool is_full>
bool Engine<is_full>::compare_round() {
    if (!can_spend_on_rounds()) return false;
    rouse_all();
    rounds.strides.clear();
    const Picoseconds kept_ps = rounds.whole.state_ps;
    ComparingRound comparing{{rounds.values, kept_ps, now_ps - kept_ps}, rounds.strides};
    const bool is_same = walk_run(comparing);
    rounds.num_spent += comparing.place;
    return is_same && compare_events(comparing) && have_one_stride() && take_rounds(comparing.until_ps);
}

}  // namespace netsim
