// What a congestion-control law needs of the engine: its handlers' addresses, the record's layout, its faults.
#pragma once

#include <nanobind/nanobind.h>

namespace netsim {

void bind_law(nanobind::module_& module);

}  // namespace netsim
