// The buffer of a switch: reserves, a part that all share by dynamic thresholds, and headroom for what pauses cannot
// stop any more.
//
// What a queue holds beyond its reserve may not exceed alpha times the bytes that are free; so n queues that want all
// they can get hold alpha / (1 + n * alpha) of the shared part each. With alpha 0 the reserve is a fixed limit.
// Source: Choudhury, Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 1998.
// Left out: cells; thresholds for a port or a switch as a whole.
#pragma once

#include <algorithm>
#include <cstdint>

namespace netsim {

// What one queue holds of a buffer, headroom apart.
struct BufferShare {
    std::int32_t bytes = 0;
    std::int32_t reserve_bytes = 0;

    std::int32_t beyond_reserve() const { return std::max(0, bytes - reserve_bytes); }
    std::int32_t reserve_left() const { return std::max(0, reserve_bytes - bytes); }
};

class BufferPool {
  public:
    BufferPool(std::int64_t shared_bytes, std::int64_t headroom_bytes)
        : shared_bytes_(shared_bytes), free_bytes_(shared_bytes), free_headroom_bytes_(headroom_bytes) {}

    // Bytes that a queue may still take; none where its threshold has fallen below what it holds.
    std::int64_t room(const BufferShare& share, double alpha) const {
        const auto threshold =
            share.reserve_bytes + static_cast<std::int64_t>(alpha * static_cast<double>(free_bytes_));
        return std::max<std::int64_t>(0, std::min(threshold - share.bytes, share.reserve_left() + free_bytes_));
    }

    void change(BufferShare& share, std::int32_t bytes) {
        free_bytes_ += share.beyond_reserve();
        share.bytes += bytes;
        free_bytes_ -= share.beyond_reserve();
    }

    // Take in a packet if there is room for all of it.
    bool take(BufferShare& share, double alpha, std::int32_t bytes) {
        if (bytes > room(share, alpha)) return false;
        change(share, bytes);
        return true;
    }

    bool is_shared() const { return shared_bytes_ > 0; }
    std::int64_t free_headroom_bytes() const { return free_headroom_bytes_; }
    void take_headroom(std::int32_t bytes) { free_headroom_bytes_ -= bytes; }

  private:
    std::int64_t shared_bytes_, free_bytes_, free_headroom_bytes_;
};

}  // namespace netsim
