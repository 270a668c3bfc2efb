// Transfers: when transfers become ready, and what their ends set free.
//
// A transfer is ready `delay_ps` after the later of its start and the end of its last dependency, and ends when its
// last byte is at its destination. The transfers of a queue pair leave in the order they became ready, ties by row.
// NVLink: each GPU's link out carries its transfers one after another, in the order in which they became ready, and so
// does each GPU's link in; a transfer ends when both have carried it. One whose data leave through the NIC of another
// GPU crosses NVLink to it first, and is its queue pair's to send after that. Left out: NVSwitches, which add no time.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::on_transfer(std::uint32_t row, bool is_end) {
    num_transfer_events--;
    Transfer& transfer = transfers[row];
    const bool crosses_fabric = transfer.queue_pair != NONE;
    if (!is_end) {
        transfer.ready_ps = now_ps;
        if constexpr (SKIPS) note_ready(row);
        transfer.next = NONE;  // in place of its dependencies
        if (!crosses_fabric) transfer.start_ps = now_ps;
        const bool takes_nvlink = !nvlink_source.empty() && nvlink_source[row] != NONE;
        if (takes_nvlink) {
            const Picoseconds end_ps = cross_nvlink(nvlink_source[row], nvlink_destination[row], transfer.bytes);
            return schedule_transfer(end_ps, row, true);
        }
    }
    crosses_fabric ? append_to_queue_pair(row) : complete(row);
}

// When a transfer has crossed from one GPU to another that is ready now.
template <bool is_full>
Picoseconds Engine<is_full>::cross_nvlink(std::uint32_t source, std::uint32_t destination, std::int64_t bytes) {
    const Picoseconds duration_ps = transfer_ps(bytes, settings.nvlink_rate_bps);
    Picoseconds& out_ps = nvlink_out_until_ps[source];
    Picoseconds& in_ps = nvlink_in_until_ps[destination];
    out_ps = std::max(out_ps, now_ps) + duration_ps;
    in_ps = std::max(in_ps, now_ps) + duration_ps;
    return std::max(out_ps, in_ps);
}

template <bool is_full>
void Engine<is_full>::append_to_queue_pair(std::uint32_t row) {
    Transfer& transfer = transfers[row];
    Sender& sender = senders[transfer.queue_pair];
    if (sender.state == SenderState::Failed) return;
    if constexpr (SKIPS) {
        join_component(transfer.queue_pair);
        note_append(row);
    }
    const std::uint32_t first_sequence = sender.end_sequence;
    transfer.end_sequence = first_sequence + transfer.num_packets(settings.mtu_bytes);
    sender.end_sequence = transfer.end_sequence;
    num_open++;
    if constexpr (is_full) {
        if (has_credits()) add_backlog(transfer.queue_pair, transfer);
    }
    const bool is_first = sender.newest == NONE;
    if (!is_first) transfers[sender.newest].next = row;
    sender.newest = row;
    if (sender.next_sequence == first_sequence) enter_transfer(sender, row);
    if (sender.oldest_sequence == first_sequence) {
        sender.oldest = row;
        sender.oldest_end = transfer.end_sequence;
    }
    if (receives(transfer.queue_pair)) {
        expect_message(receivers[transfer.queue_pair], row);
    } else if constexpr (PARTS) {
        mail_message(row);
    }
    if (is_first) notify_law(ON_START, law.on_start, transfer.queue_pair);
    resume(transfer.queue_pair);
}

// A message that has become ready, behind those before.
template <bool is_full>
inline void Engine<is_full>::expect_message(Receiver& receiver, std::uint32_t row) {
    if (receiver.expected_sequence != transfers[row].first_sequence(settings.mtu_bytes)) return;
    receiver.transfer = row;
    receiver.message_end = transfers[row].end_sequence;
}

// End a transfer that crossed no fabric.
template <bool is_full>
void Engine<is_full>::complete(std::uint32_t row) {
    transfers[row].acknowledged_ps = now_ps;
    acknowledged_bytes += static_cast<std::uint64_t>(transfers[row].bytes);
    num_unfinished--;
    finish(row);
}

template <bool is_full>
void Engine<is_full>::finish(std::uint32_t row) {
    transfers[row].finish_ps = now_ps;
    if constexpr (SKIPS) {
        log_finish(row);
        note_finish(row);
    }
    for (std::uint32_t i = dependent_offset[row]; i < dependent_offset[row + 1]; i++) {
        Transfer& dependent = transfers[dependent_row[i]];
        if (--dependent.num_dependencies > 0) continue;
        const std::uint32_t waiting = dependent_row[i];
        const ReadyRule rule = ready_rules.empty() ? ReadyRule{} : ready_rules[waiting];
        const Picoseconds ready_ps = std::max(now_ps, rule.earliest_ps) + rule.delay_ps;
        if constexpr (SKIPS) log_release(waiting, ready_ps);
        schedule_transfer(ready_ps, waiting, false);
    }
}

template <bool is_full>
void Engine<is_full>::schedule_transfer(Picoseconds time_ps, std::uint32_t row, bool is_end) {
    num_transfer_events++;
    queue.push(time_ps, identify_transfer(row, is_end));
}

}  // namespace netsim
