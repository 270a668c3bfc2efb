// A queue in a ring of memory that doubles when it is full; nothing is allocated before the first value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace netsim {

template <typename T>
class RingBuffer {
    static constexpr std::uint32_t FIRST_CAPACITY = 16;

  public:
    static constexpr std::size_t FIRST_BYTES = FIRST_CAPACITY * sizeof(T);

    RingBuffer() = default;
    RingBuffer(RingBuffer&&) noexcept = default;
    RingBuffer& operator=(RingBuffer&&) noexcept = default;
    RingBuffer(const RingBuffer& other) {
        for (std::uint32_t place = 0; place < other.size_; place++) {
            push_back(other.values_[(other.head_ + place) & other.mask()]);
        }
    }

    bool empty() const { return size_ == 0; }
    std::uint32_t size() const { return size_; }
    const T& front() const { return values_[head_]; }
    T& operator[](std::uint32_t place) { return values_[(head_ + place) & mask()]; }  // from the front

    void push_back(const T& value) {
        if (size_ == capacity_) [[unlikely]]
            grow();
        values_[(head_ + size_++) & mask()] = value;
    }

    void pop_front() {
        head_ = (head_ + 1) & mask();
        size_--;
    }

  private:
    std::uint32_t mask() const { return capacity_ - 1; }

    void grow() {
        const std::uint32_t capacity = capacity_ ? 2 * capacity_ : FIRST_CAPACITY;
        auto values = std::make_unique<T[]>(capacity);
        for (std::uint32_t place = 0; place < size_; place++) values[place] = values_[(head_ + place) & mask()];
        values_ = std::move(values);
        capacity_ = capacity;
        head_ = 0;
    }

    std::unique_ptr<T[]> values_;
    std::uint32_t capacity_ = 0;  // a power of 2
    std::uint32_t head_ = 0, size_ = 0;
};

}  // namespace netsim
