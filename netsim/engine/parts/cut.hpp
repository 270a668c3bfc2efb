// How a run is cut into parts: each node is in one, and what meets in no time is together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../state/simulation.hpp"

namespace netsim {

struct Cut {
    std::uint32_t num_parts = 1;
    std::vector<std::uint8_t> part_of_port;      // where its node sends
    std::vector<std::uint8_t> part_of_receiver;  // by queue pair
    std::vector<std::uint8_t> part_of_row;       // by transfer: where it starts
    std::string obstacle;                        // why there is one part only
};

// Cut a run that is about to start into so many parts at most, of about the same work, at the longest wires.
Cut make_cut(const Simulation& simulation, std::uint32_t most_parts);

// How long what happens in one part cannot matter in another.
Picoseconds lookahead_ps(const Simulation& simulation, const Cut& cut);

}  // namespace netsim
