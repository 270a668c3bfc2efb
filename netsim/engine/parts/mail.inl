// Mail: what a part sends to another, which takes it before its next window.
//
// Packets on a wire that is cut, pause frames against its direction, and messages to come. All of it is due later than
// the window in which it was sent, but for a message, whose first packet is.
#include <stdexcept>

#include "../engine.hpp"

namespace netsim {

// A packet has left through a port whose wire is cut.
template <bool is_full>
void Engine<is_full>::mail_packet(std::uint32_t port, Picoseconds arrives_ps, std::uint32_t packet_id) {
    Mailbox& box = part.mailbox_to(part.crew->cut.part_of_port[port_stats[port].peer]);
    box.packets.push_back({arrives_ps, port, packets[packet_id]});
    if constexpr (is_full) mail_extras(box, packet_id);
    part.note_mail(arrives_ps);
    part.sends_packets = true;
    packets.release(packet_id);
}

template <bool is_full>
void Engine<is_full>::mail_extras(Mailbox& box, std::uint32_t packet_id) {
    PacketExtras& extras = box.extras.emplace_back();
    const PacketType type = packets[packet_id].type;
    if (faults.are_possible()) extras.num_downs = faults.departure(packet_id);
    if (packet_id < expected_sequences.size()) extras.expected_sequence = expected_sequences[packet_id];
    if (packet_id < times_in_host_ps.size()) extras.time_in_host_ps = times_in_host_ps[packet_id];
    if (has_entropy()) extras.entropy = entropies[packet_id];
    if (!law.uses_telemetry || (type != PacketType::Data && type != PacketType::Ack)) return;
    extras.num_hops = trails.num_hops(packet_id);
    const TelemetryRecord* hops = trails.hops(packet_id);
    box.hops.insert(box.hops.end(), hops, hops + extras.num_hops);
}

// An event of the node that sends through a port whose wire is cut.
template <bool is_full>
void Engine<is_full>::mail_event(std::uint32_t port, Picoseconds time_ps, EventIdentity identity) {
    part.mailbox_to(part.crew->cut.part_of_port[port]).events.push_back({time_ps, identity});
    part.note_mail(time_ps);
}

template <bool is_full>
void Engine<is_full>::mail_message(std::uint32_t row) {
    const std::uint32_t other = part.crew->cut.part_of_receiver[transfers[row].queue_pair];
    part.mailbox_to(other).messages.push_back({row, transfers[row].end_sequence});
}

template <bool is_full>
void Engine<is_full>::take_mail() {
    for (auto& mailboxes : part.crew->mailboxes) {
        Mailbox& box = mailboxes[part.turn ^ 1][part.number];
        for (const MessageMail& mail : box.messages) take_message(mail);
        take_packets(box);
        for (const FarEvents::Event& event : box.events) {
            require_to_come(event.time_ps);
            queue.push(event.time_ps, event.identity);
        }
        box.clear();
    }
}

template <bool is_full>
void Engine<is_full>::take_packets(const Mailbox& box) {
    const TelemetryRecord* hops = box.hops.data();
    for (std::size_t i = 0; i < box.packets.size(); i++) {
        const PacketMail& mail = box.packets[i];
        require_to_come(mail.arrives_ps);
        const std::uint32_t packet_id = packets.allocate();
        packets[packet_id] = mail.packet;
        if constexpr (is_full) {
            take_extras(box.extras[i], hops, packet_id);
            hops += box.extras[i].num_hops;
        }
        queue.push(mail.arrives_ps, identify(EventKind::Arrival, mail.port, packet_id));
    }
}

// What a window's length promises.
template <bool is_full>
inline void Engine<is_full>::require_to_come(Picoseconds time_ps) const {
    if (time_ps < part.last.time_ps) [[unlikely]]
        throw std::logic_error("a part of the run has sent another what should have come earlier");
}

template <bool is_full>
void Engine<is_full>::take_extras(const PacketExtras& extras, const TelemetryRecord* hops, std::uint32_t packet_id) {
    if (faults.are_possible()) faults.set_departure(packet_id, extras.num_downs);
    make_room_for_answers();
    if (is_selective()) expected_sequences[packet_id] = extras.expected_sequence;
    if (takes_time()) times_in_host_ps[packet_id] = extras.time_in_host_ps;
    if (has_entropy()) entropy_place(packet_id) = extras.entropy;
    if (!law.uses_telemetry) return;
    trails.make_room(packets.size());
    trails.begin(packet_id);
    for (std::int32_t hop = 0; hop < extras.num_hops; hop++) trails.append(packet_id, hops[hop]);
}

// What `append_to_queue_pair` does to a receiver. Its sender's record, idle here, has the end of its messages.
template <bool is_full>
void Engine<is_full>::take_message(const MessageMail& mail) {
    Transfer& transfer = transfers[mail.row];
    transfer.next = NONE;
    transfer.end_sequence = mail.end_sequence;
    Sender& sender = senders[transfer.queue_pair];
    if (sender.newest != NONE) transfers[sender.newest].next = mail.row;
    sender.newest = mail.row;
    expect_message(receivers[transfer.queue_pair], mail.row);
}

}  // namespace netsim
