// Receiver credits: a NIC lets in no more than its link carries, shared among the senders that want to send to it.
//
// A packet leaves only where there is credit. It says up to where its sender wants credit: what waits, up to a window,
// and no more than the law's window and a packet. The receiver's NIC grants a few packets to one queue pair after
// another, at the rate of its link; while no one wants any, it grants up to a window to those that have wanted some. A
// sender without credit that wants more than it has said asks, and again after a timeout.
//
// Source: Ultra Ethernet Specification 1.0, headers of RUD_CC_REQ (credit_target) and of the control packets Credit and
// Credit Request. Sizes of a grant and of the window, the pacer's two lists and credit before any grant are those of
// the consortium's htsim model; see docs/decisions/0057-ultra-ethernet.md.
// Left out: counts of 24 bits; targets shared among the receivers a NIC sends to; grants inside acknowledgements.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
std::int64_t Engine<is_full>::wire_bytes_of(std::int64_t payload_bytes) const {
    return std::max(payload_bytes + settings.wire_overhead_bytes, settings.ack_bytes);
}

template <bool is_full>
std::int64_t& Engine<is_full>::credit_count(std::uint32_t packet) {
    if (packet >= credit_counts.size()) credit_counts.resize(2 * packets.size());
    return credit_counts[packet];
}

template <bool is_full>
void Engine<is_full>::add_backlog(std::uint32_t qp, const Transfer& transfer) {
    const std::int64_t num_full_packets = transfer.num_packets(settings.mtu_bytes) - std::int64_t{1};
    credited_senders[qp].backlog_bytes += num_full_packets * wire_bytes_of(settings.mtu_bytes) +
                                          wire_bytes_of(transfer.last_payload_bytes(settings.mtu_bytes));
}

// A data packet leaves.
template <bool is_full>
void Engine<is_full>::spend_credit(std::uint32_t qp, std::uint32_t packet_id) {
    CreditedSender& credited = credited_senders[qp];
    credited.credit_bytes -= packets[packet_id].wire_bytes;
    credited.backlog_bytes -= packets[packet_id].wire_bytes;
    credited.target_bytes = credit_target(qp);
    credit_count(packet_id) = credited.target_bytes;
}

// It never goes back.
template <bool is_full>
std::int64_t Engine<is_full>::credit_target(std::uint32_t qp) const {
    const CreditedSender& credited = credited_senders[qp];
    std::int64_t wanted_bytes = std::min(credited.backlog_bytes, credited.window_bytes);
    const double window_bytes = flow(qp).cwnd_bytes + static_cast<double>(settings.mtu_bytes);
    if (window_bytes < static_cast<double>(wanted_bytes)) wanted_bytes = static_cast<std::int64_t>(window_bytes);
    const std::int64_t more_bytes = std::max<std::int64_t>(wanted_bytes - credited.credit_bytes, 0);
    return std::max(credited.target_bytes, credited.granted_bytes + more_bytes);
}

// Whether credit is all it waits for, the law's window apart.
template <bool is_full>
bool Engine<is_full>::lacks_credit(std::uint32_t qp, const Sender& sender) const {
    return has_credits() && credited_senders[qp].credit_bytes <= 0 && has_selective_work(qp, sender);
}

template <bool is_full>
void Engine<is_full>::ask_for_credit(std::uint32_t qp, Sender& sender) {
    if (!lacks_credit(qp, sender)) return;
    const std::int64_t target_bytes = credit_target(qp);
    if (target_bytes == credited_senders[qp].target_bytes) return;
    credited_senders[qp].target_bytes = target_bytes;
    const std::uint32_t packet_id = packets.allocate();
    Packet& packet = packets[packet_id];
    packet.queue_pair = qp;
    packet.sequence = 0;
    packet.ingress_port = NONE;
    packet.sent_ps = now_ps;
    packet.path_position = path_begin(qp, 0);
    packet.wire_bytes = static_cast<std::uint16_t>(settings.ack_bytes);
    packet.type = PacketType::CreditRequest;
    packet.is_marked = false;
    packet.priority = priority_of(qp, PacketType::CreditRequest);
    credit_count(packet_id) = target_bytes;
    if (has_entropy()) entropy_place(packet_id) = 0;
    control_packets.sent++;
    if (sender.timeout_ps == NEVER) {
        sender.timeout_ps = next_timeout_ps(sender);
        arm_timer(qp, sender, sender.timeout_ps);
    }
    enqueue(sender.port, packet_id);
}

// Ask again for what was asked for: a request or a grant may be lost.
template <bool is_full>
void Engine<is_full>::forget_credit_target(std::uint32_t qp) {
    credited_senders[qp].target_bytes = credited_senders[qp].granted_bytes;
}

template <bool is_full>
void Engine<is_full>::on_credit(std::uint32_t packet_id) {
    const std::uint32_t qp = packets[packet_id].queue_pair;
    const std::int64_t granted_bytes = credit_counts[packet_id];
    packets.release(packet_id);
    Sender& sender = senders[qp];
    if (sender.state == SenderState::Failed || sender.num_unacknowledged == 0) return;
    CreditedSender& credited = credited_senders[qp];
    if (granted_bytes <= credited.granted_bytes) return;  // overtaken by a later one
    const std::int64_t credit_bytes = credited.credit_bytes + granted_bytes - credited.granted_bytes;
    credited.credit_bytes = std::min(credit_bytes, credited.window_bytes);
    credited.granted_bytes = granted_bytes;
    if (is_idle(qp, sender)) restart_timeout(qp, sender);
    resume(qp);
}

// A packet from a sender has come up to its receiver's NIC, whole or trimmed.
template <bool is_full>
void Engine<is_full>::note_credit_target(std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    const std::uint32_t qp = packet.queue_pair;
    CreditedReceiver& receiver = credited_receivers[qp];
    receiver.target_bytes = std::max(receiver.target_bytes, credit_counts[packet_id]);
    const bool wants = receiver.target_bytes > receiver.granted_bytes || packet.type == PacketType::CreditRequest;
    if (receiver.turn == GrantTurn::Wanting || (receiver.turn == GrantTurn::Idle && !wants)) return;
    if (receiver.turn == GrantTurn::Idle) grant_pacers[receiver.port].idle.remove(credited_receivers, qp);
    receiver.port = packet.ingress_port;
    receiver.turn = wants ? GrantTurn::Wanting : GrantTurn::Idle;
    GrantPacer& pacer = grant_pacers[receiver.port];
    (wants ? pacer.wanting : pacer.idle).push_back(credited_receivers, qp);
    if (pacer.has_event) return;
    pacer.has_event = true;
    queue.push(std::max(now_ps, pacer.next_ps), identify(EventKind::Clock, GRANT, receiver.port));
}

// It is a NIC's time to grant.
template <bool is_full>
void Engine<is_full>::on_grant(std::uint32_t port) {
    GrantPacer& pacer = grant_pacers[port];
    pacer.has_event = !pacer.wanting.empty() || !pacer.idle.empty();
    if (!pacer.has_event) return;
    TurnList& list = pacer.wanting.empty() ? pacer.idle : pacer.wanting;
    const std::uint32_t qp = list.front();
    list.remove(credited_receivers, qp);
    CreditedReceiver& receiver = credited_receivers[qp];
    std::int64_t more_bytes = settings.grant_bytes;
    if (receiver.turn == GrantTurn::Wanting) {
        more_bytes = std::clamp<std::int64_t>(receiver.target_bytes - receiver.granted_bytes, 0, more_bytes);
    }
    receiver.granted_bytes += more_bytes;
    receiver.turn = next_turn(qp);
    if (receiver.turn == GrantTurn::Wanting) pacer.wanting.push_back(credited_receivers, qp);
    if (receiver.turn == GrantTurn::Idle) pacer.idle.push_back(credited_receivers, qp);
    send_credit(qp);
    pacer.next_ps = now_ps + serialization_ps(std::max(more_bytes, settings.ack_bytes), pacer.rate_bps);
    queue.push(pacer.next_ps, identify(EventKind::Clock, GRANT, port));
}

template <bool is_full>
GrantTurn Engine<is_full>::next_turn(std::uint32_t qp) const {
    const CreditedReceiver& receiver = credited_receivers[qp];
    const std::int64_t unwanted_bytes = receiver.granted_bytes - receiver.target_bytes;
    if (unwanted_bytes < 0) return GrantTurn::Wanting;
    return unwanted_bytes < credited_senders[qp].window_bytes ? GrantTurn::Idle : GrantTurn::None;
}

template <bool is_full>
void Engine<is_full>::send_credit(std::uint32_t qp) {
    const std::uint32_t packet_id = packets.allocate();
    packets[packet_id].queue_pair = qp;
    packets[packet_id].sequence = 0;
    packets[packet_id].sent_ps = now_ps;
    credit_count(packet_id) = credited_receivers[qp].granted_bytes;
    if (has_entropy()) entropy_place(packet_id) = 0;
    num_grants++;
    reply(packet_id, PacketType::Credit);
}

}  // namespace netsim
