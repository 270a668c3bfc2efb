// The arrays of a run, from Python to the engine's Inputs.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "../simulation.hpp"

namespace netsim {

// Throws KeyError if an array is missing and TypeError if one is not a contiguous column of its type.
std::unique_ptr<Simulation> make_simulation(const Settings& settings, const Law& law,
                                            const nanobind::dict& named_arrays, std::uint32_t path_stride,
                                            std::size_t flow_bytes);

}  // namespace netsim
