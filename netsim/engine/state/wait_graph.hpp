// Who waits for whom, at one instant: what each ingress buffer holds for each queue, and which queues are held.
//
// netsim/deadlock.py tells from this whether pauses wait for one another in a ring. Only read, never part of a run.
// A queue is a port's data queue, or one of its priorities: then it is numbered port * number of priorities + priority.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "simulation.hpp"

namespace netsim {

// A queue that is paused, and the last it was told, perhaps still on its way, is no resume.
struct Hold {
    std::uint32_t queue;
    std::int64_t resume_below_bytes;  // what its buffer may still hold when it is resumed; 0 for one of priorities
};

inline std::vector<Hold> holds(const Simulation& simulation) {
    std::vector<Hold> rows;
    const Priorities& priorities = simulation.priorities;
    for (std::uint32_t queue = 0; queue < priorities.outputs.size(); queue++) {
        const OutputQueue& output = priorities.outputs[queue];
        const InputQueue& input = priorities.inputs[queue];
        if (!output.is_paused || output.is_storm || !input.pauses_sender) continue;
        rows.push_back({queue, 0});
    }
    if (priorities.size() > 0) return rows;
    for (std::uint32_t port = 0; port < simulation.ports.size(); port++) {
        const bool is_held = simulation.ports[port].is_paused && simulation.ports[port].pauses_sender;
        if (is_held) rows.push_back({port, simulation.port_stats[port].resume_below_bytes});
    }
    return rows;
}

// Data bytes by (queue they came through, queue they are in), of packets that another port has brought.
inline std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> waiting_bytes(Simulation& simulation) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> bytes;
    const auto add = [&](std::uint32_t first, std::uint32_t port, std::uint32_t num_queues, std::uint32_t place) {
        for (std::uint32_t id = first; id != NONE; id = simulation.packets[id].next) {
            const Packet& packet = simulation.packets[id];
            if (packet.ingress_port == NONE) continue;
            bytes[{packet.ingress_port * num_queues + place, port * num_queues + place}] += packet.wire_bytes;
        }
    };
    const std::uint32_t num_priorities = simulation.priorities.size();
    for (std::uint32_t port = 0; port < simulation.ports.size(); port++) {
        add(simulation.ports[port].head[DATA], port, 1, 0);
        for (std::uint32_t priority = 0; priority < num_priorities; priority++) {
            add(simulation.priorities.output(port, priority).head, port, num_priorities, priority);
        }
    }
    return bytes;
}

}  // namespace netsim
