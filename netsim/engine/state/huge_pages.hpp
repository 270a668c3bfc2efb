// Arrays in huge pages: what is accessed at random all over misses the processor's table of pages less often.
//
// A fabric of 1,024 hosts touches thousands of pages of 4 KiB in turn, more than processors remember. Memory that is
// large enough begins at a huge page, ends with one, and asks the system for them; where it has none nothing changes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace netsim {

template <typename T>
struct HugePages {
    using value_type = T;

    HugePages() = default;
    template <typename Other>
    HugePages(const HugePages<Other>&) {}

    T* allocate(std::size_t num_values) {
        const std::size_t bytes = num_values * sizeof(T);
        if (bytes < LEAST_BYTES) return static_cast<T*>(::operator new(bytes, ALIGNMENT));
        const std::size_t whole_bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        void* memory = std::aligned_alloc(PAGE_BYTES, whole_bytes);
        if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        madvise(memory, whole_bytes, MADV_HUGEPAGE);
#endif
        return static_cast<T*>(memory);
    }

    void deallocate(T* values, std::size_t num_values) {
        if (num_values * sizeof(T) < LEAST_BYTES) return ::operator delete(values, ALIGNMENT);
        std::free(values);
    }

    bool operator==(const HugePages&) const { return true; }

  private:
    static constexpr std::size_t LEAST_BYTES = 1 << 18, PAGE_BYTES = 1 << 21;
    static constexpr std::align_val_t ALIGNMENT{alignof(T) > alignof(std::max_align_t) ? alignof(T)
                                                                                       : alignof(std::max_align_t)};
};

template <typename T>
using Array = std::vector<T, HugePages<T>>;

}  // namespace netsim
