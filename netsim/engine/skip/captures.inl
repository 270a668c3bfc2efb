// Captures while a component sleeps: what it noted in a period is noted again for each repeat.
//
// Rows stand in the order of events. Those of a component are added when it wakes, and put in order among what others
// noted meanwhile; the first ones of all stay.

#include <algorithm>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::log_capture(CapturedPacket& row) {
    const EventKind kind = kind_of(skip.current);  // what a Clock event is about stands in its payload
    const std::uint32_t id = kind == EventKind::Clock ? payload_of(skip.current) : id_of(skip.current);
    row.order = static_cast<std::uint32_t>(kind) << PAYLOAD_BITS | id;
    if (!senders[row.queue_pair].is_logged) return;
    Component& component = skip.components[skip.component_of_pair[row.queue_pair]];
    if (has_room_to_log(component)) component.captured.push_back(row);
}

// Senders are still where they were when the component fell asleep.
template <bool is_full>
void Engine<is_full>::repeat_captures(const Component& component, std::int64_t num_periods) {
    num_captured += static_cast<std::uint64_t>(num_periods) * component.captured.size();
    std::uint64_t room = settings.max_captured;
    for (std::int64_t period = 1; period <= num_periods && !component.captured.empty(); period++) {
        for (CapturedPacket row : component.captured) {
            if (room-- == 0) return;
            const std::uint32_t before = component.next_sequences[skip.place_of_pair[row.queue_pair]];
            const std::uint32_t moved = senders[row.queue_pair].next_sequence - before;
            row.time_ps += period * component.period_ps;
            if (row.type != PacketType::Cnp) {
                row.sequence += static_cast<std::uint32_t>(period) * moved;
                if (is_selective() && !is_forward(row.type))
                    row.expected_sequence += static_cast<std::uint32_t>(period) * moved;
            }
            captured.push_back(row);
        }
    }
}

// Put what was noted after an instant in order; up to it, it is.
template <bool is_full>
void Engine<is_full>::order_captures(Picoseconds after_ps) {
    if (captured.empty()) return;
    const auto is_before = [&](const CapturedPacket& row) { return row.time_ps <= after_ps; };
    const auto key = [](const CapturedPacket& row) { return std::pair(row.time_ps, row.order); };
    std::ranges::stable_sort(std::ranges::partition_point(captured, is_before), captured.end(), {}, key);
    if (captured.size() > settings.max_captured) captured.resize(settings.max_captured);
}

}  // namespace netsim
