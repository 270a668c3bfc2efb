// The walk over what only the full engine has: queues by priority, selective repeat, hosts that take time, entropy.
//
// Left out is what follows from the rest: shares of buffers from the packets that hold them, what a sender under
// selective repeat has in flight from its sequence numbers, posted receives from there having been no refusal.

#include <bit>

#include "../engine.hpp"

namespace netsim {

// A pause that ends by itself, its repetition and what a watchdog waits for stand, and bound the sleep.
template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_priority(Visitor& visitor, std::uint32_t port, std::uint32_t priority) {
    OutputQueue& output = priorities.output(port, priority);
    InputQueue& input = priorities.input(port, priority);
    QueueStats& stats = priorities.queue_stats(port, priority);
    if (!walk_queue(visitor, output.head) || !walk_ring(visitor, output.ring)) return false;
    if (!visitor.same(output.balance_bytes) || !visitor.same(input.headroom_bytes)) return false;
    if (!visitor.same(output.is_paused | output.is_storm << 1 | input.pauses_sender << 2)) return false;
    if (!visitor.instant(stats.pause_ends_ps, true) || !visitor.instant(stats.refresh_ps, true)) return false;
    if (output.is_paused && !visitor.anchor(stats.paused_since_ps)) return false;
    if (marks_matter() && !visitor.count(stats.marked_packets)) return false;
    if (!priorities.watchdogs.empty()) {
        Watchdog& watchdog = priorities.watchdog(port, priority);
        if (!visitor.instant(watchdog.look_ps, true) || !visitor.anchor(watchdog.last_pause_ps)) return false;
    }
    return visitor.count(stats.paused_ps) && visitor.count(stats.num_pauses) &&
           visitor.count(stats.pause_frames_sent) && visitor.count(stats.pause_frames_received) &&
           visitor.count(output.tx_bytes) && visitor.count(output.tx_packets);
}

// What is not in order is never repeated.
template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_selective(Visitor& visitor, std::uint32_t qp) {
    SelectiveSender& selective = selective_senders[qp];
    const bool is_orderly = selective.at_rest.empty() && selective.lost.empty();
    if (!is_orderly || !selective_receivers[qp].arrived.empty()) return false;
    if (!visitor.anchor(selective.newest_sent_ps) || !visitor.instant(selective.deadline_ps, true)) return false;
    for (std::uint32_t place = 0; place < selective.transmissions.size(); place++) {
        Transmission& transmission = selective.transmissions[place];
        if (!visitor.same(std::int64_t{transmission.sequence} - senders[qp].next_sequence)) return false;
        if (!visitor.stamp(transmission.sent_ps, ALWAYS_VALID) || !visitor.count(transmission.sequence)) return false;
    }
    return visitor.same(END_OF_LIST);
}

template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_pair_features(Visitor& visitor, std::uint32_t qp) {
    if (is_selective() && !walk_selective(visitor, qp)) return false;
    if (has_entropy() && !entropy_caches[qp].visit(visitor)) return false;
    if (!endpoints.empty() && (!visitor.instant(endpoints[qp].answer_ps, false) || !walk_replies(visitor, qp)))
        return false;
    if (round_trips.empty() || senders[qp].oldest == NONE) return true;
    RoundTrips& sum = round_trips[senders[qp].oldest];
    return visitor.count(sum.num) && visitor.count(sum.rtt_ps) && visitor.count(sum.endpoint_ps);
}

template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_replies(Visitor& visitor, std::uint32_t qp) {
    for (Wire::Flight& reply : skip.replies[qp]) {
        if (!visitor.instant(reply.arrives_ps, false) || !walk_packet(visitor, reply.packet)) return false;
        if (!visitor.stamp(times_in_host_ps[reply.packet], ALWAYS_VALID)) return false;
    }
    return visitor.same(END_OF_LIST);
}

template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_port_features(Visitor& visitor, std::uint32_t port) {
    for (std::uint32_t priority = 0; priority < priorities.size(); priority++) {
        if (!walk_priority(visitor, port, priority)) return false;
    }
    if (has_priorities() && !visitor.same(priorities.ports[port].turn)) return false;
    if (host_links.exist() && ports[port].is_host && !host_links.visit(visitor, port)) return false;
    if (faults.are_possible() && !visitor.same(std::bit_cast<std::int64_t>(faults.health[port].random))) return false;
    if (nics.empty() || nics[port].head == NONE) return visitor.same(END_OF_LIST);
    for (std::uint32_t packet = nics[port].head; packet != NONE; packet = packets[packet].next) {
        if (!walk_packet(visitor, packet) || !visitor.stamp(times_in_host_ps[packet], ALWAYS_VALID)) return false;
    }
    return visitor.instant(nics[port].drained_ps, false) && visitor.same(END_OF_LIST);
}

// What travels with a packet in arrays of its own.
template <bool is_full>
template <typename Visitor>
bool Engine<is_full>::walk_packet_features(Visitor& visitor, std::uint32_t packet_id, const Packet& packet) {
    if (has_entropy() && !visitor.same(entropies[packet_id])) return false;
    if (packet.type != PacketType::Ack) return true;
    if (takes_time() && !visitor.same(times_in_host_ps[packet_id])) return false;
    if (!is_selective()) return true;
    std::uint32_t& expected = expected_sequences[packet_id];
    return visitor.same(std::int64_t{expected} - senders[packet.queue_pair].next_sequence) && visitor.count(expected);
}

// When the last event comes of those that only the full engine has.
template <bool is_full>
Picoseconds Engine<is_full>::last_pending_feature_ps(const Component& component) const {
    Picoseconds last_ps = 0;
    for (const std::uint32_t port : component.ports) {
        if (!nics.empty() && nics[port].head != NONE) last_ps = std::max(last_ps, nics[port].drained_ps);
    }
    for (const std::uint32_t qp : component.queue_pairs) {
        if (!skip.replies.empty() && !skip.replies[qp].is_empty())
            last_ps = std::max(last_ps, skip.replies[qp].last_ps());
    }
    return last_ps;
}

}  // namespace netsim
