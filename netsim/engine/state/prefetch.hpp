// Bringing memory nearer before it is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace netsim {

// Fetch the line of an element for writing. Any index will do, also one beyond the end: nothing is read, and the
// address is made of numbers, since a pointer may not leave its array.
template <typename T>
[[gnu::always_inline]] inline void prefetch(const T* first, std::size_t index) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(first) + index * sizeof(T)), 1);
}

}  // namespace netsim
