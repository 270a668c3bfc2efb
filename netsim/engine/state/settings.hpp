// Numbers that hold for the whole run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock.hpp"

namespace netsim {

// See path_choice.hpp.
enum class PathRule : std::uint32_t { Hash, Random, RoundRobin, LeastQueue, Weighted, Quality, Entropy };

enum class CapturePoint : std::uint32_t { Sender, Receiver, Port };  // see events/capture.inl

// RED: nothing is marked up to `min_bytes` of queue, `max_fraction` just below `max_bytes`, everything from there on.
struct MarkingCurve {
    std::int64_t min_bytes = 0, max_bytes = 0;
    double max_fraction = 0;
};

// Loads up to `min` are in the first band, those from `max` on in the last.
struct LoadRange {
    std::int64_t min = 0, max = 1;
};

struct Settings {
#define SETTING(type, name) \
    type name {}
#include "settings.inl"
#undef SETTING
};

}  // namespace netsim
