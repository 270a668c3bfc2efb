// Windows: what the queue pairs of a component do in one stretch of time after another, and who shares with whom.
//
// A window ends with an event of its own, the last of its instant, which is no part of the run. A queue pair's windows
// count from when its group changed: those that send through ports with it, and through ports with these.

#include <algorithm>
#include <numeric>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::prepare_mean_rates() {
    // Probes see queues that a span would not have, a law with timers recovers for longer than windows can tell, and
    // what only the full engine has is not moved.
    const bool is_possible = settings.probe_interval_ps == NEVER && !law.on_timer && !is_full;
    at_mean_rates.are_taken = settings.skips_at_mean_rates && is_possible;
    if (!is_bounded()) return;
    MeanRates& rates = skip.mean_rates;
    rates.pairs.resize(senders.size());
    rates.first_pair_of_port.assign(ports.size(), NONE);
    rates.packets_of_port.resize(ports.size());
    at_mean_rates.low_ps.resize(settings.num_transfers);
    at_mean_rates.high_ps.resize(settings.num_transfers);
    at_mean_rates.passed_port.resize(ports.size());
}

// Two round trips of the slowest busy pair.
template <bool is_full>
Picoseconds Engine<is_full>::window_length_ps(const Component& component) const {
    static constexpr std::int64_t ROUND_TRIPS = 2;
    Picoseconds longest_ps = 1;
    for (const std::uint32_t qp : component.queue_pairs) {
        if (!is_busy(qp)) continue;
        const Picoseconds rtt_ps = std::max(senders[qp].rtt_ps, flow(qp).base_rtt_ps);
        longest_ps = std::max(longest_ps, ROUND_TRIPS * rtt_ps);
    }
    return longest_ps;
}

// Begin to watch a component, if it is not watched.
template <bool is_full>
void Engine<is_full>::arm_window(std::uint32_t index) {
    Component& component = skip.components[index];
    ComponentWindows& windows = component.windows_of_rates;
    if (windows.next_ps != NEVER || skip.is_catching_up) return;  // an instant that is over has no window any more
    for (const std::uint32_t qp : component.queue_pairs) open_window(skip.mean_rates.pairs[qp], senders[qp]);
    push_window(windows, index, now_ps + window_length_ps(component));
}

// Who is busy in a component has changed, or is about to.
template <bool is_full>
void Engine<is_full>::note_change(std::uint32_t index) {
    if (!is_bounded()) return;
    end_audit(index);
    skip.components[index].windows_of_rates.has_changed = true;
    arm_window(index);
}

template <bool is_full>
void Engine<is_full>::push_window(ComponentWindows& windows, std::uint32_t index, Picoseconds time_ps) {
    windows.begin_ps = now_ps;
    windows.next_ps = std::min(time_ps, std::max(windows.audit_end_ps, now_ps + 1));
    queue.push(windows.next_ps, identify(EventKind::Clock, WINDOW, index));
}

template <bool is_full>
void Engine<is_full>::on_window(std::uint32_t index) {
    num_unqueued_events--;
    const bool is_valid = index < skip.components.size() && skip.components[index].windows_of_rates.next_ps == now_ps;
    if (is_valid) {
        Component& component = skip.components[index];
        ComponentWindows& windows = component.windows_of_rates;
        windows.next_ps = NEVER;
        if (now_ps >= windows.audit_end_ps) end_audit(index);
        if (end_window(component)) {
            if (!component.is_asleep && windows.audit_ps == NEVER) consider_span(component, index);
            if (!windows.is_span) push_window(windows, index, now_ps + window_length_ps(component));
        }
    }
    now_ps = skip.handled_ps;
}

// Close the windows of all busy pairs and open new ones; false if none has moved, so that there is nothing to watch.
template <bool is_full>
bool Engine<is_full>::end_window(Component& component) {
    ComponentWindows& windows = component.windows_of_rates;
    const Picoseconds length_ps = now_ps - windows.begin_ps;
    if (windows.has_changed) make_groups(component);
    windows.has_changed = false;
    bool has_moved = component.is_asleep;
    for (const std::uint32_t qp : component.queue_pairs) {
        PairWindows& pair = skip.mean_rates.pairs[qp];
        if (component.is_asleep || !is_busy(qp)) {
            pair.is_open = false;
            continue;
        }
        has_moved |= senders[qp].oldest_sequence != pair.from_sequence || !pair.is_open;
        if (pair.is_open) close_window(pair, qp, length_ps);
        open_window(pair, senders[qp]);
    }
    return has_moved;
}

template <bool is_full>
void Engine<is_full>::open_window(PairWindows& pair, const Sender& sender) {
    pair.is_open = true;
    pair.from_sequence = sender.oldest_sequence;
}

template <bool is_full>
void Engine<is_full>::close_window(PairWindows& pair, std::uint32_t qp, Picoseconds length_ps) {
    const Sender& sender = senders[qp];
    if (pair.is_settling) {
        pair.is_settling = false;
        return;
    }
    const auto num_packets = static_cast<double>(sender.oldest_sequence - pair.from_sequence);
    const auto length = static_cast<double>(length_ps);
    pair.add(num_packets / length, static_cast<double>(sender.next_sequence - sender.oldest_sequence), length);
}

template <bool is_full>
std::uint32_t Engine<is_full>::group_root(std::uint32_t place) {
    std::vector<std::uint32_t>& parent = skip.mean_rates.group_of_place;
    while (parent[place] != place) place = parent[place] = parent[parent[place]];
    return place;
}

// Go on with what is remembered of the new group; its first window is left out, and the next one waited for.
template <bool is_full>
void Engine<is_full>::change_group(std::uint32_t qp, std::uint64_t group) {
    static constexpr std::size_t MOST_REMEMBERED = 1 << 16;
    MeanRates& rates = skip.mean_rates;
    PairWindows& pair = rates.pairs[qp];
    const auto key = [&](std::uint64_t signature) { return mix64(signature + mix64(qp)); };
    if (pair.num_fresh > 0 && rates.remembered.size() < MOST_REMEMBERED) {
        rates.remembered[key(pair.group)] = {pair.rates,     pair.in_flight, pair.lengths_ps,
                                             pair.num_given, pair.num,       pair.rate};
    }
    const auto found = rates.remembered.find(key(group));
    pair.group = group;
    pair.is_settling = true;
    pair.num_fresh = pair.num_given = pair.num = 0;
    pair.rate = {};
    if (found == rates.remembered.end()) return;
    const RememberedWindows& before = found->second;
    pair.rates = before.rates;
    pair.in_flight = before.in_flight;
    pair.lengths_ps = before.lengths_ps;
    pair.num_given = before.num_given;
    pair.num = before.num;
    pair.rate = before.rate;
}

// Join the pairs with something to send that share ports; those whose group has changed begin anew.
template <bool is_full>
void Engine<is_full>::make_groups(const Component& component) {
    MeanRates& rates = skip.mean_rates;
    const std::size_t num_pairs = component.queue_pairs.size();
    const auto is_sending = [&](std::uint32_t qp) { return senders[qp].next_sequence != senders[qp].end_sequence; };
    rates.group_of_place.resize(num_pairs);
    std::iota(rates.group_of_place.begin(), rates.group_of_place.end(), 0u);
    for (std::uint32_t place = 0; place < num_pairs; place++) {
        const std::uint32_t qp = component.queue_pairs[place];
        if (!is_sending(qp)) continue;
        for (std::uint32_t entry = path_begin(qp, 0); path[entry] != NONE; entry++) {
            std::uint32_t& first = rates.first_pair_of_port[path[entry]];
            if (first == NONE) first = place;
            rates.group_of_place[group_root(place)] = group_root(first);
        }
    }
    std::vector<std::uint64_t> signatures(num_pairs);
    for (std::uint32_t place = 0; place < num_pairs; place++) {
        const std::uint32_t qp = component.queue_pairs[place];
        if (is_sending(qp)) signatures[group_root(place)] += mix64(qp + 1);
    }
    for (std::uint32_t place = 0; place < num_pairs; place++) {
        PairWindows& pair = rates.pairs[component.queue_pairs[place]];
        const std::uint64_t signature = signatures[group_root(place)];
        if (pair.group != signature) change_group(component.queue_pairs[place], signature);
    }
    for (const std::uint32_t port : component.ports) rates.first_pair_of_port[port] = NONE;
}

}  // namespace netsim
