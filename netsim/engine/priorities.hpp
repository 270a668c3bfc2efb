// Priorities: for each of a port's, a queue before the wire and an account of the buffer behind it.
//
// They are numbered from 0 in ascending order, whatever numbers 802.1Q gives them. Nothing is allocated in runs
// without.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"
#include "packet.hpp"
#include "port.hpp"
#include "shared_buffer.hpp"

namespace netsim {

// Shapes: C priorities, P ports, N nodes, Q queue pairs. Empty where ports have data and control only.
struct PriorityColumns {
    std::span<const std::int64_t> weight;          // C: of what strict priorities leave; 0: strict
    std::span<const std::int64_t> is_lossless;     // C
    std::span<const double> alpha;                 // C
    std::span<const std::int64_t> ecn_min;         // C: bytes
    std::span<const std::int64_t> ecn_max;         // C: bytes
    std::span<const double> ecn_max_fraction;      // C
    std::span<const std::int64_t> output_reserve;  // C: bytes of each queue, if lossy
    std::span<const std::int64_t> input_reserve;   // P x C: bytes behind the port, if lossless
    std::span<const std::int64_t> input_headroom;  // P x C
    std::span<const std::int64_t> resume_offset;   // P x C
    std::span<const std::int64_t> port_node;       // P: the node that sends through it
    std::span<const std::int64_t> shared_buffer;   // N: bytes
    std::span<const std::int64_t> headroom_pool;   // N: bytes
    std::span<const std::int64_t> queue_pair;      // Q: priority of its data
};

struct PriorityRule {
    std::int32_t weight;
    bool is_lossless;
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
    Priorities(const PriorityColumns& columns, bool has_watchdog);

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

inline Priorities::Priorities(const PriorityColumns& columns, bool has_watchdog)
    : node(columns.port_node.begin(), columns.port_node.end()),
      queue_pair(columns.queue_pair.begin(), columns.queue_pair.end()) {
    for (std::size_t priority = 0; priority < columns.weight.size(); priority++) {
        rules.push_back({
            .weight = static_cast<std::int32_t>(columns.weight[priority]),
            .is_lossless = columns.is_lossless[priority] != 0,
            .alpha = columns.alpha[priority],
            .marking = {columns.ecn_min[priority], columns.ecn_max[priority], columns.ecn_max_fraction[priority]},
        });
    }
    for (std::size_t place = 0; place < columns.shared_buffer.size(); place++) {
        pools.emplace_back(columns.shared_buffer[place], columns.headroom_pool[place]);
    }
    const std::size_t num_queues = node.size() * rules.size();
    outputs.resize(num_queues);
    inputs.resize(num_queues);
    turn.resize(node.size());
    if (has_watchdog) watchdogs.resize(num_queues);
    for (std::size_t place = 0; place < num_queues; place++) {
        const std::size_t priority = place % rules.size();
        outputs[place].share.reserve_bytes = static_cast<std::int32_t>(columns.output_reserve[priority]);
        inputs[place].share.reserve_bytes = static_cast<std::int32_t>(columns.input_reserve[place]);
        inputs[place].headroom_limit_bytes = static_cast<std::int32_t>(columns.input_headroom[place]);
        inputs[place].resume_offset_bytes = static_cast<std::int32_t>(columns.resume_offset[place]);
    }
}

}  // namespace netsim
