// Spans: a stationary component is left alone for a while, then moved as far as its mean rates say.
//
// What is queued, on the wires and pending stays as it is, later by the span. Sequences advance; what ports have sent
// follows from that; what they mark and how long they pause grows with it.

#include <algorithm>
#include <cmath>

#include "../engine.hpp"

namespace netsim {

// Until two packets before a message ends, at the sender, at the receiver, or in acknowledgements.
template <bool is_full>
std::int64_t Engine<is_full>::packets_left(std::uint32_t qp) const {
    static constexpr std::int64_t MARGIN = 2;  // the last packet of a message may be short
    const Sender& sender = senders[qp];
    const Receiver& receiver = receivers[qp];
    return std::min({std::int64_t{sender.message_end} - sender.next_sequence,
                     std::int64_t{sender.oldest_end} - sender.oldest_sequence,
                     std::int64_t{receiver.message_end} - receiver.expected_sequence}) -
           MARGIN;
}

template <bool is_full>
double Engine<is_full>::mean_packets(const MeanRate& rate, double span_ps) const {
    return rate.mean * (1 + settings.mean_rate_bias) * span_ps;
}

// Until the first message ends, but no longer than what was seen allows; 0 if not all is stationary.
template <bool is_full>
Picoseconds Engine<is_full>::longest_span_ps(const Component& component) const {
    static constexpr double LONGER_THAN_SEEN = 4;
    double span_ps = 1e18;
    bool is_any = false;
    for (const std::uint32_t qp : component.queue_pairs) {
        if (!is_busy(qp)) continue;
        const Sender& sender = senders[qp];
        const PairWindows& pair = skip.mean_rates.pairs[qp];
        const MeanRate& rate = pair.rate;
        if (pair.num_fresh == 0 || !rate.is_stationary || sender.has_rewound || sender.state == SenderState::Failed)
            return 0;
        if (sender.next_sequence == sender.end_sequence) return 0;  // its last packets are on their way
        const auto left = static_cast<double>(std::max<std::int64_t>(packets_left(qp), 0));
        span_ps =
            std::min({span_ps, left / mean_packets(rate, 1), LONGER_THAN_SEEN * rate.num_windows * rate.window_ps});
        is_any = true;
    }
    return is_any ? static_cast<Picoseconds>(span_ps) : 0;
}

// Whether every half-width, times a factor, is as narrow as was asked for.
template <bool is_full>
bool Engine<is_full>::is_precise(const Component& component, Picoseconds span_ps, double factor) const {
    const auto span = static_cast<double>(span_ps);
    return std::ranges::all_of(component.queue_pairs, [&](std::uint32_t qp) {
        const MeanRate& rate = skip.mean_rates.pairs[qp].rate;
        if (!is_busy(qp)) return true;
        return factor * half_width_packets(rate, span) <= settings.skip_precision * rate.mean * span;
    });
}

// Take a component at its mean rates if they are known, or audit what that would give.
template <bool is_full>
void Engine<is_full>::consider_span(Component& component, std::uint32_t index) {
    static constexpr Picoseconds FEWEST_WINDOWS_AHEAD = 2;
    static constexpr std::uint64_t AUDITS = 0x617564697473;  // a stream of its own
    const Picoseconds span_ps = std::min(longest_span_ps(component), settings.time_limit_ps - 1 - now_ps);
    if (span_ps < FEWEST_WINDOWS_AHEAD * window_length_ps(component)) return;
    if (now_ps + span_ps <= last_arrival_ps(component) || !is_precise(component, span_ps, 1)) return;
    MeanRates& rates = skip.mean_rates;
    RandomStream draws(settings.random_key ^ AUDITS, rates.num_considered++);
    const bool is_audited = draws.next_fraction() < settings.audited_fraction;
    if (is_audited || !rates.calibration.is_known()) return begin_audit(component, span_ps);
    if (is_precise(component, span_ps, rates.calibration.factor())) begin_span(component, index, span_ps);
}

// When all that a component has on its way has arrived, timers apart.
template <bool is_full>
Picoseconds Engine<is_full>::last_arrival_ps(const Component& component) const {
    Picoseconds last_ps = now_ps;
    for (const std::uint32_t port : component.ports) {
        last_ps = std::max(last_ps, ports[port].busy_until_ps + ports[port].delay_ps);
        for (const PauseFrame& frame : skip.pause_frames[port]) last_ps = std::max(last_ps, frame.effective_ps);
    }
    for (const std::uint32_t qp : component.queue_pairs) {
        if (senders[qp].pace_event_ps != NEVER) last_ps = std::max(last_ps, senders[qp].pace_event_ps);
    }
    return last_ps;
}

template <bool is_full>
void Engine<is_full>::begin_span(Component& component, std::uint32_t index, Picoseconds span_ps) {
    stop_search(component);
    at_mean_rates.num_spans++;
    component.horizon_ps = last_arrival_ps(component);
    component.slept_ps = now_ps;
    component.wake_ps = now_ps + span_ps;
    component.windows_of_rates.is_span = component.is_asleep = true;
    for (const std::uint32_t port : component.ports) ports[port].is_asleep = true;
    skip.num_asleep++;
    skip.num_resumes++;
    queue.push(component.wake_ps, identify(EventKind::Clock, RESUME, index));
    update_attention();
}

// Something from outside comes: end the span at this instant, before the event being handled.
template <bool is_full>
void Engine<is_full>::rouse_from_span(std::uint32_t index, EventIdentity identity) {
    Component& component = skip.components[index];
    // At first some of its events have not been put aside yet.
    const Picoseconds span_ps = now_ps > component.horizon_ps ? now_ps - component.slept_ps : 0;
    skip.num_void_resumes++;
    queue.begin_catching_up(now_ps, identity);
    end_span(component, index, span_ps);
    catch_up();
    queue.end_catching_up();
}

// Move a component by a span that is over, and give its events back.
template <bool is_full>
void Engine<is_full>::end_span(Component& component, std::uint32_t index, Picoseconds span_ps) {
    component.windows_of_rates.is_span = component.is_asleep = false;
    for (const std::uint32_t port : component.ports) ports[port].is_asleep = false;
    skip.num_asleep--;
    if (span_ps > 0) move_by(component, span_ps);
    for (const PendingEvent& event : component.parked) queue.push(event.time_ps + span_ps, event.identity);
    component.parked.clear();
    for (const std::uint32_t qp : component.queue_pairs) {
        if (!is_busy(qp) || senders[qp].timer_event_ps == NEVER) continue;
        queue.push(senders[qp].timer_event_ps, identify(EventKind::Timer, qp));
    }
    start_search(component, index);
    arm_window(index);
}

template <bool is_full>
void Engine<is_full>::move_by(Component& component, Picoseconds span_ps) {
    widen(component, span_ps);
    const std::int64_t step = settings.ack_every_packets;
    for (const std::uint32_t qp : component.queue_pairs) {
        PairWindows& pair = skip.mean_rates.pairs[qp];
        pair.num_moved = 0;
        if (!is_busy(qp)) continue;
        const auto wanted = std::llround(mean_packets(pair.rate, static_cast<double>(span_ps)));
        const std::int64_t num = std::clamp<std::int64_t>(wanted, 0, std::max<std::int64_t>(packets_left(qp), 0));
        pair.num_moved = static_cast<std::uint32_t>(num / step * step);
        count_moved(qp, pair.num_moved);
    }
    for (const std::uint32_t port : component.ports) move_port(port, span_ps);
    for (const PendingEvent& event : component.parked) {
        if (kind_of(event.identity) == EventKind::Arrival) move_packet(payload_of(event.identity), span_ps);
    }
    for (const std::uint32_t qp : component.queue_pairs) {
        if (is_busy(qp)) move_pair(qp, span_ps);
        skip.mean_rates.pairs[qp].num_moved = 0;
    }
}

template <bool is_full>
void Engine<is_full>::move_pair(std::uint32_t qp, Picoseconds span_ps) {
    Sender& sender = senders[qp];
    Receiver& receiver = receivers[qp];
    const std::uint32_t num = skip.mean_rates.pairs[qp].num_moved;
    sender.next_sequence += num;
    sender.oldest_sequence += num;
    sender.highest_sequence += num;
    receiver.expected_sequence += num;
    for (Picoseconds* time_ps : {&sender.last_send_ps, &sender.pace_event_ps, &sender.timer_event_ps,
                                 &sender.timeout_ps, &receiver.cnp_allowed_ps}) {
        if (*time_ps != NEVER) *time_ps += span_ps;
    }
    if (settings.cnp_delay_ps > 0) {
        RingBuffer<Picoseconds>& pending = pending_notifications[qp];
        for (std::uint32_t place = 0; place < pending.size(); place++) pending[place] += span_ps;
    }
    skip.law_lag_ps[qp] += span_ps;
}

template <bool is_full>
void Engine<is_full>::move_packet(std::uint32_t packet_id, Picoseconds span_ps) {
    Packet& packet = packets[packet_id];
    packet.sent_ps += span_ps;
    if (packet.type != PacketType::Cnp) packet.sequence += skip.mean_rates.pairs[packet.queue_pair].num_moved;
}

// Marks and pauses in proportion to the packets that a port has sent so far.
template <bool is_full>
void Engine<is_full>::move_port(std::uint32_t index, Picoseconds span_ps) {
    Port& port = ports[index];
    PortStats& stats = port_stats[index];
    port.busy_until_ps += span_ps;
    if (port.is_paused) stats.paused_since_ps += span_ps;
    for (PauseFrame& frame : skip.pause_frames[index]) frame.effective_ps += span_ps;
    for (const std::uint32_t head : port.head) {
        for (std::uint32_t packet = head; packet != NONE; packet = packets[packet].next) move_packet(packet, span_ps);
    }
    const std::uint64_t num = std::exchange(skip.mean_rates.packets_of_port[index], 0), sent = tx_packets(index, DATA);
    if (num == 0) return;
    at_mean_rates.passed_port[index] = true;
    set_tx_packets(index, DATA, sent + num);
    if (sent == 0) return;
    const double growth = static_cast<double>(num) / static_cast<double>(sent);
    const auto grow = [&](auto& count) {
        count +=
            static_cast<std::remove_reference_t<decltype(count)>>(std::llround(growth * static_cast<double>(count)));
    };
    grow(stats.marked_packets);
    grow(stats.num_pauses);
    grow(stats.paused_ps);
}

// Count what a queue pair is taken to have sent, and the answers to it.
template <bool is_full>
void Engine<is_full>::count_moved(std::uint32_t qp, std::uint32_t num_packets) {
    const Sender& sender = senders[qp];
    Transfer& transfer = transfers[sender.oldest];
    const std::uint32_t num_before = sender.oldest_sequence - transfer.first_sequence(settings.mtu_bytes);
    const auto num_cnps =
        static_cast<std::uint32_t>(num_before ? std::uint64_t{num_packets} * transfer.num_cnps / num_before : 0);
    const std::uint64_t num_answers = num_packets / settings.ack_every_packets + num_cnps;
    transfer.num_cnps += num_cnps;
    for (std::uint32_t entry = path_begin(qp, 0); path[entry] != NONE; entry++) {
        skip.mean_rates.packets_of_port[path[entry]] += num_packets;
        ports[path[entry]].tx_bytes += std::uint64_t{num_packets} * sender.last_wire_bytes;
        at_mean_rates.num_events += num_packets;
    }
    for (std::uint32_t entry = path_begin(qp, 1); path[entry] != NONE; entry++) {
        set_tx_packets(path[entry], CONTROL, tx_packets(path[entry], CONTROL) + num_answers);
        ports[path[entry]].tx_bytes += num_answers * static_cast<std::uint64_t>(settings.ack_bytes);
        at_mean_rates.num_events += num_answers;
    }
    data_packets.sent += num_packets;
    data_packets.delivered += num_packets;
    control_packets.sent += num_answers;
    control_packets.delivered += num_answers;
    acknowledged_bytes += std::uint64_t{num_packets} * static_cast<std::uint64_t>(settings.mtu_bytes);
    at_mean_rates.num_packets += num_packets;
}

// Simulate a span, and keep what would have been taken for it.
template <bool is_full>
void Engine<is_full>::begin_audit(Component& component, Picoseconds span_ps) {
    ComponentWindows& windows = component.windows_of_rates;
    windows.audit_ps = now_ps;
    windows.audit_end_ps = now_ps + span_ps;
    windows.audited_factor = skip.mean_rates.calibration.is_known() ? skip.mean_rates.calibration.factor() : 0;
    windows.predictions.clear();
    for (const std::uint32_t qp : component.queue_pairs) {
        if (is_busy(qp))
            windows.predictions.push_back({qp, senders[qp].oldest_sequence, skip.mean_rates.pairs[qp].rate});
    }
}

// Compare what was predicted with what has happened so far; a span would have ended here too.
template <bool is_full>
void Engine<is_full>::end_audit(std::uint32_t index) {
    if (!is_bounded() || skip.components[index].windows_of_rates.audit_ps == NEVER) return;
    rouse(index);
    ComponentWindows& windows = skip.components[index].windows_of_rates;
    const auto span_ps = static_cast<double>(now_ps - windows.audit_ps);
    windows.audit_ps = windows.audit_end_ps = NEVER;
    if (span_ps < 2 * windows.predictions.front().rate.window_ps) return;  // too short to tell
    Calibration& calibration = skip.mean_rates.calibration;
    for (const Prediction& prediction : windows.predictions) {
        const std::int64_t done =
            std::int64_t{senders[prediction.queue_pair].oldest_sequence} - prediction.from_sequence;
        const double error = std::abs(static_cast<double>(done) - mean_packets(prediction.rate, span_ps)) /
                             half_width_packets(prediction.rate, span_ps);
        calibration.add(error);
        if (windows.audited_factor == 0) continue;  // it only serves to know the factor
        at_mean_rates.num_predicted++;
        at_mean_rates.num_inside += error <= windows.audited_factor;
    }
    calibration.end_audit();
    at_mean_rates.num_audits++;
}

}  // namespace netsim
