// Who waits for whom, at one instant: what each ingress buffer holds for each port, and which ports are held.
//
// netsim/deadlock.py tells from this whether pauses wait for one another in a ring. Only read, never part of a run.
#pragma once

#include <map>
#include <utility>

#include "simulation.hpp"

namespace netsim {

// A port is held if it is paused and the last it was told, perhaps still on its way, is no resume.
inline bool is_held(const Port& port) {
    return port.is_paused && port.pauses_sender;
}

// Data bytes by (port they came through, port they are queued at), of packets that another port has brought.
inline std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> waiting_bytes(Simulation& simulation) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> bytes;
    for (std::uint32_t port = 0; port < simulation.ports.size(); port++) {
        for (std::uint32_t id = simulation.ports[port].head[DATA]; id != NONE; id = simulation.packets[id].next) {
            const Packet& packet = simulation.packets[id];
            if (packet.ingress_port != NONE) bytes[{packet.ingress_port, port}] += packet.wire_bytes;
        }
    }
    return bytes;
}

}  // namespace netsim
