// Priorities: for each of a port's, a queue before the wire and an account of the buffer behind it.
//
// They are numbered from 0 in ascending order, whatever numbers 802.1Q gives them. Nothing is allocated in runs
// without. What every packet touches of a queue stands in one cache line, and which queues of a port may send in bits.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "inputs.hpp"
#include "packet.hpp"
#include "port.hpp"
#include "prefetch.hpp"
#include "shared_buffer.hpp"

namespace netsim {

struct PriorityRule {
    std::int32_t weight;
    bool is_lossless;
    bool drops_early;  // what would be marked and is not ECN-capable
    double alpha;
    MarkingCurve marking;
};

struct alignas(64) OutputQueue {
    std::uint32_t head = NONE, tail = NONE;
    Ring ring;  // queue pairs that may send; hosts only
    std::int32_t queued_bytes = 0, max_queue_bytes = 0;
    BufferShare share;               // in the buffer, if lossy
    std::int32_t balance_bytes = 0;  // what its weight lets it still send; overdrawn by a packet at most
    bool is_paused = false;
    bool is_storm = false;  // the watchdog has taken over
    std::uint64_t tx_bytes = 0, tx_packets = 0;
};
static_assert(sizeof(OutputQueue) == 64);

// What came through a port with one lossless priority and is still in the node behind the wire.
struct alignas(32) InputQueue {
    BufferShare share;
    std::int32_t headroom_bytes = 0, headroom_limit_bytes = 0, max_headroom_bytes = 0;
    std::int32_t resume_offset_bytes = 0;
    bool pauses_sender = false;
};
static_assert(sizeof(InputQueue) == 32);

// What only changes with marks, losses and pauses: of an output queue, and of the input queue behind its wire.
struct QueueStats {
    Picoseconds paused_since_ps = 0, pause_ends_ps = NEVER, paused_ps = 0;
    Picoseconds refresh_ps = NEVER;  // when the pause for the input queue is sent again
    std::uint64_t marked_packets = 0, dropped_packets = 0, input_dropped_packets = 0;
    std::uint64_t num_pauses = 0, pause_frames_sent = 0, pause_frames_received = 0;
};

// What watches over an output queue of a switch.
struct Watchdog {
    Picoseconds look_ps = NEVER;  // when a storm begins or may be over
    Picoseconds last_pause_ps = 0;
    std::uint32_t num_storms = 0;
};

// Which queues of a port may send, a bit for each priority.
struct PortPriorities {
    std::uint32_t node;        // that sends through the port
    std::uint8_t turn = 0;     // the priority whose weight is being served
    std::uint8_t waiting = 0;  // those with packets, or with queue pairs that may send
    std::uint8_t closed = 0;   // those that are paused, unless the watchdog sends on

    std::uint32_t sendable() const { return waiting & ~std::uint32_t{closed}; }
    bool is_sendable(std::uint32_t priority) const { return sendable() >> priority & 1; }
    bool is_open(std::uint32_t priority) const { return !(closed >> priority & 1); }
};

class Priorities {
  public:
    explicit Priorities(const Inputs& inputs);

    std::uint32_t size() const { return size_; }
    OutputQueue& output(std::uint32_t port, std::uint32_t priority) { return outputs[port * size_ + priority]; }
    const OutputQueue& output(std::uint32_t port, std::uint32_t priority) const {
        return outputs[port * size_ + priority];
    }
    InputQueue& input(std::uint32_t port, std::uint32_t priority) { return inputs[port * size_ + priority]; }
    QueueStats& queue_stats(std::uint32_t port, std::uint32_t priority) { return stats[port * size_ + priority]; }
    Watchdog& watchdog(std::uint32_t port, std::uint32_t priority) { return watchdogs[port * size_ + priority]; }
    BufferPool& pool(std::uint32_t port) { return pools[ports[port].node]; }  // of the node that sends through it

    // To be called when packets or queue pairs have come to a queue, or have left it.
    void note_waiting(std::uint32_t port, std::uint32_t priority) {
        const OutputQueue& queue = output(port, priority);
        set_bit(ports[port].waiting, priority, queue.head != NONE || queue.ring.head != NONE);
    }

    // To be called when a pause or a storm has begun or ended.
    void note_pause(std::uint32_t port, std::uint32_t priority) {
        const OutputQueue& queue = output(port, priority);
        set_bit(ports[port].closed, priority, queue.is_paused && !(queue.is_storm && storms_send_));
    }

    void prefetch(std::uint32_t port, std::uint32_t priority) const {
        netsim::prefetch(outputs.data(), port * size_ + priority);
    }
    void prefetch_input(std::uint32_t port, std::uint32_t priority) const {
        netsim::prefetch(inputs.data(), port * size_ + priority);
    }

    std::vector<PriorityRule> rules;       // C
    std::vector<OutputQueue> outputs;      // P x C
    std::vector<InputQueue> inputs;        // P x C
    std::vector<QueueStats> stats;         // P x C
    std::vector<Watchdog> watchdogs;       // P x C, if there are any
    std::vector<PortPriorities> ports;     // P
    std::vector<BufferPool> pools;         // N
    std::vector<std::uint8_t> queue_pair;  // Q
    std::uint32_t strict = 0;              // a bit for each strict priority
    Picoseconds last_transmission_ps = 0;  // of any packet
    std::size_t num_pause_events = 0;      // pending, those of watchdogs apart

  private:
    static void set_bit(std::uint8_t& bits, std::uint32_t place, bool value) {
        bits = static_cast<std::uint8_t>((bits & ~(1u << place)) | std::uint32_t{value} << place);
    }

    std::uint32_t size_;
    bool storms_send_;
};

inline Priorities::Priorities(const Inputs& given)
    : queue_pair(given.priority_queue_pair.begin(), given.priority_queue_pair.end()),
      size_(static_cast<std::uint32_t>(given.priority_weight.size())),
      storms_send_(!given.settings.watchdog_drops) {
    for (std::size_t priority = 0; priority < given.priority_weight.size(); priority++) {
        rules.push_back({
            .weight = static_cast<std::int32_t>(given.priority_weight[priority]),
            .is_lossless = given.priority_is_lossless[priority] != 0,
            .drops_early = given.priority_ecn_drops[priority] != 0,
            .alpha = given.priority_alpha[priority],
            .marking = {given.priority_ecn_min[priority], given.priority_ecn_max[priority],
                        given.priority_ecn_max_fraction[priority]},
        });
        strict |= std::uint32_t{rules[priority].weight == 0} << priority;
    }
    for (std::size_t place = 0; place < given.priority_shared_buffer.size(); place++) {
        pools.emplace_back(given.priority_shared_buffer[place], given.priority_headroom_pool[place]);
    }
    if (size_ == 0) return;
    for (const std::int64_t node : given.port_node) ports.push_back({static_cast<std::uint32_t>(node)});
    const std::size_t num_queues = ports.size() * rules.size();
    outputs.resize(num_queues);
    inputs.resize(num_queues);
    stats.resize(num_queues);
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
