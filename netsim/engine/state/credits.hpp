// Receiver credits: what both ends of a queue pair know of them, and in what turn a NIC grants.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "packet.hpp"

namespace netsim {

// Bytes on the wire. Counts run on from the start, so that a later one makes up for those that were lost.
struct CreditedSender {
    std::int64_t window_bytes = 0;   // most credit at a time, and what there is at the start
    std::int64_t credit_bytes = 0;   // below 0 by less than a packet once it is used up
    std::int64_t granted_bytes = 0;  // count of what was granted, as far as is known
    std::int64_t target_bytes = 0;   // count up to which credit was asked for
    std::int64_t backlog_bytes = 0;  // of ready transfers: not on its way, and not known to have arrived
};

enum class GrantTurn : std::uint8_t { None, Wanting, Idle };

struct CreditedReceiver {
    std::int64_t granted_bytes = 0, target_bytes = 0;
    std::uint32_t previous = NONE, next = NONE;  // queue pairs in the same list of turns
    std::uint32_t port = NONE;                   // that leads to its NIC
    GrantTurn turn = GrantTurn::None;
};

// Queue pairs in turn, linked by CreditedReceiver.
class TurnList {
  public:
    bool empty() const { return head_ == NONE; }
    std::uint32_t front() const { return head_; }

    void push_back(std::vector<CreditedReceiver>& receivers, std::uint32_t qp) {
        receivers[qp].previous = tail_;
        receivers[qp].next = NONE;
        (tail_ == NONE ? head_ : receivers[tail_].next) = qp;
        tail_ = qp;
    }

    void remove(std::vector<CreditedReceiver>& receivers, std::uint32_t qp) {
        const std::uint32_t previous = receivers[qp].previous, next = receivers[qp].next;
        (previous == NONE ? head_ : receivers[previous].next) = next;
        (next == NONE ? tail_ : receivers[next].previous) = previous;
    }

  private:
    std::uint32_t head_ = NONE, tail_ = NONE;
};

// Grants of the NIC behind a port.
struct GrantPacer {
    std::int64_t rate_bps = 0;
    Picoseconds next_ps = 0;  // when the last grant has passed
    bool has_event = false;
    TurnList wanting{};
    TurnList idle{};  // want nothing, and have had less than a window more than they wanted
};

}  // namespace netsim
