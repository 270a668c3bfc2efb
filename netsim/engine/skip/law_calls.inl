// Laws while their component sleeps: handlers are told n times more what they were told in the period.
//
// Handlers are pure functions of parameters, record and arguments: queue pairs with equal records and equal calls share
// them.

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

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

// Make a section of what has been logged since the last one.
template <bool is_full>
void Engine<is_full>::close_section(Component& component) {
    const LogSection last = component.sections.empty() ? LogSection{} : component.sections.back();
    const LogSection open{last.end_call, component.calls.size(), last.end_draw, component.draws.size()};
    if (open.size() > 0) component.sections.push_back(open);
}

// The calls of a log by queue pair, those with equal records and equal calls together; sections are closed.
template <bool is_full>
std::vector<CallsOfPair> Engine<is_full>::group_calls(const Component& component) const {
    std::vector<CallsOfPair> pairs(component.queue_pairs.size());
    std::vector<std::size_t> last_section(pairs.size());
    std::size_t number = 0;
    for (const LogSection& section : component.sections) {
        number++;
        for (std::size_t place = section.first_call; place < section.end_call; place++) {
            const LawCall& call = component.calls[place];
            CallsOfPair& pair = pairs[place_of(component, call.queue_pair)];
            const bool is_first = std::exchange(last_section[&pair - pairs.data()], number) != number;
            pair.queue_pair = call.queue_pair;
            if (is_first) pair.sections.push_back({pair.calls.size(), 0, 0, 0, section.num_times, section.period_ps});
            pair.calls.push_back(call);
            pair.sections.back().end_call = pair.calls.size();
        }
    }
    std::unordered_map<std::string, std::size_t> first_with;
    std::vector<CallsOfPair> groups;
    for (CallsOfPair& pair : pairs) {
        if (pair.calls.empty()) continue;
        const auto [first, is_new] = first_with.emplace(key_of_calls(component, pair), groups.size());
        if (is_new) {
            groups.push_back(std::move(pair));
        } else {
            groups[first->second].twins.push_back(pair.queue_pair);
        }
    }
    return groups;
}

// Tell the laws a period's calls `num_periods` times; return how many periods changed nothing that the engine obeys.
template <bool is_full>
std::int64_t Engine<is_full>::repeat_calls(const Component& component, const std::vector<CallsOfPair>& groups,
                                           std::int64_t num_periods) {
    for (const CallsOfPair& pair : groups) {
        num_periods = std::min(num_periods, repeat_calls_of(component, pair, num_periods));
    }
    for (const CallsOfPair& pair : groups) {
        for (const std::uint32_t twin : pair.twins) {
            std::copy_n(&flows[pair.queue_pair * flow_stride], flow_stride, &flows[twin * flow_stride]);
        }
    }
    return num_periods;
}

template <bool is_full>
inline std::uint32_t Engine<is_full>::place_of(const Component& component, std::uint32_t qp) const {
    return &component == &rounds.whole ? qp : skip.place_of_pair[qp];
}

// All that the outcome of a queue pair's repeated calls depends on.
template <bool is_full>
std::string Engine<is_full>::key_of_calls(const Component& component, const CallsOfPair& pair) const {
    const std::uint32_t qp = pair.queue_pair;
    const WindowUse& use = component.windows[place_of(component, qp)];
    std::string key(reinterpret_cast<const char*>(&flows[qp * flow_stride]), flow_stride * sizeof(CacheLine));
    const auto append = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
    append(use.most_let);
    append(use.least_held);
    append(senders[qp].timer_event_ps);
    append(senders[qp].rate_bps);
    append(skip.law_lag_ps[qp]);
    for (const LogSection& section : pair.sections) {
        append(section.end_call);
        append(section.num_times);
        append(section.period_ps);
    }
    for (const LawCall& call : pair.calls) {
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
std::int64_t Engine<is_full>::repeat_calls_of(const Component& component, const CallsOfPair& pair,
                                              std::int64_t num_periods) {
    const WindowUse& use = component.windows[place_of(component, pair.queue_pair)];
    for (std::int64_t period = 1; period <= num_periods; period++) {
        const Picoseconds base_ps = component.state_ps + period * component.period_ps;
        for (const LogSection& section : pair.sections) {
            const std::span calls(&pair.calls[section.first_call], section.end_call - section.first_call);
            for (std::int64_t time = 0; time < section.num_times; time++) {
                for (const LawCall& call : calls) {
                    if (!repeat_call(call, base_ps + time * section.period_ps + call.after_ps, use)) return period - 1;
                }
            }
        }
    }
    return num_periods;
}

// Whether the engine does with what the law says now what it did with what it said in the period.
template <bool is_full>
inline bool Engine<is_full>::repeat_call(const LawCall& call, Picoseconds time_ps, const WindowUse& use) {
    if (call_again(call, time_ps) != OK) return false;
    const FlowHeader& header = flow(call.queue_pair);
    const Sender& sender = senders[call.queue_pair];
    return header.rate_bps == sender.rate_bps && use.most_let <= header.cwnd_bytes &&
           header.cwnd_bytes < use.least_held &&
           !(law.on_timer && earliest_deadline_ps(call.queue_pair) < sender.timer_event_ps);
}

template <bool is_full>
inline std::int64_t Engine<is_full>::call_again(const LawCall& call, Picoseconds time_ps) {
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
    if (component.draws.empty()) return;
    for (std::int64_t period = 0; period < num_periods; period++) {
        for (const LogSection& section : component.sections) {
            for (std::int64_t time = 0; time < section.num_times; time++) {
                for (std::size_t place = section.first_draw; place < section.end_draw; place++) {
                    draw_again(component.draws[place]);
                }
            }
        }
    }
}

// How many calls and draws a repeat takes.
template <bool is_full>
std::int64_t Engine<is_full>::num_repeated(const Component& component, const std::vector<CallsOfPair>& groups) const {
    std::int64_t num = 0;
    for (const CallsOfPair& pair : groups) {
        for (const LogSection& section : pair.sections) {
            num += section.num_times * static_cast<std::int64_t>(section.end_call - section.first_call);
        }
    }
    for (const LogSection& section : component.sections) {
        num += section.num_times * static_cast<std::int64_t>(section.end_draw - section.first_draw);
    }
    return num;
}

template <bool is_full>
inline void Engine<is_full>::draw_again(const Draw& draw) {
    Packet unused{};
    PortStats& stats = port_stats[draw.port];
    if (!has_priorities()) {
        mark(stats, unused, draw.queued_bytes, settings.marking);
        return;
    }
    const bool is_marked = mark(stats, unused, draw.queued_bytes, priorities.rules[draw.priority].marking);
    priorities.queue_stats(draw.port, draw.priority).marked_packets += is_marked;
}

}  // namespace netsim
