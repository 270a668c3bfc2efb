// Sorts a few 64-bit keys without a branch the processor could mispredict.
// Source: Batcher's odd-even merge sort (1968) for 4, 8 and 16 keys.
#pragma once

#include <algorithm>
#include <cstdint>

namespace netsim {

namespace detail {

// By value: of std::min and std::max on references g++ 12 makes jumps, mispredicted once a hop.
inline void order(std::uint64_t& low, std::uint64_t& high) {
    const std::uint64_t a = low, b = high;
    low = a < b ? a : b;
    high = a < b ? b : a;
}

inline void pad(std::uint64_t* keys, std::uint32_t count, std::uint32_t width) {
    for (std::uint32_t i = count; i < width; i++) keys[i] = ~0ull;
}

inline void sort4(std::uint64_t* keys) {
    order(keys[0], keys[1]), order(keys[2], keys[3]);
    order(keys[0], keys[2]), order(keys[1], keys[3]);
    order(keys[1], keys[2]);
}

inline void sort8(std::uint64_t* keys) {
    sort4(keys), sort4(keys + 4);
    for (int i = 0; i < 4; i++) order(keys[i], keys[i + 4]);
    for (int i = 2; i < 4; i++) order(keys[i], keys[i + 2]);
    for (int i = 1; i < 7; i += 2) order(keys[i], keys[i + 1]);
}

inline void sort16(std::uint64_t* keys) {
    sort8(keys), sort8(keys + 8);
    for (int i = 0; i < 8; i++) order(keys[i], keys[i + 8]);
    for (int i = 4; i < 8; i++) order(keys[i], keys[i + 4]);
    for (int i : {2, 3, 6, 7, 10, 11}) order(keys[i], keys[i + 2]);
    for (int i = 1; i < 15; i += 2) order(keys[i], keys[i + 1]);
}

}  // namespace detail

inline constexpr std::uint32_t NETWORK_WIDTH = 16;  // `sort_keys` may write this far past the first key

inline void sort_keys(std::uint64_t* keys, std::uint32_t count) {
    if (count < 2) return;
    if (count == 2) return detail::order(keys[0], keys[1]);
    if (count <= 4) return detail::pad(keys, count, 4), detail::sort4(keys);
    if (count <= 8) return detail::pad(keys, count, 8), detail::sort8(keys);
    if (count <= 16) return detail::pad(keys, count, 16), detail::sort16(keys);
    std::sort(keys, keys + count);
}

}  // namespace netsim
