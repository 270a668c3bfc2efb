// Capture: a note of each packet of chosen queue pairs that passes a chosen place.
//
// At a host, packets are noted as they begin to leave its NIC and when they have arrived; at a port, as they begin to
// leave through it and when they have arrived over the other direction of its link. Nothing else comes of it.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::note(std::uint32_t packet_id, bool is_there) {
    const Packet& packet = packets[packet_id];
    if (!is_there || !captured_flows[packet.queue_pair]) return;
    const bool was_trimmed = packet.type == PacketType::Trimmed || packet.type == PacketType::TrimNack;
    CapturedPacket row{.time_ps = now_ps,
                       .queue_pair = packet.queue_pair,
                       .sequence = packet.sequence,
                       .order = 0,
                       .type = packet.type,
                       .is_marked = packet.is_marked,
                       .is_last_hop = was_trimmed && packet.is_last_hop,
                       .entropy = entropy_of(packet_id),
                       .expected_sequence = 0,
                       .report = {},
                       .credit_bytes = 0};
    if (is_selective() && !is_forward(packet.type)) row.expected_sequence = expected_sequences[packet_id];
    if (coalesces() && packet.type == PacketType::Ack) row.report = arrival_reports[packet_id];
    if (has_credits() && says_credit(packet.type)) row.credit_bytes = credit_counts[packet_id];
    if constexpr (SKIPS) log_capture(row);
    num_captured++;
    if (captured.size() == settings.max_captured) return;
    captured.push_back(row);
    if constexpr (PARTS) part.capture_order.push_back(part.last.identity);
}

// `packet.ingress_port` is still that of its arrival.
template <bool is_full>
void Engine<is_full>::note_leaving(std::uint32_t port, std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    if (settings.capture_at == CapturePoint::Port) return note(packet_id, port == settings.capture_port);
    const bool is_forth = is_forward(packet.type);
    note(packet_id, packet.ingress_port == NONE && is_forth == (settings.capture_at == CapturePoint::Sender));
}

template <bool is_full>
void Engine<is_full>::note_arrival(std::uint32_t port, std::uint32_t packet_id, bool is_at_its_end) {
    if (settings.capture_at == CapturePoint::Port)
        return note(packet_id, port_stats[port].peer == settings.capture_port);
    const bool is_forth = is_forward(packets[packet_id].type);
    note(packet_id, is_at_its_end && is_forth == (settings.capture_at == CapturePoint::Receiver));
}

}  // namespace netsim
