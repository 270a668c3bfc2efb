// Trimming: a switch that would queue too much cuts a data packet's payload off, and the rest tells what was lost.
//
// A data packet that finds more than a threshold in its queue goes on without its payload: before all data and without
// a place in the buffer, or in the priority that trimmed packets have, with its buffer and its turns. Lossless
// priorities pause, and are not trimmed. The receiver answers at once, and the sender, who repeats selectively, sends
// again what was trimmed; it hears of it about a round trip after the sending, where a lost packet would take the
// timeout if none behind it arrived.
//
// Source: Ultra Ethernet Specification 1.0, sections 4.1 and 3.6.4.4, and 3.6.17 for thresholds.
// Left out: trimmed acknowledgements; a NIC's buffer and time to answer, which trimmed packets pass by.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
bool Engine<is_full>::is_to_be_trimmed(std::uint32_t port, std::int32_t queued_bytes, const Packet& packet) const {
    if (packet.type != PacketType::Data || packet.wire_bytes <= settings.trimmed_bytes) return false;
    if (has_priorities() && priorities.rules[packet.priority].is_lossless) return false;
    const bool is_last_hop = ports[port_stats[port].peer].is_host;
    const std::int64_t limit_bytes = is_last_hop ? settings.last_hop_trim_above_bytes : settings.trim_above_bytes;
    return std::int64_t{queued_bytes} + packet.wire_bytes > limit_bytes;
}

template <bool is_full>
void Engine<is_full>::trim(std::uint32_t port, std::uint32_t packet_id) {
    if constexpr (SKIPS) disturb_port(port);
    packets[packet_id].type = PacketType::Trimmed;
    packets[packet_id].wire_bytes = static_cast<std::uint16_t>(settings.trimmed_bytes);
    if (has_priorities()) packets[packet_id].priority = static_cast<std::uint8_t>(settings.trimmed_priority);
    packets[packet_id].is_last_hop = ports[port_stats[port].peer].is_host;
    num_trimmed++;
}

// The receiver has seen a trimmed packet. It is sent again, and the law hears of it, or else of a gap.
template <bool is_full>
void Engine<is_full>::on_trim_nack(std::uint32_t packet_id) {
    const Packet packet = packets[packet_id];
    if (has_entropy()) learn_from(packet_id);
    packets.release(packet_id);
    const std::uint32_t qp = packet.queue_pair;
    if constexpr (SKIPS) disturb(qp);
    Sender& sender = senders[qp];
    if (sender.state == SenderState::Failed || sender.num_unacknowledged == 0) return;
    if (!forget_transmission(qp, sender, packet)) return;
    const std::uint32_t payload_bytes = payload_bytes_of(sender, packet.sequence);
    give_up(qp, sender, packet.sequence);
    restart_timeout(qp, sender);
    if (law.on_trim) {
        const Picoseconds rtt_ps = now_ps - packet.sent_ps;
        obey(ON_TRIM, qp, law.on_trim(law.params, &flow(qp), now_ps, payload_bytes, rtt_ps, packet.is_last_hop));
    } else {
        notify_law(ON_NACK, law.on_nack, qp);
    }
    resume(qp);
}

// Whether this sending of a packet still counts as on its way; it does no more.
template <bool is_full>
bool Engine<is_full>::forget_transmission(std::uint32_t qp, const Sender& sender, const Packet& packet) {
    RingBuffer<Transmission>& transmissions = selective_senders[qp].transmissions;
    std::uint32_t place = 0;
    for (std::uint32_t end = transmissions.size(); place < end;) {  // the first that left no earlier
        const std::uint32_t middle = place + (end - place) / 2;
        if (transmissions[middle].sent_ps < packet.sent_ps) {
            place = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; place < transmissions.size() && transmissions[place].sent_ps == packet.sent_ps; place++) {
        if (transmissions[place].sequence != packet.sequence || !is_flying(qp, sender, packet.sequence)) continue;
        transmissions[place].sequence = NONE;
        return true;
    }
    return false;
}

}  // namespace netsim
