// The settings and arrays of a run, from Python's mappings to the engine's Inputs.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "../state/simulation.hpp"

namespace netsim {

using ByName = nanobind::typed<nanobind::mapping, nanobind::str, nanobind::any>;

// Throws KeyError for a name that is missing, and TypeError for one that is unknown or has the wrong type.
std::unique_ptr<Simulation> make_simulation(const ByName& settings, const Law& law, const ByName& arrays);

// The next rows of a simulation's transfers; throws as `make_simulation` does.
void add_transfers(Simulation& simulation, const ByName& arrays);

}  // namespace netsim
