// Forwarding: what happens to a packet at a port, and how ports pause one another.
//
// A packet is its own arrival event. A port has a Wake event only while something waits for its transmitter, so an idle
// network costs one event a hop.
//
// PFC: a node counts the data it holds by the port they came through. Above a threshold it sends a pause frame, which
// takes the transmitter as soon as the frame on it has ended, crosses the wire and takes effect after the sender's
// response time.
// Source: IEEE 802.1Qbb; RED marking as in DCQCN (SIGCOMM'15), section 3.1, on the queue a packet finds.
// Left out: pauses do not expire, as if refreshed in time.
// Where ports have priorities, priority_queues.inl and priority_pauses.inl replace the queues and pauses of this file.

#include "../engine.hpp"

namespace netsim {

// The class a packet waits in at every port; notifications and what trimming makes are never in the class of data.
template <bool is_full>
inline TrafficClass Engine<is_full>::class_of(PacketType type) const {
    if (uses(USES_ACKNOWLEDGEMENTS_AS_DATA) && is_acknowledgement(type)) return DATA;
    return own_class_of(type);
}

template <bool is_full>
inline void Engine<is_full>::arrive(std::uint32_t port, std::uint32_t packet) {
    if constexpr (is_full) {
        if (uses(USES_FAULTS) && is_lost_on_the_way(port, packet)) return;
        if (uses(USES_LOSSES) && is_lost(port_stats[port])) return drop(port, packet);
    }
    const std::uint32_t out = next_port(port, packet);
    if constexpr (is_full) {
        if (uses(USES_CAPTURES)) note_arrival(port, packet, out == NONE);
    }
    if (out != NONE) {
        enqueue(out, packet);
    } else {
        if constexpr (SKIPS && is_full) note_delivery(port, packet);
        deliver(packet);
    }
}

// The port a packet leaves the node through that it has reached; NONE at its end.
template <bool is_full>
inline std::uint32_t Engine<is_full>::next_port(std::uint32_t arrived, std::uint32_t packet_id) {
    Packet& packet = packets[packet_id];
    if constexpr (is_full) {
        if (path_chooser.chooses_for(packet.type)) {
            // Sent round a fault, a packet may make more hops than its path has entries.
            packet.path_position += (packet.path_position + 1) % settings.path_stride != 0;
            return path_chooser.next_port(arrived, packet, entropy_of(packet_id), now_ps, ports);
        }
    }
    return path[++packet.path_position];
}

template <bool is_full>
bool Engine<is_full>::is_lost(PortStats& stats) {
    return stats.loss_fraction > 0 && stats.random.next_fraction() < stats.loss_fraction;
}

template <bool is_full>
void Engine<is_full>::drop(std::uint32_t port, std::uint32_t packet) {
    port_stats[port].dropped_packets++;
    (packets[packet].type == PacketType::Data ? data_packets : control_packets).dropped++;
    packets.release(packet);
}

template <bool is_full>
inline void Engine<is_full>::enqueue(std::uint32_t port, std::uint32_t packet_id) {
    if constexpr (is_full) {
        if (uses(USES_FAULTS) && !has_way(port, packet_id)) return;
    }
    if constexpr (SKIPS) {
        if (ports[port].is_asleep || ports[port].is_watched) [[unlikely]]
            note_entry(port, packet_id);
    }
    if (has_priorities()) return enqueue_by_priority(port, packet_id);
    Packet& packet = packets[packet_id];
    Port& out = ports[port];
    if constexpr (is_full) {
        if (uses(USES_TRIMMING) && is_to_be_trimmed(port, out.queued_bytes, packet)) trim(port, packet_id);
    }
    const TrafficClass cls = class_of(packet.type);
    if (cls == DATA) {
        if (!admit(packet_id)) return;
        if (packet.type == PacketType::Data && out.queued_bytes > settings.marking.min_bytes) {
            if constexpr (SKIPS) log_draw(port, out.queued_bytes, 0);
            mark(port_stats[port], packet, out.queued_bytes, settings.marking);
        }
    }
    const bool may_send = !(cls == DATA && out.is_paused);
    if (!out.has_wake && out.busy_until_ps <= now_ps && may_send) return transmit(port, out, packet_id);
    packet.next = NONE;
    if (out.head[cls] == NONE) {
        out.head[cls] = packet_id;
    } else {
        packets[out.tail[cls]].next = packet_id;
    }
    out.tail[cls] = packet_id;
    if (cls == DATA) {
        grow_queue(port, out, packet.wire_bytes);
        out.max_queue_bytes = std::max(out.max_queue_bytes, out.queued_bytes);
    }
    if (!out.has_wake && may_send) wake_when_free(port, out);
}

// Before a port's queue or its count of bytes changes.
template <bool is_full>
inline void Engine<is_full>::sample_load(const Port& out) {
    if (uses(USES_SAMPLED_LOADS)) settle_load(out);
}

template <bool is_full>
void Engine<is_full>::settle_load(const Port& out) {
    path_chooser.loads.settle(static_cast<std::uint32_t>(&out - ports.data()), out, now_ps);
}

// Queues are counted in 32 bits, which keeps a port in one cache line; a port beyond them ends the run.
template <bool is_full>
inline void Engine<is_full>::grow_queue(std::uint32_t port, Port& out, std::int32_t bytes) {
    sample_load(out);
    if (__builtin_add_overflow(out.queued_bytes, bytes, &out.queued_bytes)) [[unlikely]]
        throw std::overflow_error(std::to_string(port));
}

// Take a data packet into the node's buffer, or drop it.
template <bool is_full>
inline bool Engine<is_full>::admit(std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    if (packet.ingress_port == NONE) return true;
    Port& ingress = ports[packet.ingress_port];
    const std::int32_t level = ingress.ingress_bytes + packet.wire_bytes;
    if (level > ingress.ingress_threshold_bytes) [[unlikely]] {
        if (!admit_above_threshold(packet.ingress_port, level)) {
            drop(packet.ingress_port, packet_id);
            return false;
        }
    }
    ingress.ingress_bytes = level;
    return true;
}

template <bool is_full>
bool Engine<is_full>::admit_above_threshold(std::uint32_t ingress, std::int32_t level) {
    if (level > port_stats[ingress].ingress_limit_bytes) return false;
    if (settings.is_pfc_enabled && !ports[ingress].pauses_sender) send_pause_frame(ingress);
    return true;
}

// Draw for a packet that finds so many bytes, more than the least, in its queue.
template <bool is_full>
inline bool Engine<is_full>::is_to_be_marked(PortStats& stats, std::int32_t queued_bytes, const MarkingCurve& curve) {
    if (queued_bytes >= curve.max_bytes) return true;
    const auto above = static_cast<double>(queued_bytes - curve.min_bytes);
    const auto span = static_cast<double>(curve.max_bytes - curve.min_bytes);
    return stats.random.next_fraction() * span < curve.max_fraction * above;
}

// Perhaps mark a packet; returns whether it was marked.
template <bool is_full>
bool Engine<is_full>::mark(PortStats& stats, Packet& packet, std::int32_t queued_bytes, const MarkingCurve& curve) {
    if (!is_to_be_marked(stats, queued_bytes, curve)) return false;
    packet.is_marked = true;
    stats.marked_packets++;
    return true;
}

template <bool is_full>
inline void Engine<is_full>::transmit(std::uint32_t port, Port& out, std::uint32_t packet_id) {
    Packet& packet = packets[packet_id];
    const std::int32_t bytes = packet.wire_bytes;
    const TrafficClass cls = class_of(packet.type);
    sample_load(out);
    out.busy_until_ps = now_ps + (out.ps_per_byte ? Picoseconds{bytes} * out.ps_per_byte
                                                  : serialization_ps(bytes, port_stats[port].rate_bps));
    if (uses(USES_HOST_LINKS)) read_from_memory(port, out, packet);
    out.tx_bytes += static_cast<std::uint64_t>(bytes);
    count_transmission(port, out, own_class_of(packet.type));
    const Picoseconds arrives_ps = out.busy_until_ps + out.delay_ps;
    if (has_priorities()) {
        leave_by_priority(port, packet);
    } else if (cls == DATA && packet.ingress_port != NONE) {
        leave_buffer(packet.ingress_port, bytes);
    }
    if (uses(USES_TELEMETRY | USES_CAPTURES | USES_FAULTS)) note_departure(port, out, packet_id);
    packet.ingress_port = port;
    if constexpr (SKIPS) {
        if (out.is_watched) [[unlikely]]
            note_flight(port, arrives_ps, packet_id);
    }
    if constexpr (PARTS) {
        if (out.is_cut) return mail_packet(port, arrives_ps, packet_id);
    }
    queue.push(arrives_ps, identify(EventKind::Arrival, port, packet_id));
}

// A host's packet leaves no sooner than it has come over PCIe.
template <bool is_full>
void Engine<is_full>::read_from_memory(std::uint32_t port, Port& out, const Packet& packet) {
    if (packet.type != PacketType::Data || packet.ingress_port != NONE) return;
    out.busy_until_ps = std::max(out.busy_until_ps, host_links.read(port, payload_bytes_of(packet), now_ps));
}

// Counted in 32 bits, which keeps a port in one cache line; what goes beyond is carried.
template <bool is_full>
inline void Engine<is_full>::count_transmission(std::uint32_t port, Port& out, TrafficClass cls) {
    if (++out.tx_packets[cls] == 0) [[unlikely]]
        port_stats[port].tx_packet_carries[cls]++;
}

template <bool is_full>
inline void Engine<is_full>::leave_buffer(std::uint32_t ingress_port, std::int32_t bytes) {
    Port& ingress = ports[ingress_port];
    ingress.ingress_bytes -= bytes;
    if (ingress.pauses_sender) [[unlikely]] {
        if (ingress.ingress_bytes <= port_stats[ingress_port].resume_below_bytes) send_pause_frame(ingress_port);
    }
}

// How often the link has been down, as far as an event can say; what was on its way then is void.
template <bool is_full>
std::uint32_t Engine<is_full>::pause_generation(std::uint32_t port) const {
    return faults.are_possible() ? faults.health[port].num_downs % (MAX_PACKETS >> 6) : 0;
}

// Tell `port` to pause, or to resume if that was the last thing it was told. Frames take time, so no two of them are
// due at one instant.
template <bool is_full>
void Engine<is_full>::send_pause_frame(std::uint32_t port) {
    const PortStats& stats = port_stats[port];
    Port& carrier = ports[stats.peer];
    if constexpr (SKIPS) note_carrier(port, stats.peer);
    carrier.busy_until_ps = std::max(now_ps, carrier.busy_until_ps) +
                            serialization_ps(settings.pause_frame_bytes, port_stats[stats.peer].rate_bps);
    ports[port].pauses_sender = !ports[port].pauses_sender;
    const Picoseconds effective_ps = carrier.busy_until_ps + carrier.delay_ps + stats.pause_response_ps;
    const std::uint32_t payload = pause_generation(port) << 1 | ports[port].pauses_sender;
    if constexpr (SKIPS) skip.pause_frames[port].push_back({effective_ps, payload});
    push_at_sender(effective_ps, port, payload);
}

// A pause frame takes effect at the node that sends through `port`.
template <bool is_full>
inline void Engine<is_full>::push_at_sender(Picoseconds time_ps, std::uint32_t port, std::uint32_t payload) {
    const EventIdentity identity = identify(EventKind::PauseFrame, port, payload);
    if constexpr (PARTS) {
        if (ports[port].is_cut) return mail_event(port, time_ps, identity);
    }
    queue.push(time_ps, identity);
}

template <bool is_full>
void Engine<is_full>::obey_pause_frame(std::uint32_t port, bool is_pause) {
    PortStats& stats = port_stats[port];
    ports[port].is_paused = is_pause;
    if (is_pause) {
        stats.num_pauses++;
        stats.paused_since_ps = now_ps;
    } else {
        stats.paused_ps += now_ps - stats.paused_since_ps;
        kick(port);
    }
}

template <bool is_full>
void Engine<is_full>::note_departure(std::uint32_t port, const Port& out, std::uint32_t packet_id) {
    if (uses(USES_TELEMETRY) && packets[packet_id].type == PacketType::Data) append_telemetry(port, out, packet_id);
    if (uses(USES_CAPTURES)) note_leaving(port, packet_id);
    if (uses(USES_FAULTS)) faults.note_departure(packet_id, port);
}

template <bool is_full>
void Engine<is_full>::append_telemetry(std::uint32_t port, const Port& out, std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    if (packet.ingress_port == NONE) {
        trails.make_room(packets.size());
        trails.begin(packet_id);
    }
    const std::int32_t queued_bytes =
        has_priorities() ? priorities.output(port, packet.priority).queued_bytes : out.queued_bytes;
    trails.append(packet_id, {now_ps, static_cast<std::int64_t>(out.tx_bytes), queued_bytes,
                              static_cast<double>(port_stats[port].rate_bps)});
}

template <bool is_full>
inline void Engine<is_full>::wake(std::uint32_t port) {
    ports[port].has_wake = false;
    kick(port);  // a pause frame may have taken the transmitter in between
}

// The transmitter is free: control first, then what waits in the data queue, then the host's own queue pairs.
template <bool is_full>
inline void Engine<is_full>::serve(std::uint32_t port, Port& out) {
    if (has_priorities()) return serve_by_priority(port, out);
    TrafficClass cls = CONTROL;
    if (out.head[CONTROL] == NONE) {
        if (out.is_paused) return;
        cls = DATA;
    }
    const std::uint32_t packet = out.head[cls];
    if (packet != NONE) {
        sample_load(out);
        out.head[cls] = packets[packet].next;
        if (cls == DATA) out.queued_bytes -= packets[packet].wire_bytes;
        if (out.head[cls] != NONE) __builtin_prefetch(&packets[out.head[cls]]);
        transmit(port, out, packet);
    } else if (!out.is_host || !send_from_ring(port_stats[port].ring, out)) {
        return;
    }
    if (has_sendable(port, out)) wake_when_free(port, out);
}

template <bool is_full>
inline bool Engine<is_full>::has_sendable(std::uint32_t port, const Port& out) const {
    if (has_priorities()) return priorities.ports[port].sendable();
    if (out.head[CONTROL] != NONE) return true;
    if (out.is_paused) return false;
    return out.head[DATA] != NONE || (out.is_host && port_stats[port].ring.head != NONE);
}

template <bool is_full>
inline void Engine<is_full>::wake_when_free(std::uint32_t port, Port& out) {
    out.has_wake = true;
    const std::uint32_t first =
        has_priorities() ? first_waiting(port) : out.head[out.head[CONTROL] == NONE ? DATA : CONTROL];
    queue.push(out.busy_until_ps, identify(EventKind::Wake, port, first == NONE ? 0 : first));
}

// Something may have become sendable.
template <bool is_full>
inline void Engine<is_full>::kick(std::uint32_t port) {
    Port& out = ports[port];
    if (out.has_wake) return;
    if (out.busy_until_ps <= now_ps) {
        serve(port, out);
    } else if (has_sendable(port, out)) {
        wake_when_free(port, out);
    }
}

}  // namespace netsim
