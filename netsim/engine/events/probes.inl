// Probes: what ports and queue pairs look like, at even intervals.
//
// A probe is the last event of its instant and changes nothing. It is not part of the run either: it does not count as
// an event, and a run that has nothing left but a probe has stalled at the event before it.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::on_probe() {
    num_probes++;
    if (queue.size() == skip.num_void_resumes) {
        now_ps = SKIPS ? skip.before_ps : queue.previous_ps();
        outcome = Outcome::Stalled;
        return;
    }
    has_all_samples = port_samples.size() + probed_ports.size() <= settings.max_samples &&
                      flow_samples.size() + probed_flows.size() <= settings.max_samples;
    if (!has_all_samples) return;
    sample_times_ps.push_back(now_ps);
    for (const std::uint32_t port : probed_ports) sample_port(port);
    for (const std::uint32_t qp : probed_flows) sample_flow(qp);
    queue.push(now_ps + settings.probe_interval_ps, identify(EventKind::Clock, PROBE));
}

template <bool is_full>
void Engine<is_full>::sample_port(std::uint32_t port) {
    const Port& probed = ports[port];
    port_samples.push_back({paused_ps(port), probed.tx_bytes, probed.queued_bytes, probed.is_paused});
}

template <bool is_full>
void Engine<is_full>::sample_flow(std::uint32_t qp) {
    const Sender& sender = senders[qp];
    const FlowHeader& law_state = flow(qp);
    flow_samples.push_back(
        {law_state.rate_bps, law_state.cwnd_bytes, sender.rtt_ps, sender.in_flight_bytes, sender.oldest_sequence});
}

}  // namespace netsim
