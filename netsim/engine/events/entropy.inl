// Entropy: values that packets carry for switches to choose by, and what senders learn of them.
//
// An answer brings back the value of the packet it answers. One without a mark says that the path is good; so does a
// packet trimmed at the last hop, which no path avoids.
// Source: Ultra Ethernet Specification 1.0, 3.6.12.3 (process_ev) and 3.6.16.

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
std::uint16_t Engine<is_full>::entropy_of(std::uint32_t packet) const {
    return has_entropy() ? entropies[packet] : 0;
}

template <bool is_full>
std::uint16_t& Engine<is_full>::entropy_place(std::uint32_t packet) {
    if (packet >= entropies.size()) entropies.resize(2 * packets.size());
    return entropies[packet];
}

template <bool is_full>
void Engine<is_full>::give_entropy(std::uint32_t qp, std::uint32_t packet) {
    entropy_place(packet) = entropy_caches[qp].next(settings.num_entropy_values);
}

template <bool is_full>
void Engine<is_full>::learn_from(std::uint32_t answer) {
    const Packet& packet = packets[answer];
    const bool is_good = !packet.is_marked && (packet.type == PacketType::Ack || packet.is_last_hop);
    if (settings.recycles_entropy && is_good) entropy_caches[packet.queue_pair].keep(entropies[answer], now_ps);
}

template <bool is_full>
void Engine<is_full>::on_path_failure(std::uint32_t qp) {
    if (settings.recycles_entropy) entropy_caches[qp].freeze(now_ps + settings.entropy_freeze_ps);
}

}  // namespace netsim
