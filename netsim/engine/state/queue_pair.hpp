// The two ends of a queue pair: the sender's window, pace and timers; the receiver's place in the sequence.
//
// Sequence numbers count packets and run on from transfer to transfer. `oldest_sequence` is the first packet not yet
// acknowledged, `next_sequence` the one to be sent next; a go-back-N rewind sets the second back to the first.
#pragma once

#include <cstdint>

#include "packet.hpp"

namespace netsim {

enum class SenderState : std::uint8_t {
    Waiting,  // for a transfer, the window, or a Pace event
    InRing,   // for its turn at the NIC
    Failed,   // out of retries
};

struct alignas(64) Sender {
    // What sending a packet touches.
    std::uint32_t port = NONE;       // the NIC's
    std::uint32_t ring_next = NONE;  // behind it in the NIC's ring
    std::uint32_t next_sequence = 0, oldest_sequence = 0;
    std::uint32_t highest_sequence = 0;                // everything below was sent at least once
    std::uint32_t end_sequence = 0;                    // after the last packet of the last ready transfer
    std::uint32_t message_begin = 0, message_end = 0;  // of the transfer being sent
    std::uint16_t last_payload_bytes = 0;              // of the transfer being sent
    std::uint16_t last_wire_bytes = 0;                 // of the packet last sent
    SenderState state = SenderState::Waiting;
    bool has_rewound : 1 = false;      // ever
    bool is_logged : 1 = false;        // see skip/log.inl
    bool gives_rounds : 1 = false;     // its messages are the beats of skip/rounds.inl
    std::uint16_t sends_to_beat = 0;   // see skip/search.inl; 0: its sends are none
    std::int64_t in_flight_bytes = 0;  // payload between oldest_sequence and next_sequence
    Picoseconds last_send_ps = LONG_AGO;
    Picoseconds gap_ps = 0;  // least time from the last packet to the next, at `rate_bps`

    // What acknowledgements and timers touch.
    alignas(64) double rate_bps = 0;  // for which gap_ps was computed
    Picoseconds pace_event_ps = NEVER;
    Picoseconds timer_event_ps = NEVER;
    Picoseconds timeout_ps = NEVER;
    Picoseconds rtt_ps = 0;                // last measured
    std::uint32_t sending = NONE;          // transfer of next_sequence
    std::uint32_t oldest = NONE;           // transfer of oldest_sequence
    std::uint32_t oldest_end = 0;          // its end
    std::uint32_t newest = NONE;           // last ready transfer
    std::uint32_t num_unacknowledged = 0;  // transfers, ready or not
    std::uint32_t num_timeouts = 0;        // since the last progress
};
static_assert(sizeof(Sender) == 128);

struct alignas(64) Receiver {
    Picoseconds cnp_allowed_ps = 0;
    std::uint32_t expected_sequence = 0;
    std::uint32_t transfer = NONE;  // of expected_sequence
    std::uint32_t message_end = 0;
    std::uint32_t num_unanswered = 0;  // packets since the last acknowledgement
    bool has_sent_nak = false;         // since the last packet in order
    bool has_mark = false;             // a packet since the last acknowledgement was marked
};

}  // namespace netsim
