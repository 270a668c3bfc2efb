// Faults: what ails each port now, what changes when, and which paths are in force.
//
// Names, intervals and the routes around a fault are worked out in Python (netsim/faults, topology); here is only a
// list of changes in the order of time. Nothing of it is allocated in a run without faults.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "inputs.hpp"
#include "packet.hpp"
#include "random.hpp"

namespace netsim {

enum class Effect : std::int64_t { Down, Loss, ByteErrors, Rate };  // as in netsim/faults/timeline.py

enum DropCause : std::uint32_t { LINK_DOWN, NO_WAY, BIT_ERROR, NUM_CAUSES };

struct PortHealth {
    bool is_down = false;
    std::uint32_t num_downs = 0;  // so far; what was sent before the last one is lost
    double loss_fraction = 0;
    double byte_arrives = 1;  // chance that a byte has no bit in error
    RandomStream random;
    std::uint64_t dropped[NUM_CAUSES] = {};
};

struct Change {
    Picoseconds time_ps;
    Effect effect;
    std::uint32_t port;
    double value;
};

// How much was acknowledged by the time something changed.
struct Milestone {
    Picoseconds time_ps;
    std::uint64_t acknowledged_bytes;
};

class Faults {
  public:
    explicit Faults(const Inputs& inputs) : health(inputs.can_go_wrong() ? inputs.port_rate_bps.size() : 0) {
        for (std::size_t row = 0; row < inputs.fault_time.size(); row++) {
            changes.push_back({inputs.fault_time[row], static_cast<Effect>(inputs.fault_effect[row]),
                               static_cast<std::uint32_t>(inputs.fault_port[row]), inputs.fault_value[row]});
        }
        for (std::size_t port = 0; port < health.size(); port++) {
            health[port].random = RandomStream(inputs.settings.fault_key, port);
        }
    }

    bool are_possible() const { return !health.empty(); }

    // Remember with a packet how often its wire has been down. What is put on a dead one never arrives.
    void note_departure(std::uint32_t packet, std::uint32_t port) {
        set_departure(packet, health[port].num_downs - health[port].is_down);
    }

    std::uint32_t departure(std::uint32_t packet) const { return num_downs_at_departure_[packet]; }

    void set_departure(std::uint32_t packet, std::uint32_t num_downs) {
        if (packet >= num_downs_at_departure_.size()) num_downs_at_departure_.resize(2 * std::size_t{packet} + 64);
        num_downs_at_departure_[packet] = num_downs;
    }

    bool has_been_cut(std::uint32_t packet, std::uint32_t port) const {
        return num_downs_at_departure_[packet] != health[port].num_downs;
    }

    // Draws only where there are errors, from the port's own stream.
    bool has_error(std::uint32_t port, std::uint32_t wire_bytes) {
        PortHealth& own = health[port];
        if (own.loss_fraction > 0 && own.random.next_fraction() < own.loss_fraction) return true;
        return own.byte_arrives < 1 && own.random.next_fraction() >= power(own.byte_arrives, wire_bytes);
    }

    std::vector<Change> changes;  // by time
    std::size_t next_change = 0;
    std::vector<PortHealth> health;  // by port; empty where nothing can go wrong
    std::vector<Milestone> milestones;

  private:
    // By products alone, which are the same on every machine.
    static double power(double base, std::uint32_t exponent) {
        double result = 1;
        for (; exponent > 0; exponent /= 2, base *= base) {
            if (exponent % 2 == 1) result *= base;
        }
        return result;
    }

    std::vector<std::uint32_t> num_downs_at_departure_;  // by packet
};

// The paths in force, one of several sets.
class Epochs {
  public:
    explicit Epochs(const Inputs& inputs)
        : times_ps(inputs.epoch_time.begin(), inputs.epoch_time.end()),
          set_(inputs.epoch_set.begin(), inputs.epoch_set.end()),
          offset_(inputs.path_set_offset.begin(), inputs.path_set_offset.end()),
          flow_(inputs.path_set_flow.begin(), inputs.path_set_flow.end()),
          position_(inputs.path_set_position.begin(), inputs.path_set_position.end()),
          path_stride_(inputs.settings.path_stride) {
        if (times_ps.empty()) return;
        path_of_.resize(inputs.num_flows());
        for (std::uint32_t flow = 0; flow < path_of_.size(); flow++) path_of_[flow] = flow * path_stride_;
    }

    // Where the path of a flow begins.
    std::uint32_t path_of(std::uint32_t flow) const { return path_of_.empty() ? flow * path_stride_ : path_of_[flow]; }

    // Put the next epoch's paths in force; returns the flows that may have changed theirs.
    std::vector<std::uint32_t> begin_next() {
        std::vector<std::uint32_t> changed;
        for (std::uint32_t row = offset_[current_]; row < offset_[current_ + 1]; row++) {
            path_of_[flow_[row]] = flow_[row] * path_stride_;
            changed.push_back(flow_[row]);
        }
        current_ = static_cast<std::size_t>(set_[next++]);
        for (std::uint32_t row = offset_[current_]; row < offset_[current_ + 1]; row++) {
            path_of_[flow_[row]] = position_[row];
            changed.push_back(flow_[row]);
        }
        return changed;
    }

    std::size_t current_set() const { return current_; }

    std::vector<Picoseconds> times_ps;
    std::size_t next = 0;

  private:
    std::vector<std::int64_t> set_;
    std::vector<std::uint32_t> offset_, flow_, position_;
    std::uint32_t path_stride_;
    std::size_t current_ = 0;
    std::vector<std::uint32_t> path_of_;  // by flow; empty with one epoch
};

}  // namespace netsim
