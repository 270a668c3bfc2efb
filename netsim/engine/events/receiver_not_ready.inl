// Receiver not ready: a message for which no receive is posted is refused, and the sender waits before it comes again.
//
// Only the packet that is expected is refused in words; what follows it is dropped in silence. The sender waits as long
// as the refusal says, and after so many refusals without progress it fails, unless told to go on for ever.
// Source: InfiniBand Architecture Specification 1.4, 9.7.5.2.8.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
bool Engine<is_full>::is_receiver_ready(const Packet& packet) {
    const Receiver& receiver = receivers[packet.queue_pair];
    if (packet.sequence < receiver.expected_sequence) return true;  // a duplicate needs none
    std::uint32_t num_between = 0;
    for (std::uint32_t row = receiver.transfer; packet.sequence >= transfers[row].end_sequence; num_between++) {
        row = transfers[row].next;
    }
    return receive_queues[packet.queue_pair].has_receive(num_between, now_ps);
}

template <bool is_full>
void Engine<is_full>::refuse(std::uint32_t packet_id) {
    if constexpr (SKIPS) disturb(packets[packet_id].queue_pair);
    Receiver& receiver = receivers[packets[packet_id].queue_pair];
    if (packets[packet_id].sequence != receiver.expected_sequence) return packets.release(packet_id);
    num_refused++;
    receiver.has_sent_nak = true;  // what follows is no gap
    reply(packet_id, PacketType::ReceiverNotReady);
}

template <bool is_full>
void Engine<is_full>::on_refusal(std::uint32_t qp, std::uint32_t expected_sequence) {
    Sender& sender = senders[qp];
    if constexpr (SKIPS) disturb(qp);
    if (sender.state == SenderState::Failed || sender.num_unacknowledged == 0) return;
    if (expected_sequence < sender.oldest_sequence) return;  // overtaken by an acknowledgement
    if (expected_sequence > sender.oldest_sequence) acknowledge_all_below(qp, sender, expected_sequence);
    RefusedSender& refused = refused_senders[qp];
    if (settings.rnr_retries_are_limited && refused.num_refusals == settings.rnr_retries) return fail(sender);
    refused.num_refusals++;
    refused.until_ps = now_ps + settings.rnr_wait_ps;
    send_all_again(qp, sender);
    sender.timeout_ps = NEVER;
    resume(qp);
}

}  // namespace netsim
