// Host links: PCIe between the NICs of a host and its memory.
//
// Each carries the packets of its ports one after another, in each direction, in the order in which ports begin to send
// and buffers begin to empty; a port has one packet on its way over a link, so ports share it in turn. A NIC cuts
// through: a packet leaves as its bytes come.
// Left out: requests of reads, and the latency of switches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "inputs.hpp"
#include "packet.hpp"

namespace netsim {

class HostLinks {
  public:
    explicit HostLinks(const Inputs& inputs)
        : links_of_port_(inputs.host_link.begin(), inputs.host_link.end()),
          read_{{inputs.host_link_read_rate.begin(), inputs.host_link_read_rate.end()}, {}},
          write_{{inputs.host_link_write_rate.begin(), inputs.host_link_write_rate.end()}, {}} {
        read_.until_ps.resize(read_.rate_bps.size());
        write_.until_ps.resize(write_.rate_bps.size());
    }

    bool exist() const { return !links_of_port_.empty(); }

    // When a packet has come from memory that a port begins to send now.
    Picoseconds read(std::uint32_t port, std::int64_t bytes, Picoseconds now_ps) {
        return cross(read_, port, bytes, now_ps);
    }

    // When a packet is in memory that the NIC of a port begins to write now.
    Picoseconds write(std::uint32_t port, std::int64_t bytes, Picoseconds now_ps) {
        return cross(write_, port, bytes, now_ps);
    }

    const std::vector<std::uint32_t>& links_of_port() const { return links_of_port_; }

    // Tell a visitor of skip/ until when the links of a port are busy.
    template <typename Visitor>
    bool visit(Visitor& visitor, std::uint32_t port) {
        for (const std::size_t place : {2 * std::size_t{port}, 2 * std::size_t{port} + 1}) {
            const std::uint32_t link = links_of_port_[place];
            if (!visitor.instant(read_.until_ps[link], false) || !visitor.instant(write_.until_ps[link], false))
                return false;
        }
        return true;
    }

  private:
    struct Direction {
        std::vector<std::int64_t> rate_bps;  // by link
        std::vector<Picoseconds> until_ps;
    };

    Picoseconds cross(Direction& direction, std::uint32_t port, std::int64_t bytes, Picoseconds now_ps) {
        Picoseconds done_ps = now_ps;
        for (const std::size_t place : {2 * std::size_t{port}, 2 * std::size_t{port} + 1}) {
            const std::uint32_t link = links_of_port_[place];
            Picoseconds& until_ps = direction.until_ps[link];
            until_ps = std::max(until_ps, now_ps) + serialization_ps(bytes, direction.rate_bps[link]);
            done_ps = std::max(done_ps, until_ps);
        }
        return done_ps;
    }

    std::vector<std::uint32_t> links_of_port_;  // two of each
    Direction read_, write_;
};

}  // namespace netsim
