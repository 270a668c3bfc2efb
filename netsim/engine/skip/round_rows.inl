// Transfers of rounds: what each end sets free is tried out on the rows further on, and their times are written.
//
// Dependencies are not compared: they are told of every end in each round to come. The first round in which an end sets
// free something else than before, or at another time, is not skipped.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
inline void Engine<is_full>::log_finish(std::uint32_t row) {
    if (rounds.is_kept) [[unlikely]]
        rounds.finishes.push_back({row, now_ps, rounds.releases.size()});
}

template <bool is_full>
inline void Engine<is_full>::log_release(std::uint32_t row, Picoseconds ready_ps) {
    if (rounds.is_kept) [[unlikely]]
        rounds.releases.push_back({row, ready_ps});
}

// A component has slept for some periods of its own, and has told its law as often what it told it in the first.
template <bool is_full>
void Engine<is_full>::log_repeats(const Component& component, std::int64_t num_periods) {
    Component& whole = rounds.whole;
    whole.is_disturbed |= whole.calls.size() + component.calls.size() > settings.most_logged;
    whole.is_disturbed |= whole.draws.size() + component.draws.size() > settings.most_logged;
    if (whole.is_disturbed) return;
    if (!component.calls.empty() || !component.draws.empty()) log_section(component, num_periods);
    for (std::size_t place = 0; place < component.queue_pairs.size(); place++) {
        WindowUse& use = whole.windows[component.queue_pairs[place]];
        use.most_let = std::max(use.most_let, component.windows[place].most_let);
        use.least_held = std::min(use.least_held, component.windows[place].least_held);
    }
}

// Add what a component has logged, as a section of its own.
template <bool is_full>
void Engine<is_full>::log_section(const Component& component, std::int64_t num_periods) {
    Component& whole = rounds.whole;
    close_section(whole);
    for (LawCall call : component.calls) {
        call.after_ps += component.state_ps + component.period_ps - whole.state_ps;
        whole.calls.push_back(call);
    }
    whole.draws.insert(whole.draws.end(), component.draws.begin(), component.draws.end());
    close_section(whole);
    whole.sections.back().num_times = num_periods;
    whole.sections.back().period_ps = component.period_ps;
}

// Whether a transfer does what another does once it is ready.
template <bool is_full>
bool Engine<is_full>::are_alike(std::uint32_t row, std::uint32_t other) const {
    if (transfers[row].bytes != transfers[other].bytes) return false;
    if (transfers[row].queue_pair != transfers[other].queue_pair) return false;
    return nvlink_source.empty() ||
           (nvlink_source[row] == nvlink_source[other] && nvlink_destination[row] == nvlink_destination[other]);
}

// Tell dependents of the ends in rounds to come; return in how many the same is set free as in the kept one.
template <bool is_full>
std::int64_t Engine<is_full>::repeat_releases(std::int64_t num_rounds) {
    for (std::int64_t round = 1; round <= num_rounds; round++) {
        std::size_t num_told = 0;
        if (release_again(round, num_told)) continue;
        take_back_releases(round, num_told);
        return round - 1;
    }
    return num_rounds;
}

template <bool is_full>
bool Engine<is_full>::release_again(std::int64_t round, std::size_t& num_told) {
    const Picoseconds moved_ps = round * rounds.whole.period_ps;
    for (std::size_t place = 0; place < rounds.finishes.size(); place++) {
        const Finish& finish = rounds.finishes[place];
        const bool is_last = place + 1 == rounds.finishes.size();
        const std::size_t end = is_last ? rounds.releases.size() : rounds.finishes[place + 1].first_release;
        std::size_t next = finish.first_release;
        const auto stride = rounds.strides.find(finish.row);
        if (stride == rounds.strides.end() || stride->second == 0) return false;
        const std::int64_t row = finish.row + round * stride->second;
        if (row < 0 || row >= static_cast<std::int64_t>(transfers.size())) return false;
        for (std::uint32_t i = dependent_offset[row]; i < dependent_offset[row + 1]; i++) {
            num_told++;
            if (--transfers[dependent_row[i]].num_dependencies > 0) continue;
            if (next == end) return false;
            if (!is_released_again(round, rounds.releases[next++], dependent_row[i], finish.time_ps + moved_ps))
                return false;
        }
        if (next != end) return false;
    }
    return true;
}

template <bool is_full>
bool Engine<is_full>::is_released_again(std::int64_t round, const Release& release, std::uint32_t row,
                                        Picoseconds finish_ps) {
    const std::int64_t distance = std::int64_t{row} - release.row;
    const auto stride = rounds.strides.find(release.row);
    if (stride != rounds.strides.end()) {
        if (distance != round * stride->second) return false;
    } else if (round == 1) {
        rounds.strides.emplace(release.row, distance);
    } else {
        return false;
    }
    const ReadyRule rule = ready_rules.empty() ? ReadyRule{} : ready_rules[row];
    const Picoseconds ready_ps = std::max(finish_ps, rule.earliest_ps) + rule.delay_ps;
    return ready_ps == release.ready_ps + round * rounds.whole.period_ps && are_alike(row, release.row);
}

// Undo the first so many steps of a round's `release_again`.
template <bool is_full>
void Engine<is_full>::take_back_releases(std::int64_t round, std::size_t num_told) {
    for (const Finish& finish : rounds.finishes) {
        if (num_told == 0) return;
        const std::int64_t row = finish.row + round * rounds.strides.at(finish.row);
        for (std::uint32_t i = dependent_offset[row]; i < dependent_offset[row + 1] && num_told > 0; i++, num_told--) {
            transfers[dependent_row[i]].num_dependencies++;
        }
    }
}

template <bool is_full>
void Engine<is_full>::write_transfers(std::int64_t num_rounds) {
    std::vector<std::pair<std::uint32_t, Transfer>> kept;  // as the round has left them: one may be in another's place
    for (const auto& [row, stride] : rounds.strides) {
        if (stride != 0) kept.emplace_back(row, transfers[row]);
    }
    for (const auto& [row, transfer] : kept) write_transfer(row, transfer, num_rounds);
}

// Write what happens to those in a transfer's place as it happened to it in the kept round. Its packets have numbers
// once it is its queue pair's to send, which may be in a later round than that in which it became ready.
template <bool is_full>
void Engine<is_full>::write_transfer(std::uint32_t row, const Transfer& first, std::int64_t num_rounds) {
    const std::int64_t stride = rounds.strides.at(row);
    const auto is_of_round = [&](Picoseconds time_ps) { return time_ps > rounds.whole.state_ps && time_ps <= now_ps; };
    std::uint32_t num_packets = 0;
    if (first.queue_pair != NONE)
        num_packets = senders[first.queue_pair].next_sequence - rounds.whole.next_sequences[first.queue_pair];
    for (std::int64_t round = 1; round <= num_rounds; round++) {
        const Picoseconds moved_ps = round * rounds.whole.period_ps;
        Transfer& transfer = transfers[static_cast<std::size_t>(row + round * stride)];
        if (is_of_round(first.ready_ps)) {
            transfer.ready_ps = first.ready_ps + moved_ps;
            transfer.next = NONE;
        }
        if (first.end_sequence > 0)
            transfer.end_sequence = first.end_sequence + static_cast<std::uint32_t>(round) * num_packets;
        if (is_of_round(first.start_ps)) transfer.start_ps = first.start_ps + moved_ps;
        if (is_of_round(first.finish_ps)) transfer.finish_ps = first.finish_ps + moved_ps;
        if (!is_of_round(first.acknowledged_ps)) continue;
        transfer.acknowledged_ps = first.acknowledged_ps + moved_ps;
        transfer.num_retransmitted = first.num_retransmitted;
        transfer.num_cnps = first.num_cnps;
    }
}

// By queue pair, from the oldest that is not acknowledged.
template <bool is_full>
std::vector<std::vector<MessageUnderWay>> Engine<is_full>::messages_under_way() const {
    std::vector<std::vector<MessageUnderWay>> messages(senders.size());
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) {
        for (std::uint32_t row = senders[qp].oldest; row != NONE; row = transfers[row].next) {
            messages[qp].push_back({row, transfers[row].num_cnps, transfers[row].num_retransmitted});
        }
    }
    return messages;
}

// The transfers in the places of these follow one another as these did.
template <bool is_full>
void Engine<is_full>::link_messages(const std::vector<std::vector<MessageUnderWay>>& messages,
                                    std::int64_t num_rounds) {
    const auto in_place_of = [&](std::uint32_t row) {
        return static_cast<std::uint32_t>(row + num_rounds * rounds.strides.at(row));
    };
    for (const std::vector<MessageUnderWay>& rows : messages) {
        for (std::size_t place = 0; place < rows.size(); place++) {
            Transfer& transfer = transfers[in_place_of(rows[place].row)];
            transfer.next = place + 1 < rows.size() ? in_place_of(rows[place + 1].row) : NONE;
            transfer.num_retransmitted = rows[place].num_retransmitted;
            transfer.num_cnps = rows[place].num_cnps;
        }
    }
}

}  // namespace netsim
