// The walk over a whole run: every queue pair and port, all that is pending, the links between GPUs.
//
// Events that are pending stand for what they will do: of an arrival its packet is visited, and of a transfer its row.
// Timers, clocks and transfers that begin at a time of their own stand: they hold the skip back.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_run(Visitor& visitor) {
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) {
        const bool is_unused = senders[qp].newest == NONE;
        if (!visitor.same(is_unused)) return false;
        if (!is_unused && (!walk_sender(visitor, qp) || !walk_receiver(visitor, qp))) return false;
    }
    for (std::uint32_t port = 0; port < ports.size(); port++) {
        if (!walk_port(visitor, port)) return false;
    }
    for (Picoseconds& until_ps : nvlink_out_until_ps) {
        if (!visitor.instant(until_ps, false)) return false;
    }
    for (Picoseconds& until_ps : nvlink_in_until_ps) {
        if (!visitor.instant(until_ps, false)) return false;
    }
    return visitor.same(num_open) && visitor.same(num_transfer_events) &&
           visitor.same(static_cast<std::int64_t>(failed_pairs.size()));
}

// Those of the run, by time; what wakes a component that is awake already is none.
template <bool is_full>
std::vector<FarEvents::Event> Engine<is_full>::pending_events() {
    std::vector<FarEvents::Event> events = queue.take_all();
    queue.begin_after(now_ps);
    for (const auto& event : events) queue.push(event.time_ps, event.identity);
    std::erase_if(events, [](const FarEvents::Event& event) {
        return kind_of(event.identity) == EventKind::Clock && id_of(event.identity) >= RESUME;
    });
    std::sort(events.begin(), events.end());
    return events;
}

template <bool is_full>
void Engine<is_full>::keep_events() {
    KeepingRound keeping{{rounds.values}};
    rounds.events.clear();
    for (const auto& event : pending_events()) {
        rounds.events.push_back({event.time_ps, event.identity, rounds.values.size()});
        if (kind_of(event.identity) == EventKind::Arrival) walk_packet(keeping, payload_of(event.identity));
    }
}

// Whether what was pending stands, or has come again.
template <bool is_full>
bool Engine<is_full>::compare_events(ComparingRound& comparing) {
    std::vector<KeptEvent> now;
    for (const auto& event : pending_events()) now.push_back({event.time_ps, event.identity, 0});
    const auto may_stand = [](const KeptEvent& event) { return kind_of(event.identity) >= EventKind::Timer; };
    const auto is_among = [&](const KeptEvent& event, const std::vector<KeptEvent>& others) {
        const auto found = std::ranges::lower_bound(others, event.time_ps, {}, &KeptEvent::time_ps);
        return may_stand(event) && std::any_of(found, others.end(), [&](const KeptEvent& other) {
                   return other.time_ps == event.time_ps && other.identity == event.identity;
               });
    };
    rounds.moving.clear();
    rounds.standing.clear();
    for (const KeptEvent& event : now) {
        const bool stands = is_among(event, rounds.events);
        (stands ? rounds.standing : rounds.moving).push_back(event);
        if (stands) comparing.until_ps = std::min(comparing.until_ps, event.time_ps);
    }
    std::size_t place = 0;
    for (const KeptEvent& before : rounds.events) {
        if (is_among(before, now)) continue;
        if (place == rounds.moving.size() || !is_shifted(comparing, before, rounds.moving[place])) return false;
        rounds.moving[place++].place = before.place;
    }
    return place == rounds.moving.size();
}

template <bool is_full>
bool Engine<is_full>::is_shifted(ComparingRound& comparing, const KeptEvent& before, const KeptEvent& after) {
    const EventKind kind = kind_of(before.identity);
    if (kind != kind_of(after.identity) || after.time_ps - before.time_ps != comparing.period_ps) return false;
    if (kind == EventKind::Timer || kind == EventKind::Clock) return false;
    if (kind == EventKind::Transfer) {
        if (is_transfer_end(before.identity) != is_transfer_end(after.identity)) return false;
        const auto row = static_cast<std::uint32_t>(transfer_of(before.identity));
        const auto next = static_cast<std::uint32_t>(transfer_of(after.identity));
        return are_alike(row, next) && comparing.note_stride(row, next);
    }
    if (before.identity >> PAYLOAD_BITS != after.identity >> PAYLOAD_BITS) return false;
    if (kind == EventKind::PauseFrame) return before.identity == after.identity;
    comparing.place = before.place;
    return kind != EventKind::Arrival || walk_packet(comparing, payload_of(after.identity));
}

// Whether what takes a transfer's place has its place taken as many rows further.
template <bool is_full>
bool Engine<is_full>::have_one_stride() {
    const std::vector<std::pair<std::uint32_t, std::int64_t>> strides(rounds.strides.begin(), rounds.strides.end());
    return std::ranges::all_of(strides, [&](const auto& stride) {
        const auto next = static_cast<std::uint32_t>(stride.first + stride.second);
        return rounds.strides.emplace(next, stride.second).first->second == stride.second;
    });
}

template <bool is_full>
Totals Engine<is_full>::totals() const {
    return {data_packets, control_packets, acknowledged_bytes, num_events(), num_unfinished};
}

}  // namespace netsim
