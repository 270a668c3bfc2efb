// Capture: a note of each packet of chosen queue pairs that passes a chosen place.
//
// At a host, packets are noted as they begin to leave its NIC and when they have arrived; at a port, as they begin to
// leave through it and when they have arrived over the other direction of its link. Nothing else comes of it.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::note(const Packet& packet, bool is_there) {
    if (!is_there || !captured_flows[packet.queue_pair]) return;
    CapturedPacket row{now_ps, packet.queue_pair, packet.sequence, 0, packet.type, packet.is_marked};
    if constexpr (SKIPS) log_capture(row);
    num_captured++;
    if (captured.size() < settings.max_captured) captured.push_back(row);
}

// `packet.ingress_port` is still that of its arrival.
template <bool is_full>
void Engine<is_full>::note_leaving(std::uint32_t port, const Packet& packet) {
    if (settings.capture_at == CapturePoint::Port) return note(packet, port == settings.capture_port);
    const bool is_data = packet.type == PacketType::Data;
    note(packet, packet.ingress_port == NONE && is_data == (settings.capture_at == CapturePoint::Sender));
}

template <bool is_full>
void Engine<is_full>::note_arrival(std::uint32_t port, const Packet& packet, bool is_at_its_end) {
    if (settings.capture_at == CapturePoint::Port) return note(packet, port_stats[port].peer == settings.capture_port);
    const bool is_data = packet.type == PacketType::Data;
    note(packet, is_at_its_end && is_data == (settings.capture_at == CapturePoint::Receiver));
}

}  // namespace netsim
