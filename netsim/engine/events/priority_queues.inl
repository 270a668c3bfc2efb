// Queues by priority: admission to a switch's buffer, marking, and whose turn it is at a port.
//
// Strict priorities go first, the highest number before the others; what they leave is shared by weights: a priority is
// served while its balance is above nothing, pays for what it sends, and is given its weight in full frames when its
// turn comes. Lossless priorities are counted by the port they came through, lossy ones by the queue they wait in.
// Source: IEEE 802.1Q; Shreedhar, Varghese, "Efficient Fair Queuing using Deficit Round Robin", SIGCOMM 1995, with a
// balance that may be overdrawn by one packet, since a NIC does not know the next one's size.
// RED drops what it would mark and cannot, where a priority says so; only switches have it, not NICs.
// Left out: thresholds that are looked at when others leave the buffer; marks on answers, which no sender reads.

#include <bit>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
inline std::uint8_t Engine<is_full>::priority_of(std::uint32_t qp, PacketType type) const {
    if (!has_priorities()) return 0;
    std::uint32_t own = NONE;
    if (type == PacketType::Cnp) {
        own = settings.cnp_priority;
    } else if (type != PacketType::Data) {
        own = settings.acknowledgement_priority;
    }
    return static_cast<std::uint8_t>(own == NONE ? priorities.queue_pair[qp] : own);
}

template <bool is_full>
bool Engine<is_full>::is_ecn_capable(PacketType type) const {
    if (type == PacketType::Data) return true;
    return type == PacketType::Cnp ? settings.cnps_are_ecn_capable : settings.acknowledgements_are_ecn_capable;
}

template <bool is_full>
bool Engine<is_full>::is_dropped_early(std::uint32_t port, const Packet& packet, const PriorityRule& rule,
                                       std::int32_t queued_bytes) {
    if (!rule.drops_early || packet.ingress_port == NONE || is_ecn_capable(packet.type)) return false;
    if (queued_bytes <= rule.marking.min_bytes) return false;
    if constexpr (SKIPS) disturb_port(port);
    return is_to_be_marked(port_stats[port], queued_bytes, rule.marking);
}

template <bool is_full>
void Engine<is_full>::enqueue_by_priority(std::uint32_t port, std::uint32_t packet_id) {
    Packet& packet = packets[packet_id];
    if (uses(USES_TRIMMING)) {
        const std::int32_t queued_bytes = priorities.output(port, packet.priority).queued_bytes;
        if (is_to_be_trimmed(port, queued_bytes, packet)) trim(port, packet_id);
    }
    const std::uint32_t priority = packet.priority;
    OutputQueue& output = priorities.output(port, priority);
    if (is_dropped_early(port, packet, priorities.rules[priority], output.queued_bytes)) {
        priorities.queue_stats(port, priority).dropped_packets++;
        return drop(packet.ingress_port, packet_id);
    }
    if (packet.ingress_port != NONE && !admit_by_priority(port, priority, packet)) {
        return drop(packet.ingress_port, packet_id);
    }
    const MarkingCurve& marking = priorities.rules[priority].marking;
    if (packet.type == PacketType::Data && output.queued_bytes > marking.min_bytes) {
        if constexpr (SKIPS) log_draw(port, output.queued_bytes, priority);
        const bool is_marked = mark(port_stats[port], packet, output.queued_bytes, marking);
        priorities.queue_stats(port, priority).marked_packets += is_marked;
    }
    Port& out = ports[port];
    const bool is_open = priorities.ports[port].is_open(priority);
    if (!out.has_wake && out.busy_until_ps <= now_ps && is_open) return transmit(port, out, packet_id);
    packet.next = NONE;
    (output.head == NONE ? output.head : packets[output.tail].next) = packet_id;
    output.tail = packet_id;
    priorities.note_waiting(port, priority);
    grow_queue(port, out, packet.wire_bytes);
    output.queued_bytes += packet.wire_bytes;
    output.max_queue_bytes = std::max(output.max_queue_bytes, output.queued_bytes);
    out.max_queue_bytes = std::max(out.max_queue_bytes, out.queued_bytes);
    watch(port, priority);
    if (!out.has_wake && is_open) wake_when_free(port, out);
}

// Take a packet into the buffer of the node that it is to leave through `port`; false if there is no room.
template <bool is_full>
bool Engine<is_full>::admit_by_priority(std::uint32_t port, std::uint32_t priority, const Packet& packet) {
    const PriorityRule& rule = priorities.rules[priority];
    OutputQueue& output = priorities.output(port, priority);
    BufferPool& pool = priorities.pool(port);
    const bool is_dropping = output.is_storm && settings.watchdog_drops;
    if (rule.is_lossless && !is_dropping) return admit_lossless(packet.ingress_port, priority, pool, packet.wire_bytes);
    if (!is_dropping && pool.take(output.share, rule.alpha, packet.wire_bytes)) return true;
    priorities.queue_stats(port, priority).dropped_packets++;
    return false;
}

// What is beyond the threshold goes to the headroom; the sender is paused before one more full frame would.
template <bool is_full>
bool Engine<is_full>::admit_lossless(std::uint32_t ingress, std::uint32_t priority, BufferPool& pool,
                                     std::int32_t bytes) {
    InputQueue& input = priorities.input(ingress, priority);
    const double alpha = priorities.rules[priority].alpha;
    const auto below = static_cast<std::int32_t>(std::min<std::int64_t>(bytes, pool.room(input.share, alpha)));
    const std::int32_t above = bytes - below;
    const bool is_admitted =
        above <= input.headroom_limit_bytes - input.headroom_bytes && above <= pool.free_headroom_bytes();
    if (is_admitted) {
        pool.change(input.share, below);
        pool.take_headroom(above);
        input.headroom_bytes += above;
        input.max_headroom_bytes = std::max(input.max_headroom_bytes, input.headroom_bytes);
    } else {
        priorities.queue_stats(ingress, priority).input_dropped_packets++;
    }
    const bool is_full_up = above > 0 || pool.room(input.share, alpha) < settings.full_frame_bytes;
    if (is_full_up && !input.pauses_sender) send_priority_pause(ingress, priority, true);
    return is_admitted;
}

// A NIC that is slow to hand on has a buffer for each priority, counted by the port it came through, lossy or not.
template <bool is_full>
bool Engine<is_full>::admit_to_nic(std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    const std::uint32_t priority = packet.priority;
    InputQueue& input = priorities.input(packet.ingress_port, priority);
    BufferPool& pool = priorities.pool(port_stats[packet.ingress_port].peer);
    const bool is_lossless = priorities.rules[priority].is_lossless;
    const bool is_admitted = is_lossless ? admit_lossless(packet.ingress_port, priority, pool, packet.wire_bytes)
                                         : pool.take(input.share, 0, packet.wire_bytes);
    if (!is_admitted && !is_lossless) {
        priorities.queue_stats(packet.ingress_port, priority).input_dropped_packets++;
    }
    if (!is_admitted) drop(packet.ingress_port, packet_id);
    return is_admitted;
}

template <bool is_full>
void Engine<is_full>::leave_nic(std::uint32_t port, const Packet& packet) {
    const std::uint32_t priority = packet.priority, peer = port_stats[port].peer;
    if (priorities.rules[priority].is_lossless) return leave_shared_buffer(port, peer, priority, packet.wire_bytes);
    priorities.pool(peer).change(priorities.input(port, priority).share, -std::int32_t{packet.wire_bytes});
}

template <bool is_full>
void Engine<is_full>::leave_by_priority(std::uint32_t port, const Packet& packet) {
    const std::uint32_t priority = packet.priority;
    OutputQueue& output = priorities.output(port, priority);
    output.tx_bytes += packet.wire_bytes;
    output.tx_packets++;
    priorities.last_transmission_ps = now_ps;
    if (packet.ingress_port != NONE) leave_shared_buffer(packet.ingress_port, port, priority, packet.wire_bytes);
}

// A packet that came through `ingress` leaves the buffer of the node that sends through `port`.
template <bool is_full>
void Engine<is_full>::leave_shared_buffer(std::uint32_t ingress, std::uint32_t port, std::uint32_t priority,
                                          std::int32_t bytes) {
    BufferPool& pool = priorities.pool(port);
    if (!priorities.rules[priority].is_lossless) return pool.change(priorities.output(port, priority).share, -bytes);
    InputQueue& input = priorities.input(ingress, priority);
    const std::int32_t above = std::min(bytes, input.headroom_bytes);
    input.headroom_bytes -= above;
    pool.take_headroom(-above);
    pool.change(input.share, above - bytes);
    if (!input.pauses_sender || input.headroom_bytes > 0) return;
    const bool has_room = pool.room(input.share, priorities.rules[priority].alpha) >= input.resume_offset_bytes;
    if (has_room || input.share.bytes == 0) send_priority_pause(ingress, priority, false);
}

// The transmitter is free: take from the priority whose turn it is, in hosts from what waits before its queue pairs.
template <bool is_full>
void Engine<is_full>::serve_by_priority(std::uint32_t port, Port& out) {
    const std::uint64_t tx_bytes = out.tx_bytes;
    while (out.tx_bytes == tx_bytes) {
        const std::uint32_t priority = next_priority(port);
        if (priority == NONE) return;
        OutputQueue& output = priorities.output(port, priority);
        if (output.head == NONE) {
            send_from_ring(output.ring, out);  // if none of its queue pairs may send, the ring is empty now
            priorities.note_waiting(port, priority);
        } else {
            const std::uint32_t packet = take_first(port, priority);
            if (output.head != NONE) packets.prefetch(output.head);
            transmit(port, out, packet);
        }
        if (priorities.rules[priority].weight > 0) {
            output.balance_bytes -= static_cast<std::int32_t>(out.tx_bytes - tx_bytes);
        }
    }
    if (priorities.ports[port].sendable()) wake_when_free(port, out);
}

template <bool is_full>
std::uint32_t Engine<is_full>::take_first(std::uint32_t port, std::uint32_t priority) {
    OutputQueue& output = priorities.output(port, priority);
    const std::uint32_t packet = output.head;
    sample_load(ports[port]);
    output.head = packets[packet].next;
    output.queued_bytes -= packets[packet].wire_bytes;
    ports[port].queued_bytes -= packets[packet].wire_bytes;
    priorities.note_waiting(port, priority);
    return packet;
}

// Take the first packet of a queue out of the node's buffer as well, to lose it.
template <bool is_full>
std::uint32_t Engine<is_full>::take_out(std::uint32_t port, std::uint32_t priority) {
    const std::uint32_t packet_id = take_first(port, priority);
    const Packet& packet = packets[packet_id];
    if (packet.ingress_port != NONE) leave_shared_buffer(packet.ingress_port, port, priority, packet.wire_bytes);
    return packet_id;
}

// Lose what waits for a port that is down.
template <bool is_full>
void Engine<is_full>::clear_priorities(std::uint32_t port) {
    for (std::uint32_t priority = 0; priority < priorities.size(); priority++) {
        while (priorities.output(port, priority).head != NONE) lose(port, take_out(port, priority), LINK_DOWN);
    }
}

// The priority to be served; NONE if none may send.
template <bool is_full>
std::uint32_t Engine<is_full>::next_priority(std::uint32_t port) {
    PortPriorities& own = priorities.ports[port];
    const std::uint32_t sendable = own.sendable();
    if (sendable == 0) return NONE;
    const std::uint32_t strict = sendable & priorities.strict;
    if (strict) return static_cast<std::uint32_t>(std::bit_width(strict)) - 1;
    while (!is_in_turn(port, own.turn)) {
        own.turn = static_cast<std::uint8_t>((own.turn + 1u) % priorities.size());
        if (!own.is_sendable(own.turn)) continue;
        priorities.output(port, own.turn).balance_bytes +=
            priorities.rules[own.turn].weight * settings.full_frame_bytes;
    }
    return own.turn;
}

// The first packet of the highest priority that may send: most often what the port sends next.
template <bool is_full>
std::uint32_t Engine<is_full>::first_waiting(std::uint32_t port) const {
    const std::uint32_t sendable = priorities.ports[port].sendable();
    return sendable ? priorities.output(port, static_cast<std::uint32_t>(std::bit_width(sendable)) - 1).head : NONE;
}

// Whether a weighted priority may go on; one that has nothing to send keeps no balance for later.
template <bool is_full>
bool Engine<is_full>::is_in_turn(std::uint32_t port, std::uint32_t priority) {
    OutputQueue& output = priorities.output(port, priority);
    if (priorities.ports[port].is_sendable(priority)) return output.balance_bytes > 0;
    output.balance_bytes = std::min(output.balance_bytes, 0);
    return false;
}

}  // namespace netsim
