// The port that each flow last took at each switch, for as long as that may still count.
//
// Open addressing with linear probing. When the table is half full it is made anew without the entries whose gap has
// passed, which a flow finds as good as absent; so it holds what was active within a gap and no more.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "random.hpp"

namespace netsim {

struct Flowlet {
    std::uint64_t visit = ~0ull;  // of a flow to a switch; all ones in a free place
    Picoseconds last_ps = LONG_AGO;
    std::uint32_t port = 0;
    std::uint32_t set = 0;  // of next hops from which it was taken
};

class FlowletTable {
  public:
    // The entry of a visit, made if it is not there. Valid until the next call.
    Flowlet& find(std::uint64_t visit, Picoseconds now_ps, Picoseconds gap_ps) {
        if (2 * num_used_ >= places_.size()) rebuild(now_ps - gap_ps);
        Flowlet& flowlet = place_of(visit);
        if (flowlet.visit != visit) {
            flowlet = {.visit = visit};
            num_used_++;
        }
        return flowlet;
    }

  private:
    static constexpr std::size_t LEAST_PLACES = 1 << 10;

    Flowlet& place_of(std::uint64_t visit) {
        const std::size_t mask = places_.size() - 1;
        std::size_t place = mix64(visit) & mask;
        while (places_[place].visit != ~0ull && places_[place].visit != visit) place = (place + 1) & mask;
        return places_[place];
    }

    // A free place was never used, so it has expired too.
    void rebuild(Picoseconds expired_ps) {
        std::vector<Flowlet> kept;
        for (const Flowlet& flowlet : places_) {
            if (flowlet.last_ps > expired_ps) kept.push_back(flowlet);
        }
        places_.assign(std::bit_ceil(std::max(LEAST_PLACES, 4 * kept.size())), {});
        for (const Flowlet& flowlet : kept) place_of(flowlet.visit) = flowlet;
        num_used_ = kept.size();
    }

    std::vector<Flowlet> places_;
    std::size_t num_used_ = 0;
};

}  // namespace netsim
