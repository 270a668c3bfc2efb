// A set of sequence numbers that lie close together: bits in a ring of words.
//
// All members lie within as many numbers as there are bits, so that a number's bit is its remainder. 128 bits stand in
// the object itself, more on the heap. The caller says how far apart lie the numbers it adds or asks for, before it
// does.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

namespace netsim {

class SequenceSet {
  public:
    SequenceSet() = default;
    SequenceSet(SequenceSet&&) noexcept = default;
    SequenceSet& operator=(SequenceSet&&) noexcept = default;
    SequenceSet(const SequenceSet& other) : num_bits_(other.num_bits_), size_(other.size_) {
        std::copy(other.own_, other.own_ + OWN_WORDS, own_);
        if (!other.more_) return;
        more_ = std::make_unique<std::uint64_t[]>(num_bits_ / WORD_BITS);
        std::copy(other.more_.get(), other.more_.get() + num_bits_ / WORD_BITS, more_.get());
    }

    bool empty() const { return size_ == 0; }
    bool contains(std::uint32_t sequence) const { return word(sequence) >> (sequence % WORD_BITS) & 1; }

    // Members, and what is added, erased or asked for from now on, lie from `first` on; the latter before `end` as
    // well.
    void make_room(std::uint32_t first, std::uint32_t end) {
        if (end - first > num_bits_) [[unlikely]]
            grow(first, end);
    }

    void insert(std::uint32_t sequence) {
        size_ += !contains(sequence);
        word(sequence) |= bit(sequence);
    }

    void erase(std::uint32_t sequence) {
        size_ -= contains(sequence);
        word(sequence) &= ~bit(sequence);
    }

    // The first member from `first` on, where all are; there must be one.
    std::uint32_t first_from(std::uint32_t first) const {
        std::uint64_t bits = word(first) >> (first % WORD_BITS);
        if (bits) return first + static_cast<std::uint32_t>(std::countr_zero(bits));
        std::uint32_t sequence = first - first % WORD_BITS;
        do sequence += WORD_BITS;
        while (!word(sequence));
        return sequence + static_cast<std::uint32_t>(std::countr_zero(word(sequence)));
    }

    // Which of the 64 numbers from `first` on are members, the first in the lowest bit; there must be room for them.
    std::uint64_t bits_from(std::uint32_t first) const {
        const std::uint32_t shift = first % WORD_BITS;
        return word(first) >> shift | (shift ? word(first + WORD_BITS) << (WORD_BITS - shift) : 0);
    }

  private:
    static constexpr std::uint32_t WORD_BITS = 64, OWN_WORDS = 2;

    static std::uint64_t bit(std::uint32_t sequence) { return 1ull << (sequence % WORD_BITS); }

    std::uint64_t& word(std::uint32_t sequence) {
        const std::uint32_t place = (sequence & (num_bits_ - 1)) / WORD_BITS;
        return num_bits_ == OWN_WORDS * WORD_BITS ? own_[place] : more_[place];
    }
    const std::uint64_t& word(std::uint32_t sequence) const { return const_cast<SequenceSet*>(this)->word(sequence); }

    void grow(std::uint32_t first, std::uint32_t end) {
        SequenceSet larger;
        larger.num_bits_ = std::bit_ceil(end - first);
        larger.more_ = std::make_unique<std::uint64_t[]>(larger.num_bits_ / WORD_BITS);
        for (std::uint32_t sequence = first; sequence != first + num_bits_; sequence++) {
            if (contains(sequence)) larger.insert(sequence);
        }
        *this = std::move(larger);
    }

    std::uint64_t own_[OWN_WORDS] = {};
    std::unique_ptr<std::uint64_t[]> more_;
    std::uint32_t num_bits_ = OWN_WORDS * WORD_BITS;  // a power of 2
    std::uint32_t size_ = 0;
};

}  // namespace netsim
