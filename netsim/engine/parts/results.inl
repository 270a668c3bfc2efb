// Results: what the parts of a run have come to, taken together in the first.
//
// Every record has one part that has kept it: a port's queue the part that sends through it, the buffer behind its wire
// the part that receives, a transfer's start the sending host's part and its end the receiving host's.
#include <algorithm>
#include <numeric>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
Engine<is_full>& Engine<is_full>::part_that_sends(std::uint32_t port) {
    if constexpr (PARTS) return *parts[part.crew->cut.part_of_port[port]];
    return *this;
}

template <bool is_full>
std::uint64_t Engine<is_full>::acknowledged_in_all() const {
    if constexpr (!PARTS) return acknowledged_bytes;
    std::uint64_t bytes = 0;
    for (const Engine* engine : parts) bytes += engine->acknowledged_bytes;
    return bytes;
}

// Let the first part have the sums that are read while a run goes on.
template <bool is_full>
void Engine<is_full>::add_up() {
    num_unqueued_events = static_cast<std::int64_t>(part.crew->num_clock_events);
    for (Engine* engine : parts) {
        if (engine == this) continue;
        num_unqueued_events += static_cast<std::int64_t>(engine->queue.num_events());
        acknowledged_bytes += std::exchange(engine->acknowledged_bytes, 0);
    }
}

template <bool is_full>
void Engine<is_full>::join_results() {
    for (Engine* engine : parts) engine->take_mail();
    for (std::uint32_t port = 0; port < ports.size(); port++) join_port(port);
    join_pairs();
    join_rows();
    join_lists();
    for (Engine* engine : parts) {
        if (engine != this) join_counts(*engine);
    }
    own_crew->is_joined = true;
    own_crew->others.clear();
    parts = {this};
}

template <bool is_full>
void Engine<is_full>::join_port(std::uint32_t port) {
    const std::vector<std::uint8_t>& part_of_port = part.crew->cut.part_of_port;
    Engine& sender = *parts[part_of_port[port]];
    Engine& receiver = *parts[part_of_port[port_stats[port].peer]];
    const std::int32_t ingress_bytes = receiver.ports[port].ingress_bytes;
    const bool pauses_sender = receiver.ports[port].pauses_sender;
    std::uint64_t dropped_packets = sender.port_stats[port].dropped_packets;
    if (&receiver != &sender) dropped_packets += receiver.port_stats[port].dropped_packets;
    if (&sender != this) {
        ports[port] = sender.ports[port];
        port_stats[port] = sender.port_stats[port];
        join_queue(ports[port].head[DATA], sender);
        join_queue(ports[port].head[CONTROL], sender);
    }
    ports[port].ingress_bytes = ingress_bytes;
    ports[port].pauses_sender = pauses_sender;
    port_stats[port].dropped_packets = dropped_packets;
    for (std::uint32_t cause = 0; faults.are_possible() && cause < NUM_CAUSES; cause++) {
        std::uint64_t dropped = sender.faults.health[port].dropped[cause];
        if (&receiver != &sender) dropped += receiver.faults.health[port].dropped[cause];
        faults.health[port].dropped[cause] = dropped;
    }
    for (std::uint32_t priority = 0; priority < priorities.size(); priority++) {
        join_priority(port, priority, sender, receiver);
    }
}

template <bool is_full>
void Engine<is_full>::join_priority(std::uint32_t port, std::uint32_t priority, Engine& sender, Engine& receiver) {
    const InputQueue input = receiver.priorities.input(port, priority);
    const std::uint64_t input_dropped = receiver.priorities.queue_stats(port, priority).input_dropped_packets;
    if (&sender != this) {
        priorities.output(port, priority) = sender.priorities.output(port, priority);
        priorities.queue_stats(port, priority) = sender.priorities.queue_stats(port, priority);
        if (!priorities.watchdogs.empty()) {
            priorities.watchdog(port, priority) = sender.priorities.watchdog(port, priority);
        }
        join_queue(priorities.output(port, priority).head, sender);
    }
    priorities.input(port, priority) = input;
    priorities.queue_stats(port, priority).input_dropped_packets = input_dropped;
}

// Take over the packets of a queue, of which `head` is the first in another part.
template <bool is_full>
void Engine<is_full>::join_queue(std::uint32_t& head, Engine& sender) {
    std::uint32_t before = NONE;
    for (std::uint32_t theirs = head; theirs != NONE;) {
        const Packet packet = sender.packets[theirs];
        sender.packets.release(theirs);
        const std::uint32_t ours = packets.allocate();
        packets[ours] = packet;
        (before == NONE ? head : packets[before].next) = ours;
        before = ours;
        theirs = packet.next;
    }
}

template <bool is_full>
void Engine<is_full>::join_pairs() {
    for (std::uint32_t qp = 0; qp < senders.size(); qp++) {
        Engine& sender = part_that_sends(senders[qp].port);
        if (&sender == this) continue;
        senders[qp] = sender.senders[qp];
        std::copy_n(&sender.flows[qp * flow_stride], flow_stride, &flows[qp * flow_stride]);
    }
}

template <bool is_full>
void Engine<is_full>::join_rows() {
    const Cut& cut = part.crew->cut;
    for (std::uint32_t row = 0; row < transfers.size(); row++) {
        const std::uint32_t qp = transfers[row].queue_pair;
        Engine& sender = *parts[cut.part_of_row[row]];
        const Engine& receiver = qp == NONE ? sender : *parts[cut.part_of_receiver[qp]];
        const Picoseconds finish_ps = receiver.transfers[row].finish_ps;
        if (&sender != this) {
            transfers[row] = sender.transfers[row];
            if (!round_trips.empty()) round_trips[row] = sender.round_trips[row];
        }
        transfers[row].finish_ps = finish_ps;
    }
}

template <bool is_full>
void Engine<is_full>::join_counts(Engine& other) {
    const auto add = [](PacketCounts& counts, const PacketCounts& more) {
        counts.sent += more.sent;
        counts.delivered += more.delivered;
        counts.dropped += more.dropped;
    };
    add(data_packets, other.data_packets);
    add(control_packets, other.control_packets);
    packets.add_live(other.packets.num_live(), other.packets.peak_live());
    num_refused += other.num_refused;
    num_out_of_order += other.num_out_of_order;
    num_trimmed += other.num_trimmed;
    num_captured += other.num_captured;
    num_unfinished += other.num_unfinished;
    num_open += other.num_open;
    num_transfer_events += other.num_transfer_events;
}

// Put what all parts have noted into the order in which one would have.
template <bool is_full>
template <typename Row>
void Engine<is_full>::join_list(std::vector<Row> RunState::* list, std::vector<EventIdentity> Part::* order,
                                std::size_t most_rows) {
    struct Noted {
        FarEvents::Event when;
        Row row;
    };
    std::vector<Noted> all;
    for (Engine* engine : parts) {
        const std::vector<Row>& rows = engine->*list;
        for (std::size_t i = 0; i < rows.size(); i++) {
            all.push_back({{rows[i].time_ps, (engine->part.*order)[i]}, rows[i]});
        }
    }
    std::ranges::stable_sort(all, {},
                             [](const Noted& noted) { return std::pair(noted.when.time_ps, noted.when.identity); });
    if (all.size() > most_rows) all.resize(most_rows);
    std::vector<Row>& rows = this->*list;
    rows.clear();
    for (const Noted& noted : all) rows.push_back(noted.row);
}

template <bool is_full>
void Engine<is_full>::join_lists() {
    join_list(&Simulation::failed_pairs, &Part::failure_order, failed_pairs.max_size());
    join_list(&Simulation::captured, &Part::capture_order, settings.max_captured);
}

}  // namespace netsim
