// The prediction of bounded skip, for Python to compare with its reference.
#pragma once

#include <nanobind/nanobind.h>

namespace netsim {

void bind_mean_rates(nanobind::module_& module);

}  // namespace netsim
