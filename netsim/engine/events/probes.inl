// Probes: what ports and queue pairs look like, at even intervals.
//
// A probe is the last event of its instant and changes nothing. It is not part of the run either: it does not count as
// an event, and a run that has nothing left but a probe has stalled at the event before it.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::on_probe() {
    num_probes++;
    if (nothing_is_pending()) {
        now_ps = previous_ps();
        outcome = Outcome::Stalled;
        return;
    }
    has_all_samples = port_samples.size() + probed_ports.size() <= settings.max_samples &&
                      flow_samples.size() + probed_flows.size() <= settings.max_samples;
    if (!has_all_samples) return;
    sample_times_ps.push_back(now_ps);
    for (const std::uint32_t port : probed_ports) sample_port(port);
    for (const std::uint32_t qp : probed_flows) sample_flow(qp);
    schedule_clock(now_ps + settings.probe_interval_ps, PROBE);
}

// When the event before the probe happened.
template <bool is_full>
Picoseconds Engine<is_full>::previous_ps() const {
    if constexpr (PARTS) return part.crew->before_clock_ps;
    return SKIPS ? skip.before_ps : queue.previous_ps();
}

template <bool is_full>
void Engine<is_full>::sample_port(std::uint32_t port) {
    const Engine& owner = part_that_sends(port);
    const Port& probed = owner.ports[port];
    port_samples.push_back({owner.paused_ps(port), probed.tx_bytes, probed.queued_bytes, probed.is_paused});
}

template <bool is_full>
void Engine<is_full>::sample_flow(std::uint32_t qp) {
    const Engine& owner = part_that_sends(senders[qp].port);
    const Sender& sender = owner.senders[qp];
    const FlowHeader& law_state = owner.flow(qp);
    flow_samples.push_back(
        {law_state.rate_bps, law_state.cwnd_bytes, sender.rtt_ps, sender.in_flight_bytes, sender.oldest_sequence});
}

}  // namespace netsim
