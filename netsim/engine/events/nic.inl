// The receiving side of a NIC: a buffer that is handed on no faster than the host takes it, and time to answer.
//
// What has arrived through a port waits in the NIC's buffer, counted as a switch counts what came through a port: the
// NIC pauses its switch before the buffer overflows, and drops what finds no room. Each packet handed on is answered
// after a delay, the answers of a queue pair in the order of its packets; the answer carries the time spent here.
// Source: Swift (SIGCOMM'20), 3.2, for the split of a round trip into fabric and endpoint.
// Left out: what a host reads and writes besides; delays of the sender's own host.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

// What of a data packet crosses PCIe.
template <bool is_full>
std::int64_t Engine<is_full>::payload_bytes_of(const Packet& packet) const {
    return std::max<std::int64_t>(0, packet.wire_bytes - settings.wire_overhead_bytes);
}

template <bool is_full>
void Engine<is_full>::receive_slowly(std::uint32_t packet_id) {
    make_room_for_answers();
    times_in_host_ps[packet_id] = now_ps;
    if (nics.empty() || nics[packets[packet_id].ingress_port].drain_rate_bps == 0) return see(packet_id);
    if (!(has_priorities() ? admit_to_nic(packet_id) : admit(packet_id))) return;
    const std::uint32_t port = packets[packet_id].ingress_port;
    NicBuffer& buffer = nics[port];
    packets[packet_id].next = NONE;
    if (buffer.head == NONE) {
        buffer.head = packet_id;
        hand_on_later(port, packet_id);
    } else {
        packets[buffer.tail].next = packet_id;
    }
    buffer.tail = packet_id;
}

template <bool is_full>
void Engine<is_full>::hand_on_later(std::uint32_t port, std::uint32_t packet_id) {
    const Packet& packet = packets[packet_id];
    Picoseconds done_ps = now_ps + serialization_ps(packet.wire_bytes, nics[port].drain_rate_bps);
    if (uses(USES_HOST_LINKS)) {
        done_ps = std::max(done_ps, host_links.write(port_stats[port].peer, payload_bytes_of(packet), now_ps));
    }
    nics[port].drained_ps = done_ps;
    queue.push(done_ps, identify(EventKind::Clock, DRAIN, port));
}

// The host has taken the first packet of the buffer behind a port.
template <bool is_full>
void Engine<is_full>::on_drain(std::uint32_t port) {
    const std::uint32_t packet_id = nics[port].head;
    nics[port].head = packets[packet_id].next;
    if (has_priorities()) {
        leave_nic(port, packets[packet_id]);
    } else {
        leave_buffer(port, packets[packet_id].wire_bytes);
    }
    if (nics[port].head != NONE) hand_on_later(port, nics[port].head);
    see(packet_id);
}

// Look at a data packet, and answer it in time.
template <bool is_full>
void Engine<is_full>::see(std::uint32_t packet_id) {
    const std::uint32_t qp = packets[packet_id].queue_pair;
    if (packets[packet_id].is_marked) note_mark(qp, receivers[qp]);
    if (endpoints.empty()) return answer(packet_id);
    Endpoint& endpoint = endpoints[qp];
    Picoseconds delay_ps = settings.endpoint_delay_ps;
    if (settings.endpoint_jitter_ps > 0) {
        delay_ps += static_cast<Picoseconds>(
            endpoint.random.next_below(static_cast<std::uint64_t>(settings.endpoint_jitter_ps)));
    }
    endpoint.answer_ps = std::max(now_ps + delay_ps, endpoint.answer_ps + 1);
    if constexpr (SKIPS) skip.replies[qp].add(now_ps, endpoint.answer_ps, packet_id);
    queue.push(endpoint.answer_ps, identify(EventKind::Reply, qp, packet_id));
}

template <bool is_full>
Picoseconds Engine<is_full>::endpoint_delay_ps(std::uint32_t acknowledgement) const {
    return takes_time() ? times_in_host_ps[acknowledgement] : 0;
}

template <bool is_full>
void Engine<is_full>::note_round_trip(std::uint32_t transfer, Picoseconds rtt_ps, Picoseconds endpoint_ps) {
    RoundTrips& sum = round_trips[transfer];
    sum.num++;
    sum.rtt_ps += rtt_ps;
    sum.endpoint_ps += endpoint_ps;
}

}  // namespace netsim
