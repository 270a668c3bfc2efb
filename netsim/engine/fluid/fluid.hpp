// A run at mean rates: every transfer sends at its max-min fair share, and what waits for it begins when it ends.
//
// Transfers are ready, wait their turn in their queue pair and cross NVLink as events/transfers.inl has it. A
// transfer's last byte arrives when it has been sent at its shares, and later by what packets take that a fluid does
// not: from port to port, one after another.
//
// Bounds: each transfer may be done as much earlier or later as what it waited for, as those that held it, and by a
// share of the time for which it was held itself; see `Widening`.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "../state/transfer.hpp"
#include "paths.hpp"
#include "shares.hpp"

namespace netsim::fluid {

// How much earlier or later than predicted a transfer may be done, in parts of the time for which others had a say in
// it. Those that are never held have factors of their own.
struct Widening {
    double early = 0, late = 0;
};

struct Settings {
    Wire wire;
    std::int64_t nvlink_rate_bps;
    Picoseconds time_limit_ps;
    std::uint32_t num_transfers;
    std::uint32_t most_uncrowded;  // flows of a group whose transfers end at any instant
};

// The next rows of all transfers; names and meanings are those of state/transfer_arrays.inl.
struct Rows {
    std::span<const std::int64_t> medium, qp, bytes, start, delay, num_dependencies, dependency_row, nvlink_source,
        nvlink_destination;
};

class Fluid {
  public:
    Fluid(Paths paths, const Settings& settings);
    Fluid(const Fluid&) = delete;

    void add_transfers(const Rows& rows);

    // Begin, or begin anew, with these bounds.
    void start(const Widening& alone, const Widening& held);

    // Handle so many events, or all there are; false if none is left.
    bool advance(std::uint64_t num_events);

    Picoseconds now_ps() const { return now_ps_; }
    std::uint64_t num_events() const { return num_events_; }
    std::int64_t finished_bytes() const { return finished_bytes_; }
    std::size_t num_transfers() const { return rows_.size(); }

    // Of a run's record; there are also `held_ps`, `latency_ps` and `uncertain_ps`.
    static std::vector<std::string> transfer_column_names();
    std::int64_t value(const std::string& column, std::size_t row) const;

  private:
    struct Row;

  public:
    static const std::size_t BYTES_PER_TRANSFER;

  private:
    struct Width {
        Picoseconds early_ps = 0, late_ps = 0;
        void widen(const Width& other);
    };
    struct Row {
        std::int64_t bytes;
        Picoseconds earliest_ps, delay_ps;
        Picoseconds ready_ps = NOT_YET, start_ps = NOT_YET, finish_ps = NOT_YET;
        Picoseconds low_ps, high_ps;  // of what it waits for, then of being ready, then of its end
        Picoseconds held_ps = 0;
        std::uint32_t qp;                                 // NONE: it crosses no fabric
        std::uint32_t num_dependencies, next = NONE;      // unfinished; of its queue pair
        std::uint32_t nvlink_source, nvlink_destination;  // NONE
    };
    struct Sender {
        std::uint32_t sending = NONE, last = NONE;
        double left_bytes = 0;  // on the wire, of the transfer that is being sent
        Picoseconds since_ps = 0;
        Picoseconds end_ps = NOT_YET;  // of sending it, at the present share
        Width width;
    };
    enum class Kind : std::uint32_t { Sent, SentInCrowd, Delivered, Crossed, Ready };  // in this order at one instant
    struct Event {
        Picoseconds time_ps;
        Kind kind;
        std::uint32_t id;
        auto operator<=>(const Event&) const = default;
    };

    void handle(const Event& event);
    void become_ready(std::uint32_t row);
    void cross_nvlink(std::uint32_t row);
    void append(std::uint32_t row);
    void begin(std::uint32_t qp);
    void end_sending(std::uint32_t qp);
    void finish(std::uint32_t row);
    void set_free(std::uint32_t row);
    void settle_shares();
    void widen_group(std::span<const std::uint32_t> flows);
    void progress(std::uint32_t qp);
    Picoseconds end_of_sending(std::uint32_t qp, const Share& share) const;
    void push(Picoseconds time_ps, Kind kind, std::uint32_t id);
    void expect_end(std::uint32_t qp, const Share& share);
    void end_crowd();
    Width width_of(const Row& row, Picoseconds at_ps) const;
    Picoseconds uncertain_ps(const Row& row, Picoseconds end_ps) const;
    Width width_of_sending(const Row& row, Picoseconds end_ps) const;
    void turn_dependencies_round();
    void forget_run();

    Paths paths_;
    Settings settings_;
    Widening alone_, held_;
    Shares shares_;
    std::vector<Row> rows_;
    std::vector<Sender> senders_;
    std::vector<std::uint32_t> dependency_row_;  // until the start
    std::vector<std::uint32_t> dependent_offset_, dependent_row_;
    struct Link {
        Picoseconds until_ps = 0;
        Width width;
    };
    std::vector<Link> nvlink_out_, nvlink_in_;  // by GPU
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::unordered_map<Picoseconds, std::vector<std::uint32_t>> crowd_ends_;  // queue pairs by when they may have sent
    Picoseconds now_ps_ = 0;
    std::uint64_t num_events_ = 0;
    std::int64_t finished_bytes_ = 0;
};

}  // namespace netsim::fluid
