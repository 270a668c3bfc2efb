// Faults: what a run makes of faults and of new paths.
//
// A link that goes down loses what is on its wire, what is queued for it and whatever is sent to it; nobody notices but
// by silence, until routing has converged and the next epoch's paths begin. PFC begins anew on both sides: no pause
// outlives the link. A NIC sends into a dead link at its rate, as if somebody heard it. New paths hold for packets that
// leave their host from then on.
// Left out: switches that notice their own dead link before routing does, packets sent round a fault midway.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::on_fault() {
    faults.milestones.push_back({now_ps, acknowledged_in_all()});
    const std::size_t first = faults.next_change;
    std::size_t& next = faults.next_change;
    for (; next < faults.changes.size() && faults.changes[next].time_ps == now_ps; next++) apply(faults.changes[next]);
    // Only now, so that no port of a switch that fails tells another to resume.
    for (std::size_t row = first; row < next; row++) {
        const Change& change = faults.changes[row];
        if (change.effect == Effect::Down && sends(change.port)) clear(change.port);
    }
    if (next < faults.changes.size()) schedule_clock(faults.changes[next].time_ps, FAULT);
    if constexpr (SKIPS) search_all_anew();
}

template <bool is_full>
void Engine<is_full>::apply(const Change& change) {
    PortHealth& health = faults.health[change.port];
    switch (change.effect) {
        case Effect::Down:
            health.is_down = change.value > 0;
            if (!health.is_down) return;
            health.num_downs++;
            return forget_pauses(change.port);
        case Effect::Loss:
            health.loss_fraction = change.value;
            return;
        case Effect::ByteErrors:
            health.byte_arrives = change.value;
            return;
        case Effect::Rate:
            port_stats[change.port].rate_bps = static_cast<std::int64_t>(change.value);
            ports[change.port].ps_per_byte = whole_ps_per_byte(port_stats[change.port].rate_bps);
            return;
    }
}

template <bool is_full>
void Engine<is_full>::forget_pauses(std::uint32_t port) {
    PortStats& stats = port_stats[port];
    if (ports[port].is_paused) stats.paused_ps += now_ps - stats.paused_since_ps;
    ports[port].is_paused = false;
    ports[port].pauses_sender = false;
    if (has_priorities()) forget_priority_pauses(port);
}

// Lose what waits for a port that is down; a host's queue pairs go on.
template <bool is_full>
void Engine<is_full>::clear(std::uint32_t port) {
    Port& out = ports[port];
    if (!faults.health[port].is_down) return;
    sample_load(out);
    for (const TrafficClass cls : {CONTROL, DATA}) {
        while (out.head[cls] != NONE) {
            const std::uint32_t packet = out.head[cls];
            out.head[cls] = packets[packet].next;
            if (cls == DATA) {
                out.queued_bytes -= packets[packet].wire_bytes;
                if (packets[packet].ingress_port != NONE) {
                    leave_buffer(packets[packet].ingress_port, packets[packet].wire_bytes);
                }
            }
            lose(port, packet, LINK_DOWN);
        }
    }
    if (has_priorities()) clear_priorities(port);
    if (out.is_host) kick(port);
}

// Whether the wire behind `port` has lost a packet that would arrive now.
template <bool is_full>
bool Engine<is_full>::is_lost_on_the_way(std::uint32_t port, std::uint32_t packet) {
    if (faults.has_been_cut(packet, port)) {
        lose(port, packet, LINK_DOWN);
        return true;
    }
    if (!faults.has_error(port, packets[packet].wire_bytes)) return false;
    lose(port, packet, BIT_ERROR);
    return true;
}

// Whether `port` takes a packet that has to leave through it.
template <bool is_full>
bool Engine<is_full>::has_way(std::uint32_t port, std::uint32_t packet) {
    if (port == NO_ROUTE) {
        lose(packets[packet].ingress_port, packet, NO_WAY);
    } else if (faults.health[port].is_down) {
        lose(port, packet, LINK_DOWN);
    } else {
        return true;
    }
    return false;
}

template <bool is_full>
void Engine<is_full>::lose(std::uint32_t port, std::uint32_t packet, DropCause cause) {
    faults.health[port].dropped[cause]++;
    drop(port, packet);
}

template <bool is_full>
void Engine<is_full>::on_reroute() {
    for (const std::uint32_t flow : epochs.begin_next()) {
        if (flow % 2 == 0 && sends(senders[flow / 2].port)) follow_path(flow / 2);
    }
    path_chooser.begin_set(epochs.current_set());
    if (epochs.next < epochs.times_ps.size()) schedule_clock(epochs.times_ps[epochs.next], REROUTE);
    if constexpr (SKIPS) {
        rejoin_all();
        search_all_anew();
    }
}

// Let a queue pair send through the NIC's port where its path begins now.
template <bool is_full>
void Engine<is_full>::follow_path(std::uint32_t qp) {
    Sender& sender = senders[qp];
    const std::uint32_t* hop = &path[epochs.path_of(2 * qp)];
    if (sender.port != *hop) {
        if (sender.state == SenderState::InRing) leave_ring(qp, sender);
        sender.port = *hop;
        resume(qp);
    }
    std::int32_t num_hops = 0;
    while (hop[num_hops] < NO_ROUTE) num_hops++;
    flow(qp).num_hops = num_hops;
}

template <bool is_full>
void Engine<is_full>::leave_ring(std::uint32_t qp, Sender& sender) {
    Ring& ring = ring_of(qp, sender);
    std::uint32_t before = NONE;
    for (std::uint32_t other = ring.head; other != qp; other = senders[other].ring_next) before = other;
    (before == NONE ? ring.head : senders[before].ring_next) = sender.ring_next;
    if (ring.tail == qp) ring.tail = before;
    if (has_priorities()) priorities.note_waiting(sender.port, priorities.queue_pair[qp]);
    sender.state = SenderState::Waiting;
}

}  // namespace netsim
