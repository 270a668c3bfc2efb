// Sorts 64-bit keys without a branch the processor could mispredict: up to 16 by a network, more by merging such parts.
// Source: Batcher's odd-even merge sort (1968) for 4, 8 and 16 keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace netsim {

inline constexpr std::uint32_t NETWORK_WIDTH = 16;

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

// Each part has the width of a network, the last one perhaps less.
inline void sort_parts(std::uint64_t* keys, std::uint32_t count) {
    const std::uint32_t end = (count + NETWORK_WIDTH - 1) / NETWORK_WIDTH * NETWORK_WIDTH;
    pad(keys + count, 0, end - count);
    for (std::uint32_t first = 0; first < end; first += NETWORK_WIDTH) sort16(keys + first);
}

// Merge [first, middle) and [middle, end) into `to`, from both sides at once: the two chains of loads do not wait for
// one another.
inline void merge(const std::uint64_t* first, const std::uint64_t* middle, const std::uint64_t* end,
                  std::uint64_t* to) {
    const std::uint64_t *low = first, *low_end = middle, *high = middle, *high_end = end;
    std::uint64_t* to_end = to + (end - first);
    for (;;) {
        std::ptrdiff_t steps = std::min(low_end - low, high_end - high) / 2;
        if (steps < 2) break;
        for (; steps > 0; steps--) {
            const std::uint64_t a = *low, b = *high, c = low_end[-1], d = high_end[-1];
            *to++ = a < b ? a : b;
            *--to_end = c < d ? d : c;
            low += a < b, high += !(a < b);
            high_end -= c < d, low_end -= !(c < d);
        }
    }
    std::merge(low, low_end, high, high_end, to);
}

inline void merge_parts(std::uint64_t* keys, std::uint32_t count, std::uint64_t* spare) {
    std::uint64_t *from = keys, *to = spare;
    for (std::uint32_t width = NETWORK_WIDTH; width < count; width *= 2) {
        for (std::uint32_t first = 0; first < count; first += 2 * width) {
            const std::uint32_t middle = std::min(first + width, count), end = std::min(first + 2 * width, count);
            merge(from + first, from + middle, from + end, to + first);
        }
        std::swap(from, to);
    }
    if (from != keys) std::copy(from, from + count, keys);
}

}  // namespace detail

// There is room for as many keys more as a network takes, behind the keys and in `spare`.
inline void sort_keys(std::uint64_t* keys, std::uint32_t count, std::uint64_t* spare) {
    if (count < 2) return;
    if (count == 2) return detail::order(keys[0], keys[1]);
    if (count <= 4) return detail::pad(keys, count, 4), detail::sort4(keys);
    if (count <= 8) return detail::pad(keys, count, 8), detail::sort8(keys);
    if (count <= 16) return detail::pad(keys, count, 16), detail::sort16(keys);
    detail::sort_parts(keys, count);
    detail::merge_parts(keys, count, spare);
}

}  // namespace netsim
