// Selective repeat: only what is lost is sent again, and packets may overtake one another.
//
// An acknowledgement names the packet that caused it and the first that is still missing. A packet is taken for lost
// when one sent later has arrived and more time has passed since its own sending than that one's round trip and the
// reorder window. So repetitions are watched as first sendings are, and only what is sent last needs the timeout.
//
// Coalesced acknowledgements stand for several packets in any order, and say by bits which ones.
//
// Source: IRN (SIGCOMM'18), 3.1 for acknowledgements, 3.2 for a bound on packets in flight; RFC 8985 (RACK), 6.2 for
// losses by time; Ultra Ethernet Specification 1.0, 3.5.11.14 and 3.5.12, for bits and for when to acknowledge.
// Left out: a reorder window that adapts itself; RACK's probe of the tail.

#include <algorithm>
#include <bit>

#include "../engine.hpp"

namespace netsim {

inline constexpr std::int64_t LEAST_COUNTED_BYTES = 1024;  // of a packet's payload, by a receiver that coalesces

template <bool is_full>
std::uint32_t Engine<is_full>::payload_bytes_of(const Sender& sender, std::uint32_t sequence) const {
    if (sequence + 1 < sender.oldest_end) return static_cast<std::uint32_t>(settings.mtu_bytes);
    const Transfer& transfer = transfers[transfer_of_sequence(sender, sequence)];
    return sequence + 1 == transfer.end_sequence ? transfer.last_payload_bytes(settings.mtu_bytes)
                                                 : static_cast<std::uint32_t>(settings.mtu_bytes);
}

template <bool is_full>
bool Engine<is_full>::has_selective_work(std::uint32_t qp, const Sender& sender) const {
    if (!selective_senders[qp].lost.empty()) return true;
    if (sender.next_sequence == sender.end_sequence) return false;
    return sender.next_sequence - sender.oldest_sequence < settings.window_packets;
}

template <bool is_full>
bool Engine<is_full>::may_send_selectively(std::uint32_t qp, const Sender& sender) const {
    if (!has_selective_work(qp, sender)) return false;
    if (has_credits() && credited_senders[qp].credit_bytes <= 0) return false;
    if (is_idle(qp, sender)) return true;
    const std::uint32_t payload_bytes = !selective_senders[qp].lost.empty()
                                            ? payload_bytes_of(sender, first_lost(qp, sender))
                                            : next_payload_bytes(sender);
    const auto wanted_bytes = static_cast<double>(sender.in_flight_bytes + payload_bytes);
    const bool is_open = wanted_bytes <= flow(qp).cwnd_bytes;
    if constexpr (SKIPS) {
        if (sender.is_logged) [[unlikely]]
            log_window(qp, wanted_bytes, is_open);
    }
    return is_open;
}

template <bool is_full>
std::uint32_t Engine<is_full>::first_lost(std::uint32_t qp, const Sender& sender) const {
    return selective_senders[qp].lost.first_from(sender.oldest_sequence);
}

template <bool is_full>
void Engine<is_full>::note_transmission(std::uint32_t qp, const Sender& sender, std::uint32_t sequence) {
    SelectiveSender& selective = selective_senders[qp];
    selective.at_rest.make_room(sender.oldest_sequence, sequence + 1);
    selective.lost.make_room(sender.oldest_sequence, sequence + 1);
    selective.at_rest.erase(sequence);
    if (!selective.lost.empty()) selective.lost.erase(sequence);
    selective.transmissions.push_back({sequence, now_ps});
    selective.num_flying++;
}

template <bool is_full>
void Engine<is_full>::repeat_lost(std::uint32_t qp, Sender& sender, Port& out) {
    const std::uint32_t sequence = first_lost(qp, sender);
    const std::uint32_t row = transfer_of_sequence(sender, sequence);
    const std::uint32_t payload_bytes = payload_bytes_of(sender, sequence);
    transfers[row].num_retransmitted++;
    const std::uint32_t packet = emit_data(qp, sender, out, sequence, payload_bytes);
    finish_sending(qp, sender, out, packet, payload_bytes);
}

// A packet has arrived, all below the one expected, and what is reported besides.
template <bool is_full>
void Engine<is_full>::acknowledge_selectively(std::uint32_t qp, Sender& sender, std::uint32_t acknowledgement) {
    const Packet& packet = packets[acknowledgement];
    SelectiveSender& selective = selective_senders[qp];
    if (packet.sent_ps > selective.newest_sent_ps) {
        selective.newest_sent_ps = packet.sent_ps;
        selective.newest_rtt_ps = now_ps - packet.sent_ps;
    }
    bool is_progress = take_arrivals_below(qp, sender, expected_sequences[acknowledgement]);
    if (packet.sequence >= sender.oldest_sequence) is_progress |= take_arrival(qp, sender, packet.sequence);
    if (coalesces()) is_progress |= take_reported(qp, sender, arrival_reports[acknowledgement]);
    if (is_progress) restart_timeout(qp, sender);
}

// Whether any packet that is reported was not known to have arrived.
template <bool is_full>
bool Engine<is_full>::take_reported(std::uint32_t qp, Sender& sender, const ArrivalReport& report) {
    bool is_progress = false;
    for (std::uint64_t left = report.arrived; left != 0; left &= left - 1) {
        const std::uint32_t sequence = report.first + static_cast<std::uint32_t>(std::countr_zero(left));
        if (sequence >= sender.oldest_sequence) is_progress |= take_arrival(qp, sender, sequence);
    }
    return is_progress;
}

// Whether any packet below `up_to_sequence` was not known to have arrived.
template <bool is_full>
bool Engine<is_full>::take_arrivals_below(std::uint32_t qp, Sender& sender, std::uint32_t up_to_sequence) {
    if (up_to_sequence <= sender.oldest_sequence) return false;
    for (std::uint32_t sequence = sender.oldest_sequence; sequence < up_to_sequence; sequence++) {
        take_arrival(qp, sender, sequence);
        selective_senders[qp].at_rest.erase(sequence);
    }
    advance_oldest(sender, up_to_sequence);
    return true;  // the oldest packet has never been acknowledged
}

// Whether a packet was not known to have arrived.
template <bool is_full>
bool Engine<is_full>::take_arrival(std::uint32_t qp, Sender& sender, std::uint32_t sequence) {
    SelectiveSender& selective = selective_senders[qp];
    const bool is_lost = !selective.lost.empty() && selective.lost.contains(sequence);
    if (!is_lost && selective.at_rest.contains(sequence)) return false;
    const std::uint32_t payload_bytes = payload_bytes_of(sender, sequence);
    if (is_lost) {
        selective.lost.erase(sequence);
        if (has_credits()) credited_senders[qp].backlog_bytes -= wire_bytes_of(payload_bytes);
    } else {
        sender.in_flight_bytes -= payload_bytes;
        selective.num_flying--;
        selective.at_rest.insert(sequence);
    }
    acknowledged_bytes += payload_bytes;
    return true;
}

// Take for lost what has been overtaken for too long; whether anything was. What will be sets the timer.
template <bool is_full>
bool Engine<is_full>::detect_losses(std::uint32_t qp, Sender& sender) {
    SelectiveSender& selective = selective_senders[qp];
    RingBuffer<Transmission>& transmissions = selective.transmissions;
    selective.deadline_ps = NEVER;
    bool has_lost = false;
    for (; !transmissions.empty(); transmissions.pop_front()) {
        const Transmission first = transmissions.front();
        if (!is_flying(qp, sender, first.sequence)) continue;
        if (first.sent_ps >= selective.newest_sent_ps) break;
        const Picoseconds due_ps = first.sent_ps + selective.newest_rtt_ps + selective.reorder_window_ps;
        if (due_ps > now_ps) {
            selective.deadline_ps = due_ps;
            arm_timer(qp, sender, due_ps);
            break;
        }
        give_up(qp, sender, first.sequence);
        has_lost = true;
    }
    return has_lost;
}

template <bool is_full>
bool Engine<is_full>::is_flying(std::uint32_t qp, const Sender& sender, std::uint32_t sequence) const {
    if (sequence == NONE) return false;  // it was trimmed
    return sequence >= sender.oldest_sequence && !selective_senders[qp].at_rest.contains(sequence);
}

template <bool is_full>
void Engine<is_full>::give_up(std::uint32_t qp, Sender& sender, std::uint32_t sequence) {
    SelectiveSender& selective = selective_senders[qp];
    selective.at_rest.insert(sequence);
    selective.lost.insert(sequence);
    selective.num_flying--;
    const std::uint32_t payload_bytes = payload_bytes_of(sender, sequence);
    sender.in_flight_bytes -= payload_bytes;
    if (has_credits()) credited_senders[qp].backlog_bytes += wire_bytes_of(payload_bytes);
}

template <bool is_full>
void Engine<is_full>::give_up_all(std::uint32_t qp, Sender& sender) {
    RingBuffer<Transmission>& transmissions = selective_senders[qp].transmissions;
    for (; !transmissions.empty(); transmissions.pop_front()) {
        const std::uint32_t sequence = transmissions.front().sequence;
        if (is_flying(qp, sender, sequence)) give_up(qp, sender, sequence);
    }
}

// A packet whose reorder window may have passed.
template <bool is_full>
void Engine<is_full>::on_reorder_deadline(std::uint32_t qp, Sender& sender) {
    if (selective_senders[qp].deadline_ps <= now_ps && detect_losses(qp, sender)) {
        notify_law(ON_NACK, law.on_nack, qp);
    }
}

// The packet expected has arrived; whether it ended a message.
template <bool is_full>
bool Engine<is_full>::expect_next(Receiver& receiver) {
    if (++receiver.expected_sequence != receiver.message_end) return false;
    deliver_transfer(receiver);
    return true;
}

// At once, unless packets come in order or acknowledgements are coalesced.
template <bool is_full>
void Engine<is_full>::answer_selectively(std::uint32_t packet_id) {
    Packet& packet = packets[packet_id];
    Receiver& receiver = receivers[packet.queue_pair];
    SequenceSet& arrived = selective_receivers[packet.queue_pair].arrived;
    const bool is_orderly = packet.sequence == receiver.expected_sequence && arrived.empty();
    bool is_message_end = false, is_new = false;
    if (packet.sequence == receiver.expected_sequence) {
        is_new = true;
        is_message_end = expect_next(receiver);
        while (!arrived.empty() && arrived.contains(receiver.expected_sequence)) {
            arrived.erase(receiver.expected_sequence);
            if (coalesces()) selective_receivers[packet.queue_pair].unreported.erase(receiver.expected_sequence);
            is_message_end |= expect_next(receiver);
        }
    } else if (packet.sequence > receiver.expected_sequence) {
        num_out_of_order++;
        if constexpr (SKIPS) disturb(packet.queue_pair);
        arrived.make_room(receiver.expected_sequence, packet.sequence + 1);
        is_new = !arrived.contains(packet.sequence);
        arrived.insert(packet.sequence);
    }
    receiver.num_unanswered++;
    const bool may_wait = coalesces() ? may_answer_later(packet, is_new)
                                      : is_orderly && receiver.num_unanswered < settings.ack_every_packets;
    if (may_wait && !is_message_end) return packets.release(packet_id);
    reply(packet_id, PacketType::Ack);
}

// A mark, a packet whose sender waits, and one that came before are acknowledged at once.
template <bool is_full>
bool Engine<is_full>::may_answer_later(const Packet& packet, bool is_new) {
    const Receiver& receiver = receivers[packet.queue_pair];
    SelectiveReceiver& selective = selective_receivers[packet.queue_pair];
    if (packet.sequence >= receiver.expected_sequence) {
        selective.unreported.make_room(receiver.expected_sequence, packet.sequence + 1);
        selective.unreported.insert(packet.sequence);
    }
    selective.unanswered_bytes += std::max(payload_bytes_of(packet), LEAST_COUNTED_BYTES);
    if (!is_new || receiver.has_mark || packet.wants_ack) return false;
    return selective.unanswered_bytes < settings.acknowledge_after_bytes;
}

// Say what has arrived of 64 packets, from the first on that no acknowledgement has named.
template <bool is_full>
void Engine<is_full>::report_arrivals(std::uint32_t acknowledgement) {
    const std::uint32_t qp = packets[acknowledgement].queue_pair, expected = receivers[qp].expected_sequence;
    SelectiveReceiver& selective = selective_receivers[qp];
    ArrivalReport& report = arrival_reports[acknowledgement];
    selective.unanswered_bytes = 0;
    report = {};
    if (selective.unreported.empty()) return;
    report.first = selective.unreported.first_from(expected);
    const std::uint32_t end = report.first + 64;
    selective.arrived.make_room(expected, end);
    selective.unreported.make_room(expected, end);
    report.arrived = selective.arrived.bits_from(report.first);
    for (std::uint64_t left = selective.unreported.bits_from(report.first); left != 0; left &= left - 1) {
        selective.unreported.erase(report.first + static_cast<std::uint32_t>(std::countr_zero(left)));
    }
}

}  // namespace netsim
