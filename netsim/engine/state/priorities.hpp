// Priorities: for each of a port's, a queue before the wire and an account of the buffer behind it.
//
// They are numbered from 0 in ascending order, whatever numbers 802.1Q gives them. Nothing is allocated in runs
// without.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "inputs.hpp"
#include "packet.hpp"
#include "port.hpp"
#include "shared_buffer.hpp"

namespace netsim {

struct PriorityRule {
    std::int32_t weight;
    bool is_lossless;
    bool drops_early;  // what would be marked and is not ECN-capable
    double alpha;
    MarkingCurve marking;
};

struct OutputQueue {
    std::uint32_t head = NONE, tail = NONE;
    Ring ring;  // queue pairs that may send; hosts only
    std::int32_t queued_bytes = 0, max_queue_bytes = 0;
    std::int32_t balance_bytes = 0;  // what its weight lets it still send; overdrawn by a packet at most
    bool is_paused = false;
    bool is_storm = false;  // the watchdog has taken over
    BufferShare share;      // in the buffer, if lossy
    Picoseconds paused_since_ps = 0, pause_ends_ps = NEVER, paused_ps = 0;
    std::uint64_t tx_bytes = 0;
    std::uint32_t tx_packets = 0, marked_packets = 0, dropped_packets = 0;
    std::uint32_t num_pauses = 0, pause_frames_sent = 0, pause_frames_received = 0;
};

// What came through a port with one lossless priority and is still in the node behind the wire.
struct InputQueue {
    BufferShare share;
    std::int32_t headroom_bytes = 0, headroom_limit_bytes = 0, max_headroom_bytes = 0;
    std::int32_t resume_offset_bytes = 0;
    std::uint32_t dropped_packets = 0;
    bool pauses_sender = false;
    Picoseconds refresh_ps = NEVER;  // when the pause is sent again
};

// What watches over an output queue of a switch.
struct Watchdog {
    Picoseconds look_ps = NEVER;  // when a storm begins or may be over
    Picoseconds last_pause_ps = 0;
    std::uint32_t num_storms = 0;
};

class Priorities {
  public:
    explicit Priorities(const Inputs& inputs);

    std::uint32_t size() const { return static_cast<std::uint32_t>(rules.size()); }
    OutputQueue& output(std::uint32_t port, std::uint32_t priority) { return outputs[port * size() + priority]; }
    const OutputQueue& output(std::uint32_t port, std::uint32_t priority) const {
        return outputs[port * size() + priority];
    }
    InputQueue& input(std::uint32_t port, std::uint32_t priority) { return inputs[port * size() + priority]; }
    Watchdog& watchdog(std::uint32_t port, std::uint32_t priority) { return watchdogs[port * size() + priority]; }
    BufferPool& pool(std::uint32_t port) { return pools[node[port]]; }  // of the node that sends through it

    std::vector<PriorityRule> rules;       // C
    std::vector<OutputQueue> outputs;      // P x C
    std::vector<InputQueue> inputs;        // P x C
    std::vector<Watchdog> watchdogs;       // P x C, if there are any
    std::vector<std::uint32_t> turn;       // P: the priority whose weight is being served
    std::vector<std::uint32_t> node;       // P
    std::vector<BufferPool> pools;         // N
    std::vector<std::uint8_t> queue_pair;  // Q
    Picoseconds last_transmission_ps = 0;  // of any packet
    std::size_t num_pause_events = 0;      // pending, those of watchdogs apart
};

inline Priorities::Priorities(const Inputs& given)
    : node(given.priority_port_node.begin(), given.priority_port_node.end()),
      queue_pair(given.priority_queue_pair.begin(), given.priority_queue_pair.end()) {
    for (std::size_t priority = 0; priority < given.priority_weight.size(); priority++) {
        rules.push_back({
            .weight = static_cast<std::int32_t>(given.priority_weight[priority]),
            .is_lossless = given.priority_is_lossless[priority] != 0,
            .drops_early = given.priority_ecn_drops[priority] != 0,
            .alpha = given.priority_alpha[priority],
            .marking = {given.priority_ecn_min[priority], given.priority_ecn_max[priority],
                        given.priority_ecn_max_fraction[priority]},
        });
    }
    for (std::size_t place = 0; place < given.priority_shared_buffer.size(); place++) {
        pools.emplace_back(given.priority_shared_buffer[place], given.priority_headroom_pool[place]);
    }
    const std::size_t num_queues = node.size() * rules.size();
    outputs.resize(num_queues);
    inputs.resize(num_queues);
    turn.resize(node.size());
    if (given.settings.watchdog_detect_ps != NEVER) watchdogs.resize(num_queues);
    for (std::size_t place = 0; place < num_queues; place++) {
        const std::size_t priority = place % rules.size();
        outputs[place].share.reserve_bytes = static_cast<std::int32_t>(given.priority_output_reserve[priority]);
        inputs[place].share.reserve_bytes = static_cast<std::int32_t>(given.priority_input_reserve[place]);
        inputs[place].headroom_limit_bytes = static_cast<std::int32_t>(given.priority_input_headroom[place]);
        inputs[place].resume_offset_bytes = static_cast<std::int32_t>(given.priority_resume_offset[place]);
    }
}

}  // namespace netsim
