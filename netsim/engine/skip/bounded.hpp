// Bounded skip: what is watched of queue pairs and components that do not repeat.
//
// See docs/decisions/0066-bounded-skip.md for what is stationary, what is moved, and where intervals come from.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "../state/packet.hpp"
#include "stationary.hpp"

namespace netsim {

// By how much something may come earlier or later.
struct Width {
    Picoseconds early_ps = 0, late_ps = 0;
};

inline Width wider(const Width& one, const Width& other) {
    return {std::max(one.early_ps, other.early_ps), std::max(one.late_ps, other.late_ps)};
}

// Windows of a queue pair since its group last changed, the last MOST_WINDOWS of them.
struct PairWindows {
    std::uint64_t group = 0;  // a signature of it
    std::array<double, MOST_WINDOWS> rates, in_flight, lengths_ps;
    std::uint32_t num_given = 0, num = 0;
    std::uint32_t num_fresh = 0;  // since the group was last this one
    bool is_settling = true;      // the first window is left out
    bool is_open = false;
    std::uint32_t from_sequence = 0;  // the oldest not acknowledged as the open window began
    MeanRate rate;

    std::uint32_t num_moved = 0;  // packets, in the span that is ending
    Width width;                  // of what it does

    void add(double packets_per_ps, double num_in_flight, double length_ps) {
        if (num_given == MOST_WINDOWS) {
            for (auto* series : {&rates, &in_flight, &lengths_ps}) {
                std::move(series->begin() + 1, series->end(), series->begin());
            }
            num_given--;
        }
        rates[num_given] = packets_per_ps;
        in_flight[num_given] = num_in_flight;
        lengths_ps[num_given++] = length_ps;
        num++;
        num_fresh++;
        rate = estimate_mean_rate(rates.data(), in_flight.data(), lengths_ps.data(), num_given, num);
    }
};

// What is remembered of a pair in a group.
struct RememberedWindows {
    std::array<double, MOST_WINDOWS> rates, in_flight, lengths_ps;
    std::uint32_t num_given, num;
    MeanRate rate;
};

// What an audit predicts of a queue pair.
struct Prediction {
    std::uint32_t queue_pair, from_sequence;
    MeanRate rate;
};

// What a component needs for windows and spans.
struct ComponentWindows {
    Picoseconds next_ps = NEVER;  // when the window ends, if there is one
    Picoseconds begin_ps = 0;
    bool has_changed = true;       // groups are to be made anew
    bool is_span = false;          // it sleeps at its mean rates
    Picoseconds audit_ps = NEVER;  // when the audit began, if there is one
    Picoseconds audit_end_ps = NEVER;
    double audited_factor = 0;  // of half-widths, when it began
    std::vector<Prediction> predictions;
};

// How far predictions were off, in parts of their half-widths: half-widths are multiplied by what has put 95 % of them
// inside, and are not known before there are enough.
// Source: Papadopoulos et al., "Inductive Confidence Machines for Regression", ECML 2002 (split conformal prediction).
class Calibration {
  public:
    static constexpr std::size_t FEWEST_ERRORS = 40, FEWEST_AUDITS = 4;

    void add(double error) { errors_.insert(std::upper_bound(errors_.begin(), errors_.end(), error), error); }
    void end_audit() { num_audits_++; }
    bool is_known() const { return errors_.size() >= FEWEST_ERRORS && num_audits_ >= FEWEST_AUDITS; }
    double factor() const {
        const auto num = static_cast<double>(errors_.size());
        const auto place = static_cast<std::size_t>(std::ceil(0.95 * (num + 1))) - 1;
        return std::max(errors_[std::min(place, errors_.size() - 1)], 1.0);
    }

  private:
    std::vector<double> errors_;  // sorted
    std::size_t num_audits_ = 0;
};

// All that bounded skip remembers of a run.
struct MeanRates {
    std::vector<PairWindows> pairs;
    std::vector<std::uint32_t> first_pair_of_port;  // scratch: NONE, or the first busy pair through it
    std::vector<std::uint32_t> group_of_place;      // scratch: union-find over a component's pairs
    std::vector<std::uint64_t> packets_of_port;     // scratch: moved
    Calibration calibration;
    std::unordered_map<std::uint64_t, RememberedWindows> remembered;  // by signature of group and pair
    std::uint64_t num_considered = 0;                                 // spans, audited ones included
    std::vector<Width> nvlink_out, nvlink_in;                         // by GPU
};

}  // namespace netsim
