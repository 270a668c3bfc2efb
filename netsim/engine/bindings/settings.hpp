// The numbers of a run.
#pragma once

#include <nanobind/nanobind.h>

namespace netsim {

void bind_settings(nanobind::module_& module);

}  // namespace netsim
