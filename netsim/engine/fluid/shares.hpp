// Max-min fair shares of flows that come and go: only those that meet what has changed are worked out anew.
//
// All flows of a group rise together until a port is full; those through it stop there, and the others rise on. What
// acknowledgements take of a port is taken from it first.
// Source: Bertsekas, Gallager, "Data Networks", 2nd edition (1992), section 6.5.2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "paths.hpp"

namespace netsim::fluid {

// A queue pair's share, in bytes on the wire a picosecond.
struct Share {
    double rate = 0;
    bool is_held = false;  // by a port that it fills together with others
};

class Shares {
  public:
    explicit Shares(const Paths& paths);

    // A flow begins to send, or ends. Its rate is known after the next `settle`.
    void add(std::uint32_t flow);
    void remove(std::uint32_t flow);
    bool are_settled() const { return changed_.empty(); }

    // Work out all groups in which something has changed; calls `visit(flows)` for each, before `shares` has the new
    // ones, and `change(flow, share)` for each flow whose share is another now.
    template <typename Visit, typename Change>
    void settle(Visit visit, Change change);

    const Share& of(std::uint32_t flow) const { return shares_[flow]; }

    // Whether a flow of the group that was filled last goes through a port that it fills together with others.
    bool is_held(std::uint32_t flow) const;

  private:
    struct Port {
        std::int64_t acknowledgements = 0;  // what they take of it, in ACKNOWLEDGEMENT_UNITs
        std::vector<std::uint32_t> flows;   // that send through it
        std::uint32_t seen = 0;             // the last group it was in

        // While its group is filled.
        double level = 0;    // where it is full, as last worked out; never falls
        double stopped = 0;  // the rates of flows that have stopped
        std::uint32_t num_rising = 0, num_stopping = 0;
        bool is_full = false;
    };

    void note_change(std::uint32_t port);
    void gather(std::uint32_t first_port);
    void reach(std::uint32_t port);
    void fill();
    double capacity(std::uint32_t port) const;
    double next_level();
    void stop_at(std::uint32_t port, double level);
    void settle_level(double level);

    const Paths& paths_;
    std::vector<Port> ports_;
    std::vector<Share> shares_, next_;  // by flow; the second is that of the group being filled
    std::vector<std::uint32_t> seen_;   // by flow
    std::vector<bool> has_stopped_;
    std::vector<std::uint32_t> changed_;  // ports
    std::uint32_t group_ = 0;             // number of the last one
    std::vector<std::uint32_t> flows_of_group_, ports_of_group_, stopping_ports_;
    using Entry = std::pair<double, std::uint32_t>;  // level, port
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ports_by_level_;
    std::size_t num_rising_ = 0;
};

template <typename Visit, typename Change>
void Shares::settle(Visit visit, Change change) {
    const std::uint32_t groups_before = group_;
    for (const std::uint32_t port : changed_) {
        if (ports_[port].flows.empty() || ports_[port].seen > groups_before) continue;
        gather(port);
        fill();
        visit(std::span<const std::uint32_t>(flows_of_group_));
        for (const std::uint32_t flow : flows_of_group_) {
            const Share share{next_[flow].rate, is_held(flow)};
            if (share.rate == shares_[flow].rate && share.is_held == shares_[flow].is_held) continue;
            change(flow, share);
            shares_[flow] = share;
        }
    }
    changed_.clear();
}

}  // namespace netsim::fluid
