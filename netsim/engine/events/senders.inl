// Senders: a NIC pulls packets from its queue pairs in turn; each queue pair keeps to its window and its pace.

#include <algorithm>
#include <cmath>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
inline std::uint32_t Engine<is_full>::next_payload_bytes(const Sender& sender) const {
    return sender.next_sequence + 1 == sender.message_end ? sender.last_payload_bytes
                                                          : static_cast<std::uint32_t>(settings.mtu_bytes);
}

// A window below one packet lets one packet out at a time; `earliest_send_ps` spaces them.
template <bool is_full>
inline bool Engine<is_full>::is_window_open(std::uint32_t qp, const Sender& sender) const {
    if (sender.next_sequence == sender.oldest_sequence) return true;
    const auto wanted_bytes = static_cast<double>(sender.in_flight_bytes + next_payload_bytes(sender));
    const bool is_open = wanted_bytes <= flow(qp).cwnd_bytes;
    if constexpr (SKIPS) {
        if (sender.is_logged) [[unlikely]]
            log_window(qp, wanted_bytes, is_open);
    }
    return is_open;
}

template <bool is_full>
inline bool Engine<is_full>::may_send(std::uint32_t qp, const Sender& sender) const {
    if constexpr (is_full) {
        if (is_selective()) return may_send_selectively(qp, sender);
    }
    return sender.next_sequence != sender.end_sequence && is_window_open(qp, sender);
}

template <bool is_full>
inline Picoseconds Engine<is_full>::earliest_send_ps(std::uint32_t qp, const Sender& sender) const {
    Picoseconds gap_ps = sender.gap_ps;
    const double cwnd_bytes = flow(qp).cwnd_bytes;
    const auto mtu_bytes = static_cast<double>(settings.mtu_bytes);
    if constexpr (SKIPS) {
        if (sender.is_logged) [[unlikely]]
            log_window(qp, mtu_bytes, true);
    }
    if (cwnd_bytes < mtu_bytes) [[unlikely]] {
        const double round_trips = mtu_bytes / cwnd_bytes;
        const double wait_ps = std::min(std::ceil(static_cast<double>(sender.rtt_ps) * round_trips), MAX_GAP_PS);
        gap_ps = std::max(gap_ps, static_cast<Picoseconds>(wait_ps));
    }
    if constexpr (is_full) {
        if (has_receive_queues()) return std::max(sender.last_send_ps + gap_ps, refused_senders[qp].until_ps);
    }
    return sender.last_send_ps + gap_ps;
}

// Let a queue pair send as soon as its transfers, window and pace allow.
template <bool is_full>
inline void Engine<is_full>::resume(std::uint32_t qp) {
    Sender& sender = senders[qp];
    if (sender.state != SenderState::Waiting) return;
    if (!may_send(qp, sender)) {
        if constexpr (is_full) ask_for_credit(qp, sender);
        return;
    }
    const Picoseconds earliest_ps = earliest_send_ps(qp, sender);
    if (sender.pace_event_ps <= earliest_ps) return;  // that event will look again
    if (earliest_ps > std::max(now_ps, ports[sender.port].busy_until_ps)) {
        return schedule_pace(qp, sender, earliest_ps);
    }
    join_ring(qp, sender);
    kick(sender.port);
}

template <bool is_full>
inline void Engine<is_full>::schedule_pace(std::uint32_t qp, Sender& sender, Picoseconds time_ps) {
    if (sender.pace_event_ps <= time_ps) return;  // the earlier event will look again
    if constexpr (SKIPS) {
        if (sender.pace_event_ps != NEVER) [[unlikely]]
            disturb(qp);
    }
    sender.pace_event_ps = time_ps;
    queue.push(time_ps, identify(EventKind::Pace, qp));
}

template <bool is_full>
inline void Engine<is_full>::on_pace(std::uint32_t qp) {
    Sender& sender = senders[qp];
    if (sender.pace_event_ps != now_ps) return;  // overtaken by an earlier one
    sender.pace_event_ps = NEVER;
    resume(qp);
}

template <bool is_full>
inline Ring& Engine<is_full>::ring_of(std::uint32_t qp, const Sender& sender) {
    if (has_priorities()) return priorities.output(sender.port, priorities.queue_pair[qp]).ring;
    return port_stats[sender.port].ring;
}

template <bool is_full>
inline void Engine<is_full>::join_ring(std::uint32_t qp, Sender& sender) {
    Ring& ring = ring_of(qp, sender);
    sender.state = SenderState::InRing;
    sender.ring_next = NONE;
    (ring.head == NONE ? ring.head : senders[ring.tail].ring_next) = qp;
    ring.tail = qp;
    if (has_priorities()) priorities.note_waiting(sender.port, priorities.queue_pair[qp]);
}

// Send a packet of the first queue pair in the ring that still may; false if there is none.
template <bool is_full>
inline bool Engine<is_full>::send_from_ring(Ring& ring, Port& out) {
    while (ring.head != NONE) {
        const std::uint32_t qp = ring.head;
        Sender& sender = senders[qp];
        ring.head = sender.ring_next;
        if (sender.state == SenderState::Failed) continue;
        sender.state = SenderState::Waiting;
        if (!may_send(qp, sender)) continue;
        const Picoseconds earliest_ps = earliest_send_ps(qp, sender);
        if (earliest_ps > now_ps) {
            schedule_pace(qp, sender, earliest_ps);
            continue;
        }
        send_data(qp, sender, out);
        return true;
    }
    return false;
}

template <bool is_full>
inline Picoseconds Engine<is_full>::next_timeout_ps(const Sender& sender) const {
    const Picoseconds wait_ps = retransmission_waits[sender.num_timeouts];
    return wait_ps == NEVER ? NEVER : now_ps + wait_ps;
}

template <bool is_full>
inline void Engine<is_full>::send_data(std::uint32_t qp, Sender& sender, Port& out) {
    if constexpr (is_full) {
        if (is_selective() && !selective_senders[qp].lost.empty()) return repeat_lost(qp, sender, out);
    }
    const std::uint32_t payload_bytes = next_payload_bytes(sender);
    if (sender.next_sequence < sender.highest_sequence) [[unlikely]] {
        transfers[sender.sending].num_retransmitted++;
    } else {
        if (sender.next_sequence == sender.message_begin) transfers[sender.sending].start_ps = now_ps;
        sender.highest_sequence = sender.next_sequence + 1;
    }
    const std::uint32_t packet = emit_data(qp, sender, out, sender.next_sequence, payload_bytes);
    sender.next_sequence++;
    if (sender.next_sequence == sender.message_end && sender.next_sequence != sender.end_sequence) {
        enter_transfer(sender, transfers[sender.sending].next);
    }
    finish_sending(qp, sender, out, packet, payload_bytes);
}

// Put a packet on the wire; returns its number.
template <bool is_full>
inline std::uint32_t Engine<is_full>::emit_data(std::uint32_t qp, Sender& sender, Port& out, std::uint32_t sequence,
                                                std::uint32_t payload_bytes) {
    const std::uint32_t packet_id = packets.allocate();
    Packet& packet = packets[packet_id];
    packet.queue_pair = qp;
    packet.sequence = sequence;
    packet.ingress_port = NONE;
    packet.sent_ps = now_ps;
    packet.path_position = path_begin(qp, 0);
    packet.wire_bytes =
        static_cast<std::uint16_t>(std::max(payload_bytes + settings.wire_overhead_bytes, settings.ack_bytes));
    packet.type = PacketType::Data;
    packet.is_marked = false;
    packet.priority = priority_of(qp, PacketType::Data);
    data_packets.sent++;
    sender.last_send_ps = now_ps;
    sender.in_flight_bytes += payload_bytes;
    if (packet.wire_bytes != sender.last_wire_bytes) {
        sender.last_wire_bytes = packet.wire_bytes;
        set_pace(sender, sender.rate_bps);
    }
    if constexpr (is_full) {
        if (is_selective()) note_transmission(qp, sender, sequence);
        if (has_entropy()) give_entropy(qp, packet_id);
        if (has_credits()) spend_credit(qp, packet_id);
    }
    transmit(sender.port, out, packet_id);
    if (sender.timeout_ps == NEVER) {
        sender.timeout_ps = next_timeout_ps(sender);
        arm_timer(qp, sender, sender.timeout_ps);
    }
    return packet_id;
}

// A packet has left: tell the law, and let the queue pair wait for its next turn.
template <bool is_full>
inline void Engine<is_full>::finish_sending(std::uint32_t qp, Sender& sender, const Port& out,
                                            [[maybe_unused]] std::uint32_t packet_id, std::uint32_t payload_bytes) {
    if constexpr (SKIPS) {
        if (sender.sends_to_beat || sender.is_logged) [[unlikely]]
            note_send(qp, sender, payload_bytes);
    }
    if (law.on_send) obey(ON_SEND, qp, law.on_send(law.params, &flow(qp), law_now_ps(qp), payload_bytes));
    const bool goes_on = may_send(qp, sender);
    if constexpr (is_full) {
        if (coalesces()) packets[packet_id].wants_ack = !goes_on;
    }
    if (!goes_on) return;
    const Picoseconds earliest_ps = earliest_send_ps(qp, sender);
    if (earliest_ps <= out.busy_until_ps) return join_ring(qp, sender);
    schedule_pace(qp, sender, earliest_ps);
}

template <bool is_full>
void Engine<is_full>::enter_transfer(Sender& sender, std::uint32_t row) {
    const Transfer& transfer = transfers[row];
    if constexpr (SKIPS) {
        if (sender.gives_rounds) [[unlikely]]
            note_round_beat();
    }
    sender.sending = row;
    sender.message_begin = transfer.first_sequence(settings.mtu_bytes);
    sender.message_end = transfer.end_sequence;
    sender.last_payload_bytes = static_cast<std::uint16_t>(transfer.last_payload_bytes(settings.mtu_bytes));
}

template <bool is_full>
std::uint32_t Engine<is_full>::transfer_of_sequence(const Sender& sender, std::uint32_t sequence) const {
    std::uint32_t row = sender.oldest;
    while (sequence >= transfers[row].end_sequence && transfers[row].next != NONE) row = transfers[row].next;
    return row;
}

}  // namespace netsim
