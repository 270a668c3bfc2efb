// The fluid of netsim/engine/fluid, for fabrictune.netsim.fluid.
#pragma once

#include <nanobind/nanobind.h>

namespace netsim {

void bind_fluid(nanobind::module_& module);

}  // namespace netsim
