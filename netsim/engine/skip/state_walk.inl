// The walk over a component's state: what decides its future, and what it counts.
//
// Senders and receivers come first: they are cheap, and mostly tell that nothing has come again. What is pending
// follows from what is visited: arrivals from the wires, wakes from the ports, paces from the senders. Laws' records
// are not part of it, see law_calls.inl; nor are largest queues, which a repeat cannot change.

#include <algorithm>
#include <bit>

#include "../engine.hpp"

namespace netsim {

// Whether it shows anywhere which packets are marked: to the law, to the choice of entropy or in a capture.
template <bool is_full>
inline bool Engine<is_full>::marks_matter() const {
    return law.reads_marks || (is_full && (settings.recycles_entropy || !captured_flows.empty()));
}

// What is not whole is of the queue pair that gives the beats and some others.
template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk(Visitor& visitor, Component& component, bool is_whole) {
    static constexpr std::size_t SAMPLE = 8;
    const std::size_t num_pairs = component.queue_pairs.size();
    if (!is_whole) {
        const std::uint32_t qp = component.reference;
        if (!walk_sender(visitor, qp) || !walk_receiver(visitor, qp)) return false;
    }
    for (std::size_t place = 0; place < (is_whole ? num_pairs : std::min(num_pairs, SAMPLE)); place++) {
        const std::uint32_t qp = component.queue_pairs[place];
        if (!walk_sender(visitor, qp) || !walk_receiver(visitor, qp)) return false;
    }
    if (!is_whole) return true;
    for (const std::uint32_t port : component.ports) {
        if (!walk_port(visitor, port) || !walk_wire(visitor, port)) return false;
        if (is_full && !walk_port_features(visitor, port)) return false;
    }
    for (std::size_t place = 0; is_full && place < num_pairs; place++) {
        if (!walk_pair_features(visitor, component.queue_pairs[place])) return false;
    }
    return true;
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_sender(Visitor& visitor, std::uint32_t qp) {
    Sender& sender = senders[qp];
    const std::int64_t base = sender.next_sequence;
    if (Visitor::MOVES_MESSAGES && !walk_messages(visitor, sender)) return false;
    if (!visitor.same(base - sender.oldest_sequence) || !visitor.same(sender.in_flight_bytes)) return false;
    if (!visitor.same(sender.rtt_ps) || !visitor.same(sender.gap_ps)) return false;
    if (!visitor.stamp(sender.last_send_ps, sender.gap_ps)) return false;
    if (!visitor.instant(sender.pace_event_ps, false) || !visitor.standing(sender.timer_event_ps)) return false;
    if (!visitor.same(base - sender.highest_sequence) || !visitor.same(sender.last_wire_bytes)) return false;
    if (!visitor.same(static_cast<std::int64_t>(sender.state)) || !visitor.same(sender.num_timeouts)) return false;
    if (!visitor.same(std::bit_cast<std::int64_t>(sender.rate_bps))) return false;
    if (!visitor.row(sender.sending) || !visitor.row(sender.oldest) || !visitor.row(sender.newest)) return false;
    if (!visitor.count(sender.num_unacknowledged) || !visitor.instant(sender.timeout_ps, true)) return false;
    if (settings.cnp_delay_ps > 0 && !visitor.same(static_cast<std::int64_t>(pending_notifications[qp].size())))
        return false;
    if (!Visitor::MOVES_MESSAGES && sender.oldest != NONE) {
        Transfer& transfer = transfers[sender.oldest];
        if (!visitor.same(transfer.num_retransmitted) || !visitor.count(transfer.num_cnps)) return false;
    }
    return visitor.count(sender.oldest_sequence) && visitor.count(sender.highest_sequence) &&
           visitor.count(sender.next_sequence);
}

// The messages that are ready and not acknowledged, and where they lie in the sequence.
template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_messages(Visitor& visitor, Sender& sender) {
    const std::int64_t base = sender.next_sequence;
    if (!visitor.bound(sender.message_begin, base) || !visitor.bound(sender.message_end, base)) return false;
    if (!visitor.bound(sender.oldest_end, base) || !visitor.bound(sender.end_sequence, base)) return false;
    if (!visitor.same(sender.last_payload_bytes)) return false;
    for (std::uint32_t row = sender.oldest; row != NONE; row = transfers[row].next) {
        const Transfer& transfer = transfers[row];
        std::uint32_t visited = row;
        if (!visitor.row(visited) || !visitor.same(transfer.bytes)) return false;
        if (!visitor.same(base - transfer.end_sequence)) return false;
        if (!visitor.same(transfer.num_retransmitted) || !visitor.same(transfer.num_cnps)) return false;
    }
    return visitor.same(END_OF_LIST);
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_receiver(Visitor& visitor, std::uint32_t qp) {
    Receiver& receiver = receivers[qp];
    if (!visitor.same(std::int64_t{senders[qp].highest_sequence} - receiver.expected_sequence)) return false;
    if (!visitor.row(receiver.transfer)) return false;
    if (!visitor.bound(receiver.message_end, senders[qp].next_sequence)) return false;
    if (!visitor.same(receiver.num_unanswered) || !visitor.same(receiver.has_sent_nak)) return false;
    if (!visitor.same(receiver.has_mark && marks_matter())) return false;
    return visitor.instant(receiver.cnp_allowed_ps, true) && visitor.count(receiver.expected_sequence);
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_port(Visitor& visitor, std::uint32_t index) {
    Port& port = ports[index];
    PortStats& stats = port_stats[index];
    if (!visitor.instant(port.busy_until_ps, false)) return false;
    if (!visitor.same(port.queued_bytes) || !visitor.same(port.ingress_bytes)) return false;
    if (!visitor.same(port.has_wake | port.is_paused << 1 | port.pauses_sender << 2)) return false;
    for (const std::uint32_t head : port.head) {
        if (!walk_queue(visitor, head)) return false;
    }
    if (!walk_ring(visitor, stats.ring) || !visitor.same(stats.dropped_packets)) return false;
    // No packet was marked or lost by chance: the stream of draws stands where it stood.
    const bool may_draw = marks_matter() || (is_full && stats.loss_fraction > 0);
    if (may_draw && !visitor.same(std::bit_cast<std::int64_t>(stats.random))) return false;
    if (marks_matter() && !visitor.count(stats.marked_packets)) return false;
    if (port.is_paused && !visitor.anchor(stats.paused_since_ps)) return false;
    for (const TrafficClass cls : {CONTROL, DATA}) {
        std::uint64_t packets = tx_packets(index, cls);
        if (!visitor.count(packets)) return false;
        set_tx_packets(index, cls, packets);
    }
    return visitor.count(stats.paused_ps) && visitor.count(stats.num_pauses) && visitor.count(port.tx_bytes);
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_wire(Visitor& visitor, std::uint32_t port) {
    for (Wire::Flight& flight : skip.wires[port]) {
        if (!visitor.instant(flight.arrives_ps, false) || !walk_packet(visitor, flight.packet)) return false;
    }
    if (!visitor.same(END_OF_LIST)) return false;
    for (PauseFrame& frame : skip.pause_frames[port]) {
        if (!visitor.instant(frame.effective_ps, false) || !visitor.same(frame.payload)) return false;
    }
    return visitor.same(END_OF_LIST);
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_queue(Visitor& visitor, std::uint32_t head) {
    for (std::uint32_t packet = head; packet != NONE; packet = packets[packet].next) {
        if (!walk_packet(visitor, packet)) return false;
    }
    return visitor.same(END_OF_LIST);
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_ring(Visitor& visitor, const Ring& ring) {
    for (std::uint32_t qp = ring.head; qp != NONE; qp = senders[qp].ring_next) {
        if (!visitor.same(qp)) return false;
    }
    return visitor.same(END_OF_LIST);
}

template <bool is_full>
template <typename Visitor>
inline bool Engine<is_full>::walk_packet(Visitor& visitor, std::uint32_t packet_id) {
    Packet& packet = packets[packet_id];
    const bool is_cnp = packet.type == PacketType::Cnp;  // has no sequence, and its time is not looked at
    const std::int64_t from_oldest = std::int64_t{packet.sequence} - senders[packet.queue_pair].next_sequence;
    if (!visitor.same(packet.queue_pair) || !visitor.same(packet.path_position)) return false;
    if (!visitor.same(packet.wire_bytes | static_cast<std::int64_t>(packet.type) << 16 |
                      static_cast<std::int64_t>(packet.is_marked && marks_matter()) << 24))
        return false;
    if (!visitor.same(packet.ingress_port) || !visitor.same(is_cnp ? 0 : from_oldest)) return false;
    if (is_full && !walk_packet_features(visitor, packet_id, packet)) return false;
    return visitor.stamp(packet.sent_ps, is_cnp ? 0 : ALWAYS_VALID) && visitor.count(packet.sequence);
}

}  // namespace netsim
