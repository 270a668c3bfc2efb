// Intervals: how much earlier or later each transfer may be, from span to span and from transfer to transfer.
//
// Widths only add: the widest of what a transfer waited for, of the component it ran in, and of its own spans.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

// A transfer is ready: it may come earlier or later with its dependencies, and with what NVLink carries before it.
template <bool is_full>
void Engine<is_full>::note_ready(std::uint32_t row) {
    if (!is_bounded()) return;
    const ReadyRule rule = ready_rules.empty() ? ReadyRule{} : ready_rules[row];
    const auto ready_after = [&](Picoseconds done_ps) { return std::max(done_ps, rule.earliest_ps) + rule.delay_ps; };
    Picoseconds& low_ps = at_mean_rates.low_ps[row];
    Picoseconds& high_ps = at_mean_rates.high_ps[row];
    Width width{.early_ps = std::max<Picoseconds>(now_ps - ready_after(low_ps), 0),
                .late_ps = std::max<Picoseconds>(ready_after(high_ps) - now_ps, 0)};
    if (!nvlink_source.empty() && nvlink_source[row] != NONE) {
        MeanRates& rates = skip.mean_rates;
        const std::uint32_t source = nvlink_source[row], destination = nvlink_destination[row];
        rates.nvlink_out.resize(nvlink_out_until_ps.size());
        rates.nvlink_in.resize(nvlink_in_until_ps.size());
        if (nvlink_out_until_ps[source] > now_ps) width = wider(width, rates.nvlink_out[source]);
        if (nvlink_in_until_ps[destination] > now_ps) width = wider(width, rates.nvlink_in[destination]);
        rates.nvlink_out[source] = rates.nvlink_in[destination] = width;
    }
    low_ps = now_ps - width.early_ps;
    high_ps = now_ps + width.late_ps;
}

// A transfer is behind those of its queue pair, before which it may come no more than they may.
template <bool is_full>
void Engine<is_full>::note_append(std::uint32_t row) {
    if (!is_bounded()) return;
    const Transfer& transfer = transfers[row];
    PairWindows& pair = skip.mean_rates.pairs[transfer.queue_pair];
    const Width own{transfer.ready_ps - at_mean_rates.low_ps[row], at_mean_rates.high_ps[row] - transfer.ready_ps};
    pair.width = is_busy(transfer.queue_pair) ? wider(own, pair.width) : own;
}

// A transfer is done: so may be what waits for it.
template <bool is_full>
void Engine<is_full>::note_finish(std::uint32_t row) {
    if (!is_bounded()) return;
    const Transfer& transfer = transfers[row];
    Picoseconds& low_ps = at_mean_rates.low_ps[row];
    Picoseconds& high_ps = at_mean_rates.high_ps[row];
    Width width{transfer.ready_ps - low_ps, high_ps - transfer.ready_ps};
    if (transfer.queue_pair != NONE) width = width_of(skip.components[skip.component_of_pair[transfer.queue_pair]]);
    low_ps = now_ps - width.early_ps;
    high_ps = now_ps + width.late_ps;
    for (std::uint32_t i = dependent_offset[row]; i < dependent_offset[row + 1]; i++) {
        const std::uint32_t waiting = dependent_row[i];
        at_mean_rates.low_ps[waiting] = std::max(at_mean_rates.low_ps[waiting], low_ps);
        at_mean_rates.high_ps[waiting] = std::max(at_mean_rates.high_ps[waiting], high_ps);
    }
}

// The widest among the busy pairs of a component: who comes later leaves the others alone for longer.
template <bool is_full>
Width Engine<is_full>::width_of(const Component& component) const {
    Width widest;
    for (const std::uint32_t qp : component.queue_pairs) {
        if (is_busy(qp)) widest = wider(widest, skip.mean_rates.pairs[qp].width);
    }
    return widest;
}

// A span has passed.
template <bool is_full>
void Engine<is_full>::widen(Component& component, Picoseconds span_ps) {
    const Width widest = width_of(component);
    const double factor = skip.mean_rates.calibration.factor();
    for (const std::uint32_t qp : component.queue_pairs) {
        if (!is_busy(qp)) continue;
        PairWindows& pair = skip.mean_rates.pairs[qp];
        const double packets = factor * half_width_packets(pair.rate, static_cast<double>(span_ps));
        const auto own_ps = static_cast<Picoseconds>(packets / pair.rate.mean);
        pair.width = {widest.early_ps + own_ps, widest.late_ps + own_ps};
    }
}

}  // namespace netsim
