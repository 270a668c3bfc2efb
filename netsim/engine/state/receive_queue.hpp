// A queue pair's posted receives, of which every message takes one: without one its packets are refused.
//
// The application posts a receive anew some time after a message that took one has ended, one after another.
// Source: InfiniBand Architecture Specification 1.4, 9.7.5.2.8 (RNR NAK), for messages that take a receive as they
// begin (sends). Left out: receives shared by queue pairs; writes with immediate data, which take one as they end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "clock.hpp"
#include "ring_buffer.hpp"

namespace netsim {

class ReceiveQueue {
  public:
    ReceiveQueue(std::uint32_t num_receives, Picoseconds replenish_ps)
        : num_posted_(num_receives), replenish_ps_(replenish_ps) {}

    // Whether there is a receive for the message that comes so many after the one expected.
    bool has_receive(std::uint32_t num_between, Picoseconds now_ps) {
        for (; !replenished_ps_.empty() && replenished_ps_.front() <= now_ps; replenished_ps_.pop_front())
            num_posted_++;
        return num_between < num_posted_;
    }

    void end_message(Picoseconds now_ps) {
        num_posted_--;
        busy_until_ps_ = std::max(busy_until_ps_, now_ps) + replenish_ps_;
        replenished_ps_.push_back(busy_until_ps_);
    }

  private:
    std::uint32_t num_posted_;  // from the message expected on
    Picoseconds replenish_ps_;
    Picoseconds busy_until_ps_ = 0;
    RingBuffer<Picoseconds> replenished_ps_;
};

// What a sender knows of its receiver's being not ready.
struct RefusedSender {
    Picoseconds until_ps = 0;        // it waits
    std::uint32_t num_refusals = 0;  // since the last progress
};

}  // namespace netsim
