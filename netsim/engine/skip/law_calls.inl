// Laws while their component sleeps: handlers are told n times more what they were told in the period.
//
// Handlers are pure functions of parameters, record and arguments: queue pairs with equal records and equal calls share
// them.

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::save_records(Component& component) {
    component.records.clear();
    for (const std::uint32_t qp : component.queue_pairs) {
        const auto first = flows.begin() + static_cast<std::ptrdiff_t>(qp * flow_stride);
        component.records.insert(component.records.end(), first, first + static_cast<std::ptrdiff_t>(flow_stride));
    }
}

template <bool is_full>
void Engine<is_full>::restore_records(const Component& component) {
    auto record = component.records.begin();
    for (const std::uint32_t qp : component.queue_pairs) {
        std::copy_n(record, flow_stride, flows.begin() + static_cast<std::ptrdiff_t>(qp * flow_stride));
        record += static_cast<std::ptrdiff_t>(flow_stride);
    }
}

// Tell the laws a period's calls `num_periods` times; return how many periods changed nothing that the engine obeys.
template <bool is_full>
std::int64_t Engine<is_full>::repeat_calls(const Component& component, std::int64_t num_periods) {
    if (component.calls.empty()) return num_periods;
    std::vector<std::vector<LawCall>> calls(component.queue_pairs.size());
    for (const LawCall& call : component.calls) calls[place_of(component, call.queue_pair)].push_back(call);
    std::unordered_map<std::string, std::uint32_t> twins;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> copies;
    for (std::size_t place = 0; place < calls.size(); place++) {
        const std::uint32_t qp = component.queue_pairs[place];
        if (calls[place].empty()) continue;
        const auto [twin, is_new] = twins.emplace(key_of_calls(component, place, calls[place]), qp);
        if (is_new) {
            num_periods = std::min(num_periods, repeat_calls_of(component, place, calls[place], num_periods));
        } else {
            copies.emplace_back(qp, twin->second);
        }
    }
    for (const auto& [to, from] : copies) {
        std::copy_n(&flows[from * flow_stride], flow_stride, &flows[to * flow_stride]);
    }
    return num_periods;
}

template <bool is_full>
inline std::uint32_t Engine<is_full>::place_of(const Component& component, std::uint32_t qp) const {
    return &component == &rounds.whole ? qp : skip.place_of_pair[qp];
}

// All that the outcome of a queue pair's repeated calls depends on.
template <bool is_full>
std::string Engine<is_full>::key_of_calls(const Component& component, std::size_t place,
                                          const std::vector<LawCall>& calls) const {
    const std::uint32_t qp = component.queue_pairs[place];
    std::string key(reinterpret_cast<const char*>(&flows[qp * flow_stride]), flow_stride * sizeof(CacheLine));
    const auto append = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
    append(component.windows[place].most_let);
    append(component.windows[place].least_held);
    append(senders[qp].timer_event_ps);
    append(senders[qp].rate_bps);
    append(skip.law_lag_ps[qp]);
    for (const LawCall& call : calls) {
        append(call.event);
        append(call.after_ps);
        append(call.bytes);
        append(call.rtt_ps);
        append(call.endpoint_ps);
        append(call.num_hops);
        append(call.is_marked);
    }
    return key;
}

template <bool is_full>
std::int64_t Engine<is_full>::repeat_calls_of(const Component& component, std::size_t place,
                                              const std::vector<LawCall>& calls, std::int64_t num_periods) {
    const std::uint32_t qp = component.queue_pairs[place];
    const FlowHeader& header = flow(qp);
    const WindowUse& use = component.windows[place];
    for (std::int64_t period = 1; period <= num_periods; period++) {
        const Picoseconds base_ps = component.state_ps + period * component.period_ps;
        for (const LawCall& call : calls) {
            if (repeat_call(call, base_ps + call.after_ps) != OK) return period - 1;
            if (header.rate_bps != senders[qp].rate_bps) return period - 1;
            if (!(use.most_let <= header.cwnd_bytes && header.cwnd_bytes < use.least_held)) return period - 1;
            if (law.on_timer && earliest_deadline_ps(qp) < senders[qp].timer_event_ps) return period - 1;
        }
    }
    return num_periods;
}

template <bool is_full>
std::int64_t Engine<is_full>::repeat_call(const LawCall& call, Picoseconds time_ps) {
    static constexpr TelemetryRecord NO_TELEMETRY[MAX_TELEMETRY_HOPS] = {};
    void* record = &flow(call.queue_pair);
    time_ps -= skip.law_lag_ps[call.queue_pair];
    if (call.event == ON_SEND) return law.on_send(law.params, record, time_ps, call.bytes);
    if (call.event == ON_CNP) return law.on_cnp(law.params, record, time_ps);
    return law.on_ack(law.params, record, time_ps, call.bytes, call.rtt_ps, call.endpoint_ps, call.num_hops,
                      call.is_marked, NO_TELEMETRY);
}

// Draw again what a period drew; whether a packet is marked matters to nobody then, how many are is counted.
template <bool is_full>
void Engine<is_full>::repeat_draws(const Component& component, std::int64_t num_periods) {
    Packet unused{};
    for (std::int64_t period = 0; period < num_periods; period++) {
        for (const Draw& draw : component.draws) {
            if (!has_priorities()) {
                mark(port_stats[draw.port], unused, draw.queued_bytes, settings.marking);
                continue;
            }
            const MarkingCurve& marking = priorities.rules[draw.priority].marking;
            const bool is_marked = mark(port_stats[draw.port], unused, draw.queued_bytes, marking);
            priorities.queue_stats(draw.port, draw.priority).marked_packets += is_marked;
        }
    }
}

}  // namespace netsim
