// Counter-based random numbers: draw n of a stream is a function of (key, n), so streams never disturb one another.
// Source: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
#pragma once

#include <cstdint>

namespace netsim {

constexpr std::uint64_t mix64(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class RandomStream {
  public:
    RandomStream() = default;
    RandomStream(std::uint64_t key, std::uint64_t stream) : state_(mix64(key ^ mix64(stream + 1))) {}

    // Uniform in [0, 1), a multiple of 2**-53.
    double next_fraction() {
        state_ += 0x9e3779b97f4a7c15u;
        return static_cast<double>(mix64(state_) >> 11) * 0x1p-53;
    }

    // Uniform in 0 to `limit` - 1, for limits far below 2**53.
    std::uint64_t next_below(std::uint64_t limit) {
        return static_cast<std::uint64_t>(next_fraction() * static_cast<double>(limit));
    }

  private:
    std::uint64_t state_ = 0;
};

}  // namespace netsim
