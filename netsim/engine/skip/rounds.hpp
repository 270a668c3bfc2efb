// Rounds: what is kept of a whole run at the start of a message, and the visitors that let messages move along.
//
// A round lies between two starts of messages of one queue pair after which the whole run has come to the same state,
// but for transfers: in place of each stands another, a fixed number of rows further. A ring's step is a round, and so
// is an iteration, however many components and collectives it has.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "component.hpp"
#include "visitors.hpp"

namespace netsim {

// By how many rows a transfer's place in the next round lies further.
using Strides = std::unordered_map<std::uint32_t, std::int64_t>;

// A transfer that its last dependency has set free, and when it is ready.
struct Release {
    std::uint32_t row;
    Picoseconds ready_ps;
};

struct Finish {
    std::uint32_t row;
    Picoseconds time_ps;
    std::size_t first_release;  // of those it made
};

struct KeptEvent {
    Picoseconds time_ps;
    EventIdentity identity;
    std::size_t place;  // of its packet's values, if it is an arrival
};

// A transfer that is ready and not acknowledged.
struct MessageUnderWay {
    std::uint32_t row, num_cnps;
    std::uint64_t num_retransmitted;
};

// What a run counts, and a round counts again.
struct Totals {
    PacketCounts data_packets, control_packets;
    std::uint64_t acknowledged_bytes, num_events;
    std::uint32_t num_unfinished;
};

struct Rounds {
    std::uint32_t reference = NONE;  // queue pair whose messages are the beats
    bool is_chosen = false;          // whether one was looked for
    std::vector<std::uint32_t> sample;
    Picoseconds beat_ps = NOT_YET;
    std::uint32_t num_beats = 0, deadline = 0;              // beat after which what is kept is given up
    std::unordered_map<std::uint64_t, std::uint32_t> seen;  // the last beat with a digest
    std::uint64_t digest = 0;                               // of the beat that is kept
    std::uint64_t num_spent = 0, num_skipped = 0;           // values visited; events

    bool is_kept = false;
    std::vector<std::int64_t> values;
    std::vector<KeptEvent> events;
    Totals totals{};
    std::vector<Finish> finishes;  // since
    std::vector<Release> releases;
    Component whole;  // of every queue pair: calls, draws and windows since

    // What the last comparison has found.
    Strides strides;
    std::vector<KeptEvent> moving, standing;  // events pending now
};

// What of a state is equal relative to its instant is told alike by equal states; standing times are left out.
struct Hashing {
    static constexpr bool MOVES_MESSAGES = true;
    Picoseconds now_ps;
    std::uint64_t digest = 0;

    bool same(std::int64_t value) {
        digest = (digest ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ull;
        digest ^= digest >> 29;
        return true;
    }
    bool standing(Picoseconds) { return true; }
    bool instant(Picoseconds value, bool may_stand) {
        if (may_stand || value == NEVER) return same(value == NEVER);
        return same(std::max<Picoseconds>(value - now_ps, 0));
    }
    bool stamp(Picoseconds value, Picoseconds valid_ps) {
        return same(value + valid_ps <= now_ps ? 1 : value - now_ps);
    }
    bool anchor(Picoseconds) { return true; }
    bool row(std::uint32_t) { return true; }
    bool bound(std::uint32_t value, std::int64_t base) { return same(base - value); }
    template <typename T>
    bool count(T) {
        return true;
    }
};

struct KeepingRound : Keeping {
    static constexpr bool MOVES_MESSAGES = true;
    bool bound(std::uint32_t value, std::int64_t base) { return keep(base - value) && keep(value); }
};

struct ComparingRound : Comparing {
    static constexpr bool MOVES_MESSAGES = true;
    Strides& strides;

    bool row(std::uint32_t value) {
        const std::int64_t before = kept[place++];
        if (before == NONE || value == NONE) return before == value;
        return before >= 0 && note_stride(static_cast<std::uint32_t>(before), value);
    }
    bool note_stride(std::uint32_t before, std::uint32_t after) {
        const std::int64_t stride = std::int64_t{after} - before;
        return strides.emplace(before, stride).first->second == stride;
    }
    bool bound(std::uint32_t value, std::int64_t base) { return same(base - value) && count(value); }
};

struct MovingRound : Moving {
    static constexpr bool MOVES_MESSAGES = true;
    const Strides& strides;

    bool row(std::uint32_t& value) {
        place++;
        if (value != NONE) value += static_cast<std::uint32_t>(num_periods * strides.at(value));
        return true;
    }
    bool bound(std::uint32_t& value, std::int64_t) { return same(0) && count(value); }
};

}  // namespace netsim
