// Laws: handlers are called, what they wrote is checked and obeyed, and their deadlines are kept; congestion
// notifications reach them once the adapter has handled them.
//
// A queue pair has one pending timer event at most that matters, for the earliest of its retransmission timeout, the
// law's deadlines and the notifications still being handled. A deadline that moves later leaves the event alone (it
// re-arms when it fires); one that moves earlier pushes another, and the older one finds itself overtaken.

#include <algorithm>
#include <cmath>

#include "../engine.hpp"

namespace netsim {

// By the engine's clock.
template <bool is_full>
inline Picoseconds Engine<is_full>::earliest_deadline_ps(std::uint32_t qp) const {
    const Picoseconds* deadlines_ps = flow(qp).deadline_ps;
    const Picoseconds earliest_ps = *std::min_element(deadlines_ps, deadlines_ps + NUM_TIMERS);
    return SKIPS && earliest_ps != NEVER ? earliest_ps + law_lag_ps(qp) : earliest_ps;
}

// Throws LawFault if the handler failed or wrote what cannot be obeyed.
template <bool is_full>
inline void Engine<is_full>::obey(LawEvent event, std::uint32_t qp, std::int64_t status) {
    Sender& sender = senders[qp];
    const FlowHeader& header = flow(qp);
    if (status == OK && !(header.rate_bps >= MIN_RATE_BPS && std::isfinite(header.rate_bps))) status = BAD_RATE;
    if (status == OK && !(header.cwnd_bytes >= MIN_CWND_BYTES)) status = BAD_CWND;
    if (status == OK && law.on_timer) {
        const Picoseconds earliest_ps = earliest_deadline_ps(qp);
        if (earliest_ps < now_ps || (earliest_ps == now_ps && event == ON_TIMER)) status = BAD_DEADLINE;
        arm_timer(qp, sender, earliest_ps);
    }
    if (status != OK) [[unlikely]]
        throw LawFault{event, status, qp, now_ps};
    if (header.rate_bps != sender.rate_bps) set_pace(sender, header.rate_bps);
}

template <bool is_full>
inline void Engine<is_full>::notify_law(LawEvent event, Law::OnInstant handler, std::uint32_t qp) {
    if constexpr (SKIPS) note_notification(event, qp);
    if (handler) obey(event, qp, handler(law.params, &flow(qp), law_now_ps(qp)));
}

template <bool is_full>
inline void Engine<is_full>::set_pace(Sender& sender, double rate_bps) {
    sender.rate_bps = rate_bps;
    const double bit_ps = static_cast<double>(sender.last_wire_bytes * BIT_PS_PER_BYTE);
    sender.gap_ps = static_cast<Picoseconds>(std::min(bit_ps / rate_bps, MAX_GAP_PS));
}

template <bool is_full>
inline void Engine<is_full>::arm_timer(std::uint32_t qp, Sender& sender, Picoseconds time_ps) {
    if (time_ps >= sender.timer_event_ps) return;
    sender.timer_event_ps = time_ps;
    queue.push(time_ps, identify(EventKind::Timer, qp));
}

template <bool is_full>
void Engine<is_full>::on_timer(std::uint32_t qp) {
    Sender& sender = senders[qp];
    if (sender.timer_event_ps != now_ps) return;  // overtaken by an earlier one
    sender.timer_event_ps = NEVER;
    if constexpr (SKIPS) disturb(qp);
    if (settings.cnp_delay_ps > 0) call_due_notifications(qp);
    if (sender.num_unacknowledged == 0 || sender.state == SenderState::Failed) return;
    if (law.on_timer) {
        call_due_timers(qp);
        arm_timer(qp, sender, earliest_deadline_ps(qp));
    }
    if constexpr (is_full) {
        if (is_selective()) on_reorder_deadline(qp, sender);
    }
    if (sender.timeout_ps == now_ps) on_retransmission_timeout(qp, sender);
    arm_timer(qp, sender, sender.timeout_ps);
    if constexpr (is_full) {
        if (is_selective()) arm_timer(qp, sender, selective_senders[qp].deadline_ps);
    }
    resume(qp);
}

template <bool is_full>
void Engine<is_full>::call_due_timers(std::uint32_t qp) {
    bool is_due[NUM_TIMERS];
    for (std::int32_t timer = 0; Picoseconds& deadline_ps : flow(qp).deadline_ps) {
        is_due[timer++] = deadline_ps == law_now_ps(qp);
        if (deadline_ps == law_now_ps(qp)) deadline_ps = NEVER;
    }
    for (std::int32_t timer = 0; const bool is_due_now : is_due) {
        if (is_due_now) obey(ON_TIMER, qp, law.on_timer(law.params, &flow(qp), law_now_ps(qp), timer));
        timer++;
    }
}

// A notification has arrived; the law hears of it at once, or when the adapter has handled it.
template <bool is_full>
void Engine<is_full>::take_notification(std::uint32_t qp) {
    if (settings.cnp_delay_ps == 0) return on_congestion_notification(qp);
    pending_notifications[qp].push_back(now_ps + settings.cnp_delay_ps);
    arm_timer(qp, senders[qp], now_ps + settings.cnp_delay_ps);
}

template <bool is_full>
void Engine<is_full>::call_due_notifications(std::uint32_t qp) {
    RingBuffer<Picoseconds>& pending = pending_notifications[qp];
    while (!pending.empty() && pending.front() <= now_ps) {
        pending.pop_front();
        on_congestion_notification(qp);
    }
    if (!pending.empty()) arm_timer(qp, senders[qp], pending.front());
}

template <bool is_full>
void Engine<is_full>::on_congestion_notification(std::uint32_t qp) {
    const Sender& sender = senders[qp];
    if (sender.state == SenderState::Failed || sender.num_unacknowledged == 0) return;
    transfers[sender.oldest].num_cnps++;
    notify_law(ON_CNP, law.on_cnp, qp);
    resume(qp);
}

}  // namespace netsim
