// Max-min fair shares of flows that come and go: only those that meet what has changed are worked out anew.
//
// All flows of a group rise together until a port is full; those through it stop there, and the others rise on. What
// acknowledgements take of a port is taken from it first: a part of what their flow sends, counted anew when that has
// changed by two fifths, so that lone flows keep what they take at their full rate and do not meet by them.
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
    bool is_held = false;     // by a port that it fills together with others
    bool is_crowded = false;  // one of many flows that share ports, or ports of those they share ports with

    bool operator==(const Share&) const = default;
};

class Shares {
  public:
    // Groups of more than `most_uncrowded` flows are crowds.
    Shares(const Paths& paths, std::size_t most_uncrowded);

    // A flow begins to send, or ends. Its rate is known after the next `settle`.
    void add(std::uint32_t flow);
    void remove(std::uint32_t flow);
    bool are_settled() const { return changed_.empty(); }

    // Work out all groups in which something has changed; calls `visit(flows)` for each, before `of` has the new
    // shares, and then `change(flow, share)` for each flow whose share is another now.
    template <typename Visit, typename Change>
    void settle(Visit visit, Change change);

    const Share& of(std::uint32_t flow) const { return shares_[flow]; }

    // Whether a flow of the group that was filled last goes through a port that it fills together with others.
    bool is_held(std::uint32_t flow) const { return next_[flow].is_held; }

  private:
    static constexpr int MOST_FILLINGS = 16;  // at one instant, should what acknowledgements take not settle before

    struct Member {
        std::uint32_t flow, hop;  // of its path
    };
    struct Port {
        std::int64_t acknowledgements = 0;  // what they take of it, in ACKNOWLEDGEMENT_UNITs
        std::vector<Member> flows;          // that send through it
        std::uint32_t seen = 0;             // the last group it was in

        // While its group is filled.
        double level = 0;    // where it is full, as last worked out; never falls
        double stopped = 0;  // the rates of flows that have stopped
        std::uint32_t num_rising = 0, num_stopping = 0;
    };

    void note_change(std::uint32_t port);
    void gather(std::uint32_t first_port);
    void reach(std::uint32_t port);
    void leave(Port& port, std::uint32_t place);
    void take_acknowledgements(std::uint32_t flow, std::int64_t rate);
    bool count_acknowledgements();
    void fill();
    double capacity(std::uint32_t port) const;
    double next_level();
    void stop_at(std::uint32_t port, double level);
    void settle_level(double level);

    const Paths& paths_;
    std::size_t most_uncrowded_;
    std::vector<Port> ports_;
    std::vector<Share> shares_, next_;            // by flow; the second is of the fillings of this instant
    std::vector<std::int64_t> acknowledgements_;  // by flow: what they take of each port, in ACKNOWLEDGEMENT_UNITs
    std::vector<std::uint32_t> place_;            // by flow and hop: where it is among the port's flows
    std::vector<std::uint32_t> seen_;             // by flow
    std::vector<bool> has_stopped_;
    std::vector<std::uint32_t> changed_, changing_;  // ports
    std::vector<std::uint32_t> filled_;              // flows of the fillings of this instant
    std::uint32_t group_ = 0;                        // number of the last one
    std::vector<std::uint32_t> flows_of_group_, ports_of_group_, stopping_ports_;
    using Entry = std::pair<double, std::uint32_t>;  // level, port
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ports_by_level_;
    std::size_t num_rising_ = 0;
};

template <typename Visit, typename Change>
void Shares::settle(Visit visit, Change change) {
    filled_.clear();
    int num_fillings = 0;
    do {
        const std::uint32_t groups_before = group_;
        changing_.swap(changed_);
        for (const std::uint32_t port : changing_) {
            if (ports_[port].flows.empty() || ports_[port].seen > groups_before) continue;
            gather(port);
            fill();
            visit(std::span<const std::uint32_t>(flows_of_group_));
            filled_.insert(filled_.end(), flows_of_group_.begin(), flows_of_group_.end());
        }
        changing_.clear();
    } while (++num_fillings < MOST_FILLINGS && count_acknowledgements());
    for (const std::uint32_t flow : filled_) {
        if (next_[flow] == shares_[flow]) continue;
        change(flow, next_[flow]);
        shares_[flow] = next_[flow];
    }
}

}  // namespace netsim::fluid
