// The move by rounds: how many there are, and the whole run after them.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

// Take as many rounds at once as will repeat; false if there are none.
template <bool is_full>
bool Engine<is_full>::take_rounds(Picoseconds until_ps) {
    rounds.whole.period_ps = now_ps - rounds.whole.state_ps;
    const std::int64_t num_rounds = repeat_round(until_ps);
    if (num_rounds > 0) move_round(num_rounds);
    return num_rounds > 0;
}

// Up to what stands, to the first round that ends otherwise, and to what laws do.
template <bool is_full>
std::int64_t Engine<is_full>::repeat_round(Picoseconds until_ps) {
    static constexpr std::int64_t MOST_ROUNDS = 1 << 20, MOST_CALLS = 1 << 26;
    Component& whole = rounds.whole;
    close_section(whole);
    until_ps = std::min({until_ps, settings.time_limit_ps, next_probe_ps(now_ps)});
    const std::vector<CallsOfPair> groups = group_calls(whole);
    std::int64_t num = std::min(MOST_ROUNDS, MOST_CALLS / (num_repeated(whole, groups) + 1));
    if (until_ps != NEVER) num = std::min(num, (until_ps - 1 - now_ps) / whole.period_ps);
    num = repeat_releases(num);
    if (num == 0 || groups.empty()) return num;
    const Array<CacheLine> records = flows;
    const std::int64_t num_same = repeat_calls(whole, groups, num);
    if (num_same == num) return num;
    flows = records;
    for (std::int64_t round = num_same + 1; round <= num; round++) {
        take_back_releases(round, std::numeric_limits<std::size_t>::max());
    }
    if (num_same > 0) repeat_calls(whole, groups, num_same);
    return num_same;
}

template <bool is_full>
void Engine<is_full>::move_round(std::int64_t num_rounds) {
    const Picoseconds moved_ps = num_rounds * rounds.whole.period_ps;
    const auto messages = messages_under_way();
    write_transfers(num_rounds);
    MovingRound moving{{rounds.values, rounds.whole.period_ps, num_rounds}, rounds.strides};
    walk_run(moving);
    move_events(moving);
    link_messages(messages, num_rounds);
    repeat_draws(rounds.whole, num_rounds);
    move_totals(num_rounds);
    drop_round();
    search_after_rounds(moved_ps);
}

// What stands comes when it would have come; all else that much later.
template <bool is_full>
void Engine<is_full>::move_events(MovingRound& moving) {
    const Picoseconds moved_ps = moving.num_periods * moving.period_ps;
    std::vector<FarEvents::Event> events = queue.take_all();
    now_ps += moved_ps;
    queue.begin_after(now_ps);
    for (const KeptEvent& event : rounds.standing) queue.push(event.time_ps, event.identity);
    for (const KeptEvent& event : rounds.moving) {
        EventIdentity identity = event.identity;
        if (kind_of(identity) == EventKind::Transfer) {
            auto row = static_cast<std::uint32_t>(transfer_of(identity));
            moving.row(row);
            identity = identify_transfer(row, is_transfer_end(identity));
        } else if (kind_of(identity) == EventKind::Arrival) {
            moving.place = event.place;
            walk_packet(moving, payload_of(identity));
        }
        queue.push(event.time_ps + moved_ps, identity);
    }
    for (const auto& event : events) {  // what wakes a component that is awake
        const bool is_void = kind_of(event.identity) == EventKind::Clock && id_of(event.identity) == RESUME;
        if (is_void) queue.push(event.time_ps + moved_ps, event.identity);
    }
}

template <bool is_full>
void Engine<is_full>::move_totals(std::int64_t num_rounds) {
    const auto num = static_cast<std::uint64_t>(num_rounds);
    const Totals& before = rounds.totals;
    const Totals now = totals();
    const auto move = [&](PacketCounts& counts, const PacketCounts& then) {
        counts.sent += num * (counts.sent - then.sent);
        counts.delivered += num * (counts.delivered - then.delivered);
    };
    move(data_packets, before.data_packets);
    move(control_packets, before.control_packets);
    acknowledged_bytes += num * (now.acknowledged_bytes - before.acknowledged_bytes);
    num_unfinished -= static_cast<std::uint32_t>(num_rounds) * (before.num_unfinished - now.num_unfinished);
    num_skipped_events += num * (now.num_events - before.num_events);
    rounds.num_skipped += num * (now.num_events - before.num_events);
}

// Times that components remember have moved, and so nothing that they keep holds.
template <bool is_full>
void Engine<is_full>::search_after_rounds(Picoseconds moved_ps) {
    skip.handled_ps = skip.before_ps = now_ps;
    for (std::vector<PauseFrame>& frames : skip.pause_frames) {
        for (PauseFrame& frame : frames) frame.effective_ps += moved_ps;
    }
    for (std::uint32_t index = 0; index < skip.components.size(); index++) {
        Component& component = skip.components[index];
        component.unsettled_until_ps += moved_ps;
        if (!component.queue_pairs.empty()) start_search(component, index);
    }
}

}  // namespace netsim
