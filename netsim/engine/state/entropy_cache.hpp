// Entropy values: what a sender puts into its packets, by which switches choose their path.
//
// A value stands for a path. At random, every packet has any value. REPS keeps the last values whose packets were
// acknowledged without a mark, and sends over the oldest of them, each once; where none is left, at random. After a
// timeout it sends over what it has kept, again and again, for a while, and then explores.
//
// Source: Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation"
// (arXiv 2407.21625), algorithm 1 and its cache of eight; exploring with 16 packets is the Ultra Ethernet Consortium's
// htsim model's.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "clock.hpp"
#include "random.hpp"

namespace netsim {

class EntropyCache {
  public:
    EntropyCache(std::uint64_t key, std::uint64_t queue_pair) : random_(key, queue_pair) {}

    // A packet with this value was acknowledged without a mark.
    void keep(std::uint16_t value, Picoseconds now_ps) {
        if (thaws_ps_ != NEVER && now_ps > thaws_ps_) {
            thaws_ps_ = NEVER;
            num_to_explore_ = NUM_EXPLORED;
        }
        num_fresh_ += num_fresh_ < SIZE;
        num_kept_ += num_kept_ < SIZE;
        values_[next_] = value;
        next_ = (next_ + 1) % SIZE;
    }

    // A path has failed: use what is known to work until `thaws_ps`.
    void freeze(Picoseconds thaws_ps) {
        if (thaws_ps_ == NEVER && num_to_explore_ == 0) thaws_ps_ = thaws_ps;
    }

    // The next packet's value, of so many.
    std::uint16_t next(std::uint32_t num_values) {
        const bool is_frozen = thaws_ps_ != NEVER;
        if (num_to_explore_ > 0 || num_kept_ == 0 || (num_fresh_ == 0 && !is_frozen)) {
            num_to_explore_ -= num_to_explore_ > 0;
            return static_cast<std::uint16_t>(random_.next_below(num_values));
        }
        if (num_fresh_ > 0) return values_[(next_ + SIZE - num_fresh_--) % SIZE];
        frozen_ = (frozen_ + 1) % num_kept_;
        return values_[frozen_];
    }

    // Tell a visitor of skip/ all that the next values follow from.
    template <typename Visitor>
    bool visit(Visitor& visitor) {
        for (const std::uint16_t value : values_) {
            if (!visitor.same(value)) return false;
        }
        return visitor.same(std::bit_cast<std::int64_t>(random_)) && visitor.instant(thaws_ps_, true) &&
               visitor.same(next_) && visitor.same(num_kept_) && visitor.same(num_fresh_) && visitor.same(frozen_) &&
               visitor.same(num_to_explore_);
    }

  private:
    static constexpr std::uint32_t SIZE = 8, NUM_EXPLORED = 16;

    RandomStream random_;
    Picoseconds thaws_ps_ = NEVER;  // NEVER: it is not frozen
    std::array<std::uint16_t, SIZE> values_{};
    std::uint32_t next_ = 0;       // place of the next value kept
    std::uint32_t num_kept_ = 0;   // values there are
    std::uint32_t num_fresh_ = 0;  // of these, not yet sent over again: the newest
    std::uint32_t frozen_ = 0;     // place of the value last used while frozen
    std::uint32_t num_to_explore_ = 0;
};

}  // namespace netsim
