// A part of a run over several threads: what it sends the others, and what all know of one another.
//
// Each part has all state of a run, and handles what belongs to its nodes: their ports' queues and transmitters, their
// hosts' senders, and the receivers and buffers behind the wires that end there. The rest of its state lies idle.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "../state/simulation.hpp"
#include "barrier.hpp"
#include "cut.hpp"

namespace netsim {

// A packet on a wire that ends in another part.
struct PacketMail {
    Picoseconds arrives_ps;
    std::uint32_t port;
    Packet packet;
};

// What the full engine keeps beside a packet; its telemetry follows in Mailbox::hops.
struct PacketExtras {
    Picoseconds time_in_host_ps = 0;
    std::uint32_t expected_sequence = 0, num_downs = 0;
    std::int32_t num_hops = 0;
    std::uint16_t entropy = 0;
};

// A transfer that has become ready, for its receiver.
struct MessageMail {
    std::uint32_t row, end_sequence;
};

// From one part to another, written in one window and taken in the next.
struct Mailbox {
    std::vector<PacketMail> packets;
    std::vector<PacketExtras> extras;  // by packet, in the full engine
    std::vector<TelemetryRecord> hops;
    std::vector<FarEvents::Event> events;  // pause frames
    std::vector<MessageMail> messages;

    void clear() {
        packets.clear();
        extras.clear();
        hops.clear();
        events.clear();
        messages.clear();
    }
};

// What a part says of itself at the end of a window.
struct alignas(64) Report {
    FarEvents::Event next{NEVER, 0};  // not after its next event
    Picoseconds mail_ps = NEVER;      // the first instant of what it has sent to others
    std::uint64_t num_events = 0;
    bool sends_packets = false;
    bool is_quiet = false;  // no packet, and no transfer that could send one
    bool has_failed = false;
};

// What all parts do next. They come to it by the same reports, each for itself.
struct Step {
    enum Kind {
        Window,   // handle events up to an instant
        Clock,    // the same, and then the event of the kind Clock
        Rest,     // enough events for now
        End,      // no packet is left, nor a transfer that could send one
        Stall,    // no event is left
        Outcome,  // an event of the kind Clock has ended the run
        Failure,
    } kind;
    FarEvents::Event until{0, 0};

    bool goes_on() const { return kind == Window || kind == Clock; }
};

// What parts share.
struct Crew {
    Crew(Cut given, Picoseconds lookahead)
        : cut(std::move(given)), lookahead_ps(lookahead), barrier(cut.num_parts), mailboxes(cut.num_parts) {
        for (auto& reports_of_turn : reports) reports_of_turn.resize(cut.num_parts);
        for (auto& own : mailboxes) own = {Mailboxes(cut.num_parts), Mailboxes(cut.num_parts)};
    }

    Step next_step(std::uint32_t turn) const;

    using Mailboxes = std::vector<Mailbox>;  // by the part that takes

    const Cut cut;
    const Picoseconds lookahead_ps;
    Barrier barrier;
    std::vector<Report> reports[2];                   // of the last window and of this one, in turns; by part
    std::vector<std::array<Mailboxes, 2>> mailboxes;  // by the part that writes
    std::vector<std::unique_ptr<Simulation>> others;  // all parts but the first

    // Changed by the first part alone, while all others wait.
    FarEvents clocks;  // pending events of the kind Clock, but for those of one port
    std::uint64_t num_clock_events = 0;
    Picoseconds before_clock_ps = 0;  // when the event was that came before the last of these
    std::uint64_t stop_at = 0;        // number of events
    bool is_over = false;
    bool is_joined = false;  // the first part has the results of all
};

// What a part has for itself.
struct Part {
    std::uint32_t number = 0;
    std::uint32_t turn = 0;        // which of the mailboxes and reports are this window's
    FarEvents::Event last{-1, 0};  // the last event, with the highest identity that its instant has seen
    Picoseconds mail_ps = NEVER;   // see Report
    bool sends_packets = false;
    std::exception_ptr failure;
    std::vector<EventIdentity> failure_order, capture_order;  // of failed_pairs and captured, beside their times
    Crew* crew = nullptr;

    Mailbox& mailbox_to(std::uint32_t other) { return crew->mailboxes[number][turn][other]; }
    void note_mail(Picoseconds time_ps) { mail_ps = std::min(mail_ps, time_ps); }
};

}  // namespace netsim
