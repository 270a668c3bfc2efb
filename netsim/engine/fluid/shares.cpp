#include "shares.hpp"

#include <cmath>
#include <limits>

namespace netsim::fluid {

namespace {

// Acknowledgements are counted anew where what their flow sends is another by as much; no ratio of small numbers, at
// which two flows more or less would be on either side by rounding.
constexpr double LEAST_SLOWER = 0.71, LEAST_FASTER = 1.41;

}  // namespace

Shares::Shares(const Paths& paths, std::size_t most_uncrowded)
    : paths_(paths),
      most_uncrowded_(most_uncrowded),
      ports_(paths.num_ports()),
      shares_(paths.num_pairs()),
      next_(paths.num_pairs()),
      acknowledgements_(paths.num_pairs()),
      place_(paths.num_pairs() * paths.stride()),
      seen_(paths.num_pairs()),
      has_stopped_(paths.num_pairs()) {}

void Shares::add(std::uint32_t flow) {
    shares_[flow] = {};
    std::uint32_t hop = 0;
    for (const std::uint32_t port : paths_.data(flow)) {
        place_[flow * paths_.stride() + hop] = static_cast<std::uint32_t>(ports_[port].flows.size());
        ports_[port].flows.push_back({flow, hop++});
        note_change(port);
    }
    take_acknowledgements(flow, paths_.acknowledgement_rate(flow));
}

void Shares::remove(std::uint32_t flow) {
    std::uint32_t hop = 0;
    for (const std::uint32_t port : paths_.data(flow)) {
        leave(ports_[port], place_[flow * paths_.stride() + hop++]);
        note_change(port);
    }
    take_acknowledgements(flow, 0);
}

// The last of the port's flows takes the place of the one that leaves.
void Shares::leave(Port& port, std::uint32_t place) {
    const Member last = port.flows.back();
    port.flows.pop_back();
    if (place == port.flows.size()) return;
    port.flows[place] = last;
    place_[last.flow * paths_.stride() + last.hop] = place;
}

void Shares::take_acknowledgements(std::uint32_t flow, std::int64_t rate) {
    for (const std::uint32_t port : paths_.acknowledgements(flow)) {
        ports_[port].acknowledgements += rate - acknowledgements_[flow];
        note_change(port);
    }
    acknowledgements_[flow] = rate;
}

// Of the flows filled at this instant; true if some take another part now, so that ports have to be filled again.
bool Shares::count_acknowledgements() {
    for (const std::uint32_t flow : filled_) {
        const auto counted = static_cast<double>(acknowledgements_[flow]);
        const double rate = paths_.acknowledgements_of(flow, next_[flow].rate);
        if (rate < LEAST_SLOWER * counted || rate > LEAST_FASTER * counted) {
            take_acknowledgements(flow, std::llround(rate));
        }
    }
    return !changed_.empty();
}

void Shares::note_change(std::uint32_t port) {
    if (!ports_[port].flows.empty()) changed_.push_back(port);
}

// All flows that share ports with those of a port, and those that share ports with these.
void Shares::gather(std::uint32_t first_port) {
    group_++;
    flows_of_group_.clear();
    ports_of_group_.clear();
    reach(first_port);
    for (std::size_t place = 0; place < ports_of_group_.size(); place++) {
        for (const auto& [flow, _] : ports_[ports_of_group_[place]].flows) {
            if (seen_[flow] == group_) continue;
            seen_[flow] = group_;
            flows_of_group_.push_back(flow);
            for (const std::uint32_t port : paths_.data(flow)) reach(port);
        }
    }
}

void Shares::reach(std::uint32_t port) {
    if (ports_[port].seen == group_) return;
    ports_[port].seen = group_;
    ports_of_group_.push_back(port);
}

// Acknowledgements have no more than half of a port: where more is due to them, they are of flows that are held.
double Shares::capacity(std::uint32_t port) const {
    const double rate = paths_.rate(port);
    return rate - std::min(static_cast<double>(ports_[port].acknowledgements) * ACKNOWLEDGEMENT_UNIT, rate / 2);
}

// As topology/fairness_engine does: books hold counts and not sums over flows, so that their order does not matter.
void Shares::fill() {
    num_rising_ = flows_of_group_.size();
    const bool is_crowded = num_rising_ > most_uncrowded_;
    for (const std::uint32_t flow : flows_of_group_) {
        has_stopped_[flow] = false;
        next_[flow] = {.is_crowded = is_crowded};
    }
    for (const std::uint32_t number : ports_of_group_) {
        Port& port = ports_[number];
        port.num_rising = static_cast<std::uint32_t>(port.flows.size());
        port.stopped = 0;
        port.level = capacity(number) / port.num_rising;
        ports_by_level_.emplace(port.level, number);
    }
    while (num_rising_ > 0) {
        const double level = next_level();
        while (next_level() <= level) {
            const std::uint32_t port = ports_by_level_.top().second;
            ports_by_level_.pop();
            stop_at(port, level);
        }
        settle_level(level);
    }
    ports_by_level_ = {};
}

// Ports are looked at again only when they come first: a level rises with every flow that stops elsewhere.
double Shares::next_level() {
    while (!ports_by_level_.empty()) {
        const auto [level, number] = ports_by_level_.top();
        Port& port = ports_[number];
        if (port.num_rising > 0) {
            port.level = std::max(port.level, (capacity(number) - port.stopped) / port.num_rising);
            if (port.level == level) return level;
        }
        ports_by_level_.pop();
        if (port.num_rising > 0) ports_by_level_.emplace(port.level, number);
    }
    return std::numeric_limits<double>::infinity();
}

void Shares::stop_at(std::uint32_t full_port, double level) {
    const bool is_shared = ports_[full_port].flows.size() > 1;
    for (const auto& [flow, _] : ports_[full_port].flows) {
        next_[flow].is_held |= is_shared;
        if (has_stopped_[flow]) continue;
        has_stopped_[flow] = true;
        num_rising_--;
        next_[flow].rate = level;
        for (const std::uint32_t port : paths_.data(flow)) {
            if (ports_[port].num_stopping++ == 0) stopping_ports_.push_back(port);
        }
    }
}

void Shares::settle_level(double level) {
    for (const std::uint32_t number : stopping_ports_) {
        Port& port = ports_[number];
        port.stopped += port.num_stopping * level;
        port.num_rising -= port.num_stopping;
        port.num_stopping = 0;
    }
    stopping_ports_.clear();
}

}  // namespace netsim::fluid
