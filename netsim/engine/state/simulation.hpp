// One simulated run: its inputs, its state between events, and its results. The engine derived from it moves the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "credits.hpp"
#include "endpoint.hpp"
#include "entropy_cache.hpp"
#include "event_queue.hpp"
#include "faults.hpp"
#include "features.hpp"
#include "host_links.hpp"
#include "huge_pages.hpp"
#include "inputs.hpp"
#include "mean_rates.hpp"
#include "packet.hpp"
#include "path_choice.hpp"
#include "port.hpp"
#include "priorities.hpp"
#include "queue_pair.hpp"
#include "receive_queue.hpp"
#include "ring_buffer.hpp"
#include "selective_sender.hpp"
#include "transfer.hpp"

namespace netsim {

enum class Outcome { Running, Finished, Stalled, TimeLimit };

struct alignas(64) CacheLine {
    std::byte bytes[64];
};

struct PacketCounts {
    std::uint64_t sent = 0, delivered = 0, dropped = 0;
};

// A queue pair that ran out of retries.
struct FailedPair {
    Picoseconds time_ps;
    std::uint32_t queue_pair;
};

// Samples stand instant by instant, and within one in the order of the probed ports or queue pairs.
struct PortSample {
    Picoseconds paused_ps;  // so far
    std::uint64_t tx_bytes;
    std::int32_t queue_bytes;
    bool is_paused;
};

struct FlowSample {
    double rate_bps, cwnd_bytes;
    Picoseconds rtt_ps;
    std::int64_t in_flight_bytes;
    std::uint32_t acknowledged_packets;
};

struct CapturedPacket {
    Picoseconds time_ps;
    std::uint32_t queue_pair, sequence;
    std::uint32_t order;  // of the event in its instant; only kept with exact skip
    PacketType type;
    bool is_marked, is_last_hop;
    std::uint16_t entropy;
    std::uint32_t expected_sequence;
    ArrivalReport report;
    std::int64_t credit_bytes;
};

// All of a run that changes, which one engine may hand to another.
struct RunState {
    explicit RunState(const Inputs& inputs);

    Picoseconds now_ps = 0;
    Outcome outcome = Outcome::Running;
    EventQueue queue;
    PacketPool packets;
    Array<Port> ports;
    std::vector<std::uint32_t> port_node;  // that sends through each
    Array<PortStats> port_stats;
    Array<Sender> senders;
    Array<Receiver> receivers;
    Array<SelectiveSender> selective_senders;  // by queue pair, as the next; empty under go-back-N
    Array<SelectiveReceiver> selective_receivers;
    std::vector<CreditedSender> credited_senders;  // by queue pair, as the next; empty without receiver credits
    std::vector<CreditedReceiver> credited_receivers;
    std::vector<GrantPacer> grant_pacers;      // by port
    std::vector<std::int64_t> credit_counts;   // by packet: what it says of its queue pair's credit
    std::vector<ReceiveQueue> receive_queues;  // by queue pair, as the next; empty if receivers are always ready
    std::vector<RefusedSender> refused_senders;
    std::vector<NicBuffer> nics;                    // by port; empty if hosts take packets at once
    std::vector<Endpoint> endpoints;                // by queue pair; empty if answers take no time
    std::vector<RoundTrips> round_trips;            // by transfer; empty if packets are in no host for any time
    std::vector<std::uint32_t> expected_sequences;  // by packet, as the next: what answers carry of these, if at all
    std::vector<ArrivalReport> arrival_reports;
    std::vector<Picoseconds> times_in_host_ps;
    std::vector<Transfer> transfers;
    std::vector<ReadyRule> ready_rules;                            // by transfer; empty if none has a time of its own
    std::vector<Picoseconds> retransmission_waits;                 // by the number of timeouts since the last progress
    std::vector<RingBuffer<Picoseconds>> pending_notifications;    // by queue pair; empty if they take no time
    std::vector<std::uint32_t> dependency_row;                     // what each transfer waits for, until the start
    std::vector<std::uint32_t> dependent_offset, dependent_row;    // what waits for each, from the start to the end
    std::vector<std::uint32_t> nvlink_source, nvlink_destination;  // by transfer, NONE; empty if none takes NVLink
    std::vector<Picoseconds> nvlink_out_until_ps, nvlink_in_until_ps;  // by GPU: when its link is free
    std::vector<std::uint32_t> path;
    Epochs epochs;
    Faults faults;
    HostLinks host_links;
    PathChooser path_chooser;
    Priorities priorities;
    Array<CacheLine> flows;  // the law's records
    std::vector<std::uint32_t> probed_ports;
    std::vector<std::uint32_t> probed_flows;  // queue pairs
    std::vector<Picoseconds> sample_times_ps;
    std::vector<PortSample> port_samples;
    std::vector<FlowSample> flow_samples;
    std::uint64_t num_probes = 0;
    std::vector<std::string> not_skipped;    // what the run has that exact skip does not know
    std::string not_cut;                     // why the run does not take several threads; empty if it does
    std::uint32_t num_parts = 1;             // of the run, each handled by a thread of its own
    std::vector<std::uint8_t> part_of_port;  // where its node sends; empty if the run was not to be cut
    std::uint64_t num_skipped_events = 0;
    std::int64_t num_unqueued_events = 0;  // handled without the queue, less those it had twice; see skip/sleep.inl
    MeanRateResults at_mean_rates;
    std::vector<bool> captured_flows;  // by queue pair; empty if nothing is captured
    std::vector<CapturedPacket> captured;
    std::uint64_t num_captured = 0;  // with those that found no room
    bool has_all_samples = true;
    Trails trails;                             // if the law reads telemetry
    std::vector<EntropyCache> entropy_caches;  // by queue pair; empty if packets have no entropy
    std::vector<std::uint16_t> entropies;      // by packet, an answer's that of the packet answered

    std::vector<FailedPair> failed_pairs;

    PacketCounts data_packets, control_packets;
    std::uint64_t num_refused = 0;       // data packets for which the receiver was not ready, each time
    std::uint64_t num_out_of_order = 0;  // data packets that arrived before one sent earlier
    std::uint64_t num_trimmed = 0;       // data packets
    std::uint64_t num_grants = 0;
    std::uint64_t acknowledged_bytes = 0;
    std::uint32_t num_unfinished = 0;  // transfers
    std::uint32_t num_open = 0;        // transfers that are ready and not acknowledged, of queue pairs that work
    std::uint32_t num_transfer_events = 0;
};

class Simulation : public RunState {
  public:
    // `law.params` must outlive the simulation; everything else is copied. Then come all its transfers, in parts, and
    // `start`.
    static std::unique_ptr<Simulation> create(const Inputs& inputs);
    virtual ~Simulation() = default;
    Simulation& operator=(const Simulation&) = delete;

    void add_transfers(const TransferRows& rows);
    virtual void start();

    // Handle about `num_events` events. Throws LawFault.
    virtual Outcome advance(std::uint64_t num_events) = 0;

    // Bring what is being skipped up to now, so that results can be read before the end.
    virtual void settle() = 0;

    // Events handled, and those skipped; probes are no part of a run.
    std::uint64_t num_events() const {
        return queue.num_events() + static_cast<std::uint64_t>(num_unqueued_events) + num_skipped_events - num_probes;
    }

    // Time a port has been paused so far, the present pause included.
    Picoseconds paused_ps(std::uint32_t port) const {
        return port_stats[port].paused_ps + (ports[port].is_paused ? now_ps - port_stats[port].paused_since_ps : 0);
    }

    // Packets of a class that a port has sent.
    std::uint64_t tx_packets(std::size_t port, TrafficClass cls) const {
        const std::uint64_t carried = std::uint64_t{port_stats[port].tx_packet_carries[cls]} << 32;
        return carried + ports[port].tx_packets[cls] - settings.first_packet_count;
    }

    void set_tx_packets(std::size_t port, TrafficClass cls, std::uint64_t num_packets) {
        num_packets += settings.first_packet_count;
        ports[port].tx_packets[cls] = static_cast<std::uint32_t>(num_packets);
        port_stats[port].tx_packet_carries[cls] = static_cast<std::uint32_t>(num_packets >> 32);
    }

    const Settings settings;
    const Law law;
    const std::uint32_t features;   // of the full engine
    const std::size_t flow_stride;  // cache lines of a record

    bool has_started = false;   // and so has all its transfers
    bool is_advancing = false;  // in some thread; only read and written under the interpreter's lock

  protected:
    explicit Simulation(const Inputs& inputs);
    Simulation(const Simulation&) = default;
    Simulation(Simulation&&) = default;
    void push_when_ready(std::uint32_t row);
    std::vector<FarEvents::Event> first_clock_events() const;
    void forget_dependents();

  private:
    void add_ports(const Inputs& inputs);
    void add_queue_pairs(const Inputs& inputs);
    void turn_dependencies_round();
};

}  // namespace netsim
