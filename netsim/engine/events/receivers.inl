// Receivers: packets in order are acknowledged, a gap is answered once, marks become congestion notifications.
//
// Source: InfiniBand Architecture Specification 1.4, section 9.7; DCQCN (SIGCOMM'15), section 3.2 for the notification
// point: at most one CNP per queue pair and interval.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
inline void Engine<is_full>::deliver(std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    const PacketType type = packet.type;
    const std::uint32_t qp = packet.queue_pair, sequence = packet.sequence;
    if constexpr (is_full) {
        if (has_credits() && is_forward(type)) note_credit_target(packet_id);
    }
    if (type == PacketType::Data) return receive_data(packet_id);
    control_packets.delivered++;
    if (type == PacketType::Ack) return on_acknowledgement(packet_id);
    if constexpr (is_full) {
        if (type == PacketType::Trimmed) return reply(packet_id, PacketType::TrimNack);
        if (type == PacketType::TrimNack) return on_trim_nack(packet_id);
        if (type == PacketType::Credit) return on_credit(packet_id);
        if (type == PacketType::CreditRequest) return packets.release(packet_id);
    }
    packets.release(packet_id);
    if (type == PacketType::Nak) return on_nak(qp, sequence);
    if constexpr (is_full) {
        if (type == PacketType::ReceiverNotReady) return on_refusal(qp, sequence);
    }
    take_notification(qp);
}

template <bool is_full>
inline void Engine<is_full>::receive_data(std::uint32_t packet_id) {
    if constexpr (is_full) {
        if (takes_time()) return receive_slowly(packet_id);
    }
    const std::uint32_t qp = packets[packet_id].queue_pair;
    if (packets[packet_id].is_marked) [[unlikely]]
        note_mark(qp, receivers[qp]);
    answer(packet_id);
}

// Acknowledge a data packet, refuse it, or keep silent; its place in the pool becomes the answer's.
template <bool is_full>
inline void Engine<is_full>::answer(std::uint32_t packet_id) {
    data_packets.delivered++;
    if constexpr (is_full) {
        if (has_receive_queues() && !is_receiver_ready(packets[packet_id])) return refuse(packet_id);
        if (is_selective()) return answer_selectively(packet_id);
    }
    Packet& packet = packets[packet_id];
    Receiver& receiver = receivers[packet.queue_pair];
    if (packet.sequence == receiver.expected_sequence) [[likely]] {
        receiver.expected_sequence++;
        receiver.num_unanswered++;
        receiver.has_sent_nak = false;
        const bool is_message_end = receiver.expected_sequence == receiver.message_end;
        if (is_message_end) deliver_transfer(receiver);
        if (!is_message_end && receiver.num_unanswered < settings.ack_every_packets) return packets.release(packet_id);
        return reply(packet_id, PacketType::Ack);
    }
    if (packet.sequence < receiver.expected_sequence) {
        packet.sequence = receiver.expected_sequence - 1;  // a duplicate: repeat the last acknowledgement
        return reply(packet_id, PacketType::Ack);
    }
    num_out_of_order++;
    if (receiver.has_sent_nak) return packets.release(packet_id);
    receiver.has_sent_nak = true;
    packet.sequence = receiver.expected_sequence;
    reply(packet_id, PacketType::Nak);
}

template <bool is_full>
void Engine<is_full>::deliver_transfer(Receiver& receiver) {
    const std::uint32_t row = receiver.transfer;
    if constexpr (is_full) {
        if (has_receive_queues()) receive_queues[transfers[row].queue_pair].end_message(now_ps);
    }
    if (transfers[row].next != NONE) {
        receiver.transfer = transfers[row].next;
        receiver.message_end = transfers[receiver.transfer].end_sequence;
    }
    finish(row);
}

template <bool is_full>
void Engine<is_full>::note_mark(std::uint32_t qp, Receiver& receiver) {
    receiver.has_mark = true;
    if (!law.on_cnp || now_ps < receiver.cnp_allowed_ps) return;
    receiver.cnp_allowed_ps = now_ps + settings.cnp_interval_ps;
    const std::uint32_t packet_id = packets.allocate();
    packets[packet_id].queue_pair = qp;
    packets[packet_id].sequence = 0;
    packets[packet_id].sent_ps = now_ps;
    if (has_entropy()) entropy_place(packet_id) = 0;
    reply(packet_id, PacketType::Cnp);
}

template <bool is_full>
inline void Engine<is_full>::make_room_for_answers() {
    const std::size_t num_packets = packets.size();
    if (is_selective() && num_packets > expected_sequences.size()) make_room(expected_sequences);
    if (coalesces() && num_packets > arrival_reports.size()) make_room(arrival_reports);
    if (takes_time() && num_packets > times_in_host_ps.size()) make_room(times_in_host_ps);
}

template <bool is_full>
template <typename T>
void Engine<is_full>::make_room(std::vector<T>& by_packet) {
    by_packet.resize(2 * packets.size());
}

// Send a packet back along its queue pair's path of acknowledgements.
template <bool is_full>
inline void Engine<is_full>::reply(std::uint32_t packet_id, PacketType type) {
    Packet& packet = packets[packet_id];
    Receiver& receiver = receivers[packet.queue_pair];
    packet.type = type;
    packet.wire_bytes = static_cast<std::uint16_t>(settings.ack_bytes);
    packet.ingress_port = NONE;
    packet.path_position = path_begin(packet.queue_pair, 1);
    packet.is_marked = is_full && type == PacketType::TrimNack && packet.is_marked;
    packet.priority = priority_of(packet.queue_pair, type);
    if (type == PacketType::Ack) {
        packet.is_marked = receiver.has_mark;
        receiver.has_mark = false;
        receiver.num_unanswered = 0;
    }
    if constexpr (is_full) {
        make_room_for_answers();
        if (is_selective()) expected_sequences[packet_id] = receiver.expected_sequence;
        if (coalesces() && type == PacketType::Ack) report_arrivals(packet_id);
        if (takes_time() && type == PacketType::Ack) {
            times_in_host_ps[packet_id] = now_ps - times_in_host_ps[packet_id];
        }
    }
    control_packets.sent++;
    enqueue(path[packet.path_position], packet_id);
}

}  // namespace netsim
