// Cuts a run into parts.
//
// Nodes that meet in no time are joined first. Then wires are closed one after another, the shortest first, as long as
// what they join has no more than its share of the work; so what is left to cut are the longest. The pieces are dealt
// out, the largest first, each to the part with the least work.
#include "cut.hpp"

#include <algorithm>
#include <numeric>

namespace netsim {
namespace {

// Disjoint sets of things that stay together.
class Pieces {
  public:
    explicit Pieces(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }

    std::uint32_t of(std::uint32_t thing) {
        while (parent_[thing] != thing) thing = parent_[thing] = parent_[parent_[thing]];
        return thing;
    }

    void join(std::uint32_t one, std::uint32_t other) { parent_[of(other)] = of(one); }

  private:
    std::vector<std::uint32_t> parent_;
};

class Cutter {
  public:
    explicit Cutter(const Simulation& simulation)
        : run_(simulation),
          num_nodes_(run_.port_node.empty() ? 0 : 1 + std::ranges::max(run_.port_node)),
          num_rows_(static_cast<std::uint32_t>(run_.transfers.size())),
          pieces_(num_nodes_ + num_rows_ + run_.nvlink_out_until_ps.size()) {}

    Cut cut(std::uint32_t most_parts) {
        Cut result;
        join_lossy_wires();
        if (num_pieces() == 1) result.obstacle = "random loss";
        join_wires_without_delay();
        if (num_pieces() == 1 && result.obstacle.empty()) result.obstacle = "wires without delay";
        join_transfers();
        if (num_pieces() == 1 && result.obstacle.empty()) result.obstacle = "transfers that wait for those of others";
        weigh();
        join_short_wires(most_parts);
        deal_out(most_parts, result);
        return result;
    }

  private:
    std::uint32_t source_of(std::uint32_t qp) const { return run_.port_node[run_.senders[qp].port]; }

    // Where acknowledgements begin.
    std::uint32_t destination_of(std::uint32_t qp) const {
        return run_.port_node[run_.path[(2 * std::size_t{qp} + 1) * run_.settings.path_stride]];
    }

    std::uint32_t node_behind(std::uint32_t port) const { return run_.port_node[run_.port_stats[port].peer]; }

    // Where a transfer begins and ends: at a node, or as a thing of its own if it crosses no fabric.
    std::uint32_t start_of(std::uint32_t row) const {
        const std::uint32_t qp = run_.transfers[row].queue_pair;
        return qp == NONE ? num_nodes_ + row : source_of(qp);
    }
    std::uint32_t end_of(std::uint32_t row) const {
        const std::uint32_t qp = run_.transfers[row].queue_pair;
        return qp == NONE ? num_nodes_ + row : destination_of(qp);
    }

    std::uint32_t num_pieces() {
        std::uint32_t number = 0;
        std::vector<bool> is_counted(num_nodes_ + num_rows_ + run_.nvlink_out_until_ps.size());
        for (std::uint32_t node = 0; node < num_nodes_; node++) {
            number += !is_counted[pieces_.of(node)];
            is_counted[pieces_.of(node)] = true;
        }
        return number;
    }

    // A wire's random numbers are drawn at both of its ends.
    void join_lossy_wires() {
        for (std::uint32_t port = 0; port < run_.ports.size(); port++) {
            if (run_.port_stats[port].loss_fraction > 0) pieces_.join(run_.port_node[port], node_behind(port));
        }
    }

    void join_wires_without_delay() {
        for (std::uint32_t port = 0; port < run_.ports.size(); port++) {
            if (run_.ports[port].delay_ps == 0) pieces_.join(run_.port_node[port], node_behind(port));
        }
    }

    // What waits for a transfer hears of its end at once; a GPU's transfers share its NVLink.
    void join_transfers() {
        for (std::uint32_t row = 0; row < num_rows_; row++) {
            const std::uint32_t begin = run_.dependent_offset[row], end = run_.dependent_offset[row + 1];
            for (std::uint32_t i = begin; i < end; i++) pieces_.join(end_of(row), start_of(run_.dependent_row[i]));
            if (run_.nvlink_source.empty() || run_.nvlink_source[row] == NONE) continue;
            pieces_.join(start_of(row), num_nodes_ + num_rows_ + run_.nvlink_source[row]);
            pieces_.join(start_of(row), num_nodes_ + num_rows_ + run_.nvlink_destination[row]);
        }
    }

    // Count the packets that each node will have to handle.
    void weigh() {
        std::vector<double> packets(run_.senders.size());
        for (const Transfer& transfer : run_.transfers) {
            if (transfer.queue_pair == NONE) continue;
            packets[transfer.queue_pair] += transfer.num_packets(run_.settings.mtu_bytes);
        }
        weight_.assign(num_nodes_ + num_rows_ + run_.nvlink_out_until_ps.size(), 0);
        const std::size_t stride = run_.settings.path_stride;
        for (std::size_t direction = 0; direction < 2 * run_.senders.size(); direction++) {
            for (const std::uint32_t* hop = &run_.path[direction * stride]; *hop < NO_ROUTE; hop++) {
                weight_[pieces_.of(node_behind(*hop))] += packets[direction / 2];
            }
        }
        total_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
    }

    void join_short_wires(std::uint32_t most_parts) {
        std::vector<std::uint32_t> wires(run_.ports.size());
        std::iota(wires.begin(), wires.end(), 0u);
        std::ranges::stable_sort(wires, [&](std::uint32_t one, std::uint32_t other) {
            const Port &first = run_.ports[one], &second = run_.ports[other];
            if (first.delay_ps != second.delay_ps) return first.delay_ps < second.delay_ps;
            return first.is_host && !second.is_host;
        });
        for (const std::uint32_t port : wires) {
            const std::uint32_t one = pieces_.of(run_.port_node[port]), other = pieces_.of(node_behind(port));
            if (one == other || weight_[one] + weight_[other] > total_ / most_parts) continue;
            const double weight = weight_[one] + weight_[other];
            pieces_.join(one, other);
            weight_[pieces_.of(one)] = weight;
        }
    }

    void deal_out(std::uint32_t most_parts, Cut& result) {
        std::vector<std::uint32_t> roots;
        std::vector<std::uint8_t> part_of_piece(weight_.size());
        for (std::uint32_t thing = 0; thing < num_nodes_; thing++) roots.push_back(pieces_.of(thing));
        std::ranges::sort(roots);
        roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
        std::ranges::stable_sort(roots,
                                 [&](std::uint32_t one, std::uint32_t other) { return weight_[one] > weight_[other]; });
        const auto num_busy = std::ranges::count_if(roots, [&](std::uint32_t root) { return weight_[root] > 0; });
        std::vector<double> loads(std::clamp<std::size_t>(static_cast<std::size_t>(num_busy), 1, most_parts));
        for (const std::uint32_t root : roots) {
            const auto least = std::ranges::min_element(loads);
            *least += weight_[root];
            part_of_piece[root] = static_cast<std::uint8_t>(least - loads.begin());
        }
        result.num_parts = static_cast<std::uint32_t>(loads.size());
        if (loads.size() == 1 && result.obstacle.empty()) result.obstacle = "too little work in the fabric";
        const auto part_of = [&](std::uint32_t thing) { return part_of_piece[pieces_.of(thing)]; };
        for (const std::uint32_t node : run_.port_node) result.part_of_port.push_back(part_of(node));
        for (std::uint32_t qp = 0; qp < run_.senders.size(); qp++) {
            result.part_of_receiver.push_back(part_of(destination_of(qp)));
        }
        for (std::uint32_t row = 0; row < num_rows_; row++) result.part_of_row.push_back(part_of(start_of(row)));
    }

    const Simulation& run_;
    const std::uint32_t num_nodes_, num_rows_;
    Pieces pieces_;
    std::vector<double> weight_;  // by piece
    double total_ = 0;
};

}  // namespace

Cut make_cut(const Simulation& simulation, std::uint32_t most_parts) {
    return Cutter(simulation).cut(most_parts);
}

Picoseconds lookahead_ps(const Simulation& simulation, const Cut& cut) {
    const Settings& settings = simulation.settings;
    std::int64_t least_bytes = std::min(settings.ack_bytes, settings.pause_frame_bytes);
    if (settings.trim_above_bytes > 0) least_bytes = std::min(least_bytes, settings.trimmed_bytes);
    std::vector<std::int64_t> rate_bps;
    for (const PortStats& port : simulation.port_stats) rate_bps.push_back(port.rate_bps);
    for (const Change& change : simulation.faults.changes) {
        if (change.effect != Effect::Rate) continue;
        rate_bps[change.port] = std::max(rate_bps[change.port], static_cast<std::int64_t>(change.value));
    }
    Picoseconds least_ps = LAST_INSTANT;
    for (std::size_t port = 0; port < simulation.ports.size(); port++) {
        if (cut.part_of_port[port] == cut.part_of_port[simulation.port_stats[port].peer]) continue;
        least_ps = std::min(least_ps, simulation.ports[port].delay_ps + serialization_ps(least_bytes, rate_bps[port]));
    }
    return least_ps;
}

}  // namespace netsim
