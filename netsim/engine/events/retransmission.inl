// Retransmission: what a sender makes of acknowledgements, of gaps, and of silence.
//
// Go-back-N: a negative acknowledgement or a timeout sends everything again from the oldest packet not yet
// acknowledged; selective_repeat.inl has the alternative. Each timeout without progress has its own wait; the last one
// ends the queue pair.
// Source: InfiniBand Architecture Specification 1.4, section 9.7 (reliable service), as RoCEv2 adapters implement it.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
inline void Engine<is_full>::on_acknowledgement(std::uint32_t packet_id) {
    if constexpr (is_full) {
        if (uses(USES_TELEMETRY)) trails.prefetch(packet_id);
    }
    const Packet packet = packets[packet_id];
    const std::uint32_t qp = packet.queue_pair;
    Sender& sender = senders[qp];
    if (sender.state == SenderState::Failed) return packets.release(packet_id);
    const bool is_progress = packet.sequence >= sender.oldest_sequence;
    if (!is_progress && sender.num_unacknowledged == 0) return packets.release(packet_id);  // all timers are at rest
    if (has_entropy()) learn_from(packet_id);
    const std::uint64_t before_bytes = acknowledged_bytes;
    sender.rtt_ps = now_ps - packet.sent_ps;
    Picoseconds endpoint_ps = 0;
    if constexpr (is_full) {
        endpoint_ps = endpoint_delay_ps(packet_id);
        if (takes_time()) note_round_trip(sender.oldest, sender.rtt_ps, endpoint_ps);
        if (is_selective()) acknowledge_selectively(qp, sender, packet_id);
    }
    if (is_progress && !is_selective()) acknowledge(qp, sender, packet.sequence + 1);
    if (law.on_ack) {
        static constexpr TelemetryRecord NO_TELEMETRY[MAX_TELEMETRY_HOPS] = {};
        const TelemetryRecord* telemetry = NO_TELEMETRY;
        std::int32_t num_hops = flow(qp).num_hops;
        if constexpr (is_full) {
            if (uses(USES_TELEMETRY)) {
                telemetry = trails.hops(packet_id);
                num_hops = trails.num_hops(packet_id);
            }
        }
        if constexpr (SKIPS) {
            const auto acked_bytes = static_cast<std::int64_t>(acknowledged_bytes - before_bytes);
            if (sender.is_logged) [[unlikely]]
                log_call(ON_ACK, qp, acked_bytes, sender.rtt_ps, endpoint_ps, num_hops, packet.is_marked);
        }
        obey(ON_ACK, qp,
             law.on_ack(law.params, &flow(qp), law_now_ps(qp),
                        static_cast<std::int64_t>(acknowledged_bytes - before_bytes), sender.rtt_ps, endpoint_ps,
                        num_hops, packet.is_marked, telemetry));
    }
    packets.release(packet_id);
    if constexpr (is_full) {
        if (is_selective() && detect_losses(qp, sender)) notify_law(ON_NACK, law.on_nack, qp);
    }
    resume(qp);
}

// Packets below `up_to_sequence` have arrived.
template <bool is_full>
inline void Engine<is_full>::acknowledge(std::uint32_t qp, Sender& sender, std::uint32_t up_to_sequence) {
    const std::int64_t acked_bytes = advance_oldest(sender, up_to_sequence);
    acknowledged_bytes += static_cast<std::uint64_t>(acked_bytes);
    if (sender.next_sequence < sender.oldest_sequence) [[unlikely]] {
        rewind(sender);  // forward, past packets that need not be sent again after all
    } else {
        sender.in_flight_bytes -= acked_bytes;
    }
    restart_timeout(qp, sender);
}

template <bool is_full>
void Engine<is_full>::acknowledge_all_below(std::uint32_t qp, Sender& sender, std::uint32_t sequence) {
    if (!is_selective()) return acknowledge(qp, sender, sequence);
    take_arrivals_below(qp, sender, sequence);
    restart_timeout(qp, sender);
}

// Returns the payload of the packets passed.
template <bool is_full>
inline std::int64_t Engine<is_full>::advance_oldest(Sender& sender, std::uint32_t up_to_sequence) {
    std::int64_t passed_bytes = std::int64_t{up_to_sequence - sender.oldest_sequence} * settings.mtu_bytes;
    sender.oldest_sequence = up_to_sequence;
    while (sender.oldest_sequence >= sender.oldest_end) {
        Transfer& transfer = transfers[sender.oldest];
        passed_bytes -= settings.mtu_bytes - transfer.last_payload_bytes(settings.mtu_bytes);
        transfer.acknowledged_ps = now_ps;
        sender.num_unacknowledged--;
        num_unfinished--;
        num_open--;
        if constexpr (SKIPS) leave_component(transfer.queue_pair, sender.oldest_sequence == sender.end_sequence);
        if (transfer.next == NONE) break;
        sender.oldest = transfer.next;
        sender.oldest_end = transfers[transfer.next].end_sequence;
    }
    return passed_bytes;
}

// Nothing is on its way.
template <bool is_full>
inline bool Engine<is_full>::is_idle(std::uint32_t qp, const Sender& sender) const {
    if (is_selective()) return selective_senders[qp].num_flying == 0;
    return sender.next_sequence == sender.oldest_sequence;
}

// There was progress: the list of waits begins anew.
template <bool is_full>
inline void Engine<is_full>::restart_timeout(std::uint32_t qp, Sender& sender) {
    sender.num_timeouts = 0;
    if constexpr (is_full) {
        if (has_receive_queues()) refused_senders[qp].num_refusals = 0;
    }
    sender.timeout_ps = is_idle(qp, sender) && !lacks_credit(qp, sender) ? NEVER : next_timeout_ps(sender);
    arm_timer(qp, sender, sender.timeout_ps);
}

// Go back to the oldest packet not yet acknowledged.
template <bool is_full>
void Engine<is_full>::rewind(Sender& sender) {
    sender.has_rewound = true;
    sender.next_sequence = sender.oldest_sequence;
    sender.in_flight_bytes = 0;
    enter_transfer(sender, transfer_of_sequence(sender, sender.next_sequence));
}

// Send again whatever is not known to have arrived.
template <bool is_full>
void Engine<is_full>::send_all_again(std::uint32_t qp, Sender& sender) {
    if constexpr (is_full) {
        if (is_selective()) return give_up_all(qp, sender);
    }
    rewind(sender);
}

template <bool is_full>
void Engine<is_full>::on_nak(std::uint32_t qp, std::uint32_t expected_sequence) {
    Sender& sender = senders[qp];
    if (sender.state == SenderState::Failed || sender.num_unacknowledged == 0) return;
    if (expected_sequence > sender.oldest_sequence) acknowledge(qp, sender, expected_sequence);
    if (expected_sequence == sender.oldest_sequence) rewind(sender);
    notify_law(ON_NACK, law.on_nack, qp);
    resume(qp);
}

template <bool is_full>
void Engine<is_full>::on_retransmission_timeout(std::uint32_t qp, Sender& sender) {
    sender.timeout_ps = NEVER;
    if (++sender.num_timeouts == retransmission_waits.size()) return fail(sender);
    if (has_entropy()) on_path_failure(qp);
    send_all_again(qp, sender);
    if (has_credits()) forget_credit_target(qp);
    notify_law(ON_TIMEOUT, law.on_timeout, qp);
}

template <bool is_full>
void Engine<is_full>::fail(Sender& sender) {
    for (std::uint32_t row = sender.oldest; row != NONE; row = transfers[row].next) num_open--;
    sender.state = SenderState::Failed;
    failed_pairs.push_back({now_ps, static_cast<std::uint32_t>(&sender - senders.data())});
    if constexpr (PARTS) part.failure_order.push_back(part.last.identity);
}

}  // namespace netsim
