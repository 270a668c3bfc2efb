// Three visitors of a component's state: one keeps it, one compares it with the kept one, one moves it by n periods.
//
// A walk tells each value once, in a fixed order, as one of
//   same     what must be equal
//   instant  a time that moves along, or lies behind in both states; where it may stand, one that holds the skip back
//   stamp    a time that lies behind and moves along, or no longer matters after `valid_ps`
//   anchor   a time that lies behind and moves along or stays
//   count    what grows by the same amount in every period
//   standing a time that must be equal
//   row      a transfer, and bound, where one ends in the sequence `base` is of: equal here, see rounds.hpp
// so that nothing can be compared and not moved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../state/clock.hpp"

namespace netsim {

inline constexpr Picoseconds ALWAYS_VALID = NEVER / 4;

struct Keeping {
    static constexpr bool MOVES_MESSAGES = false;
    std::vector<std::int64_t>& kept;
    bool keep(std::int64_t value) {
        kept.push_back(value);
        return true;
    }
    bool same(std::int64_t value) { return keep(value); }
    bool instant(Picoseconds value, bool) { return keep(value); }
    bool stamp(Picoseconds value, Picoseconds) { return keep(value); }
    bool anchor(Picoseconds value) { return keep(value); }
    bool standing(Picoseconds value) { return keep(value); }
    bool row(std::uint32_t value) { return keep(value); }
    bool bound(std::uint32_t value, std::int64_t) { return keep(value); }
    template <typename T>
    bool count(T value) {
        return keep(static_cast<std::int64_t>(value));
    }
};

struct Comparing {
    static constexpr bool MOVES_MESSAGES = false;
    const std::vector<std::int64_t>& kept;
    Picoseconds kept_ps, period_ps;
    Picoseconds until_ps = NEVER;  // where the first time comes that stands
    std::size_t place = 0;

    Picoseconds now_ps() const { return kept_ps + period_ps; }
    bool same(std::int64_t value) { return kept[place++] == value; }
    bool standing(Picoseconds value) { return same(value); }
    bool row(std::uint32_t value) { return same(value); }
    bool bound(std::uint32_t value, std::int64_t) { return same(value); }
    bool instant(Picoseconds value, bool may_stand) {
        const Picoseconds before = kept[place++];
        if (before == NEVER || value == NEVER) return before == value;
        if (value == before + period_ps || (before <= kept_ps && value <= now_ps())) return true;
        if (!may_stand || value != before || value <= now_ps()) return false;
        until_ps = std::min(until_ps, value);
        return true;
    }
    bool stamp(Picoseconds value, Picoseconds valid_ps) {
        const Picoseconds before = kept[place++];
        return value == before + period_ps || (before + valid_ps <= kept_ps && value + valid_ps <= now_ps());
    }
    bool anchor(Picoseconds value) {
        const Picoseconds before = kept[place++];
        return value == before || value == before + period_ps;
    }
    template <typename T>
    bool count(T) {
        place++;
        return true;
    }
};

struct Moving {
    static constexpr bool MOVES_MESSAGES = false;
    const std::vector<std::int64_t>& kept;
    Picoseconds period_ps;
    std::int64_t num_periods;
    std::size_t place = 0;

    bool same(std::int64_t) {
        place++;
        return true;
    }
    bool standing(Picoseconds value) { return same(value); }
    bool row(std::uint32_t value) { return same(value); }
    bool bound(std::uint32_t value, std::int64_t) { return same(value); }
    bool move(Picoseconds& value) {
        const Picoseconds before = kept[place++];
        if (before != NEVER && value == before + period_ps) value += num_periods * period_ps;
        return true;
    }
    bool instant(Picoseconds& value, bool) { return move(value); }
    bool stamp(Picoseconds& value, Picoseconds) { return move(value); }
    bool anchor(Picoseconds& value) { return move(value); }
    template <typename T>
    bool count(T& value) {
        value += static_cast<T>(num_periods * (static_cast<std::int64_t>(value) - kept[place++]));
        return true;
    }
};

}  // namespace netsim
