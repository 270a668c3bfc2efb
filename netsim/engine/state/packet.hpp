// Packets: 32 bytes each while queued or in flight, kept in one pool and named by their index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "event.hpp"
#include "huge_pages.hpp"
#include "prefetch.hpp"

namespace netsim {

inline constexpr std::uint32_t NONE = ~0u;          // no packet, port, queue pair or transfer
inline constexpr std::uint32_t NO_ROUTE = ~0u - 1;  // in place of a port: from here on the network knows no way

enum class PacketType : std::uint8_t {
    Data,
    Ack,
    Nak,
    Cnp,
    ReceiverNotReady,
    Trimmed,
    TrimNack,
    Credit,
    CreditRequest
};

// What `queues.acknowledgement_class` is about.
constexpr bool is_acknowledgement(PacketType type) {
    return type == PacketType::Ack || type == PacketType::Nak || type == PacketType::ReceiverNotReady;
}

// Whether it goes from the sender to the receiver: a trimmed packet is a data packet without its payload.
constexpr bool is_forward(PacketType type) {
    return type == PacketType::Data || type == PacketType::Trimmed || type == PacketType::CreditRequest;
}

constexpr bool says_credit(PacketType type) {
    return is_forward(type) || type == PacketType::Credit;
}

struct alignas(32) Packet {
    std::uint32_t next;           // behind it in a queue, or in the pool's free list
    std::uint32_t queue_pair;     // row
    std::uint32_t sequence;       // packet sequence number within its queue pair; of an Ack the last one it confirms,
                                  // under selective repeat the one that caused it
    std::uint32_t ingress_port;   // port it came through into the node it is in; NONE at its source
    Picoseconds sent_ps;          // when the data packet left its NIC, kept by the answer to it
    std::uint32_t path_position;  // index into the table of paths
    std::uint16_t wire_bytes;
    PacketType type;
    bool is_marked : 1;         // congestion experienced
    std::uint8_t priority : 3;  // as priorities.hpp numbers them
    bool is_last_hop : 1;       // of a trimmed packet and its answer: it was trimmed before the port to its host
    bool wants_ack : 1;         // of a data packet where acknowledgements are coalesced: its sender waits for one
};
static_assert(sizeof(Packet) == 32);

class PacketPool {
  public:
    Packet& operator[](std::uint32_t packet) { return packets_[packet]; }
    std::size_t size() const { return packets_.size(); }

    // Bring a packet nearer; any number will do.
    void prefetch(std::uint32_t packet) const { netsim::prefetch(packets_.data(), packet); }

    // Invalidates references to packets.
    std::uint32_t allocate() {
        num_live_++;
        peak_live_ = std::max(peak_live_, num_live_);
        if (free_ == NONE) return append();
        const std::uint32_t packet = free_;
        free_ = packets_[packet].next;
        return packet;
    }

    void release(std::uint32_t packet) {
        packets_[packet].next = free_;
        free_ = packet;
        num_live_--;
    }

    // Count packets that were elsewhere, and the most that were there at once.
    void add_live(std::uint32_t num_live, std::uint32_t peak_live) {
        num_live_ += num_live;
        peak_live_ += peak_live;
    }

    std::uint32_t num_live() const { return num_live_; }
    std::uint32_t peak_live() const { return peak_live_; }

  private:
    std::uint32_t append() {
        if (packets_.size() == MAX_PACKETS) throw std::length_error("more packets in flight than the engine can name");
        packets_.emplace_back();
        return static_cast<std::uint32_t>(packets_.size() - 1);
    }

    Array<Packet> packets_ = Array<Packet>(1);  // packet 0 stands for "no packet" in events
    std::uint32_t free_ = NONE;
    std::uint32_t num_live_ = 0, peak_live_ = 0;
};

}  // namespace netsim
