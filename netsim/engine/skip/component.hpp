// Components: queue pairs that share ports, what is kept of them, and what they sleep with.
//
// Nothing in a component reads or writes what is outside. While it sleeps, its events are put aside as they come.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "../state/simulation.hpp"
#include "bounded.hpp"

namespace netsim {

// A call of a law's handler since the kept state.
struct LawCall {
    LawEvent event;
    std::uint32_t queue_pair;
    Picoseconds after_ps;  // since that state
    std::int64_t bytes;
    Picoseconds rtt_ps, endpoint_ps;
    std::int32_t num_hops;
    bool is_marked;
};

// A part of a log; in that of rounds, what a component has repeated in its sleep is one.
struct LogSection {
    std::size_t first_call = 0, end_call = 0, first_draw = 0, end_draw = 0;
    std::int64_t num_times = 1;
    Picoseconds period_ps = 0;

    std::size_t size() const { return end_call - first_call + end_draw - first_draw; }
};

// Calls of one queue pair's law, in sections.
struct CallsOfPair {
    std::uint32_t queue_pair = NONE;
    std::vector<LawCall> calls;
    std::vector<LogSection> sections;
    std::vector<std::uint32_t> twins;  // queue pairs to which the same will happen
};

// What a queue pair's window was compared with: it lets out up to `most_let`, and holds back from `least_held` on.
struct WindowUse {
    double most_let = 0, least_held = std::numeric_limits<double>::infinity();
};

struct PendingEvent {
    Picoseconds time_ps;
    EventIdentity identity;
};

// A packet that found so long a queue that it might have been marked.
struct Draw {
    std::uint32_t port;
    std::int32_t queued_bytes;
    std::uint32_t priority;
};

// A pause frame on its way to a port.
struct PauseFrame {
    Picoseconds effective_ps;
    std::uint32_t payload;
};

enum class SearchStage : std::uint8_t {
    Idle,      // no state is kept
    Senders,   // a state of senders and receivers is kept
    Watching,  // wires are watched until all that is on them was seen to leave
    Whole,     // a state of everything is kept
};

struct Component {
    std::vector<std::uint32_t> queue_pairs, ports;
    std::uint32_t num_at_rest = 0;   // queue pairs of it, about
    std::uint32_t reference = NONE;  // queue pair whose sends are the beats
    std::uint32_t last_reference = NONE;
    bool is_beating = false;  // the reference has sent
    bool is_loose = false;    // it is to be rebuilt
    bool is_asleep = false;
    bool is_disturbed = false;  // something has happened since the kept state that must not be repeated

    // The search.
    SearchStage stage = SearchStage::Idle;
    std::uint32_t num_beats = 0, limit = 1;  // since the kept state, and after how many another one is kept
    std::uint32_t rest = 0;                  // beats to leave out after the next failure
    Picoseconds wires_are_known_ps = 0;      // from then on
    Picoseconds unsettled_until_ps = 0;      // until then a pending Wake is not at its port's `busy_until_ps`

    // The kept state.
    Picoseconds state_ps = 0;
    std::vector<std::int64_t> values;
    std::vector<std::uint32_t> next_sequences;                    // by queue pair
    std::vector<WindowUse> windows;                               // by queue pair, since
    std::vector<LawCall> calls;                                   // since
    std::vector<Draw> draws;                                      // since
    std::vector<LogSection> sections;                             // of both
    std::vector<CapturedPacket> captured;                         // since
    std::uint64_t num_events = 0, num_data = 0, num_control = 0;  // since: handled, delivered, delivered

    // The sleep.
    Picoseconds slept_ps = 0, period_ps = 0, wake_ps = NEVER, horizon_ps = 0;
    std::int64_t num_periods = 0;
    std::vector<PendingEvent> parked;
    std::vector<CacheLine> records;  // the laws', before it

    ComponentWindows windows_of_rates;  // see windows.inl
};

// The packets on a port's wire, in order; those that have arrived are dropped when another leaves or it is looked at.
class Wire {
  public:
    struct Flight {
        Picoseconds arrives_ps;
        std::uint32_t packet;
    };

    void add(Picoseconds now_ps, Picoseconds arrives_ps, std::uint32_t packet) {
        drop_arrived(now_ps - 1);
        if (first_ > 64 && 2 * first_ > flights_.size()) forget();
        flights_.push_back({arrives_ps, packet});
    }
    void clear() { flights_.clear(), first_ = 0; }
    void drop_arrived(Picoseconds up_to_ps) {
        while (first_ < flights_.size() && flights_[first_].arrives_ps <= up_to_ps) first_++;
        if (first_ == flights_.size()) clear();
    }
    Flight* begin() { return flights_.data() + first_; }
    Flight* end() { return flights_.data() + flights_.size(); }
    bool is_empty() const { return first_ == flights_.size(); }
    Picoseconds last_ps() const { return flights_.back().arrives_ps; }

  private:
    void forget() {
        flights_.erase(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }

    std::vector<Flight> flights_;
    std::size_t first_ = 0;
};

// Whose turn it is, by the number of events; see skip/turns.inl.
struct Turns {
    static constexpr std::uint64_t SHORTEST_PLAIN = 16;  // in lengths of the search before it
    bool are_plain = false;
    bool has_match = false;  // a kept state, if only of some senders, has come again in it
    std::uint64_t begin = 0, end = 0;
    std::uint64_t num_skipped = 0;  // when it began
    std::uint64_t length_of_plain = SHORTEST_PLAIN;
};

// All that exact skip remembers of a run.
struct Skipper {
    std::vector<Component> components;
    std::vector<std::uint32_t> free_components;
    std::vector<std::uint32_t> component_of_pair, component_of_port;  // NONE: nothing to send, nothing that sends
    std::vector<std::uint32_t> place_of_pair;           // in its component, while that is logged or asleep
    std::vector<Wire> wires;                            // by port
    std::vector<Wire> replies;                          // by queue pair: what its receiver will answer, and when
    std::vector<std::vector<PauseFrame>> pause_frames;  // by port, in the order in which they take effect
    std::vector<std::vector<std::uint32_t>> groups;     // of ports that share a buffer, or PCIe; see skip/groups.inl
    std::vector<std::uint32_t> group_of_port;           // NONE: it shares nothing; empty if none does
    std::vector<std::uint32_t> beating, loose;          // components to look at
    Picoseconds look_ps = NEVER;                        // the instant after which to look at them
    Picoseconds attention_ps = NEVER;                   // events after it are looked at before they are handled
    bool is_catching_up = false;

    // Every event is looked at while anything is asleep, logged, or about to be waked for nothing.
    bool is_attentive = false;
    std::uint32_t num_asleep = 0, num_logging = 0, num_void_resumes = 0, num_resumes = 0;
    EventIdentity current = 0;                  // the event being handled
    Picoseconds handled_ps = 0, before_ps = 0;  // when it and the one before were, while is_attentive

    std::uint64_t num_spent = 0;   // on the search, in values visited
    std::uint64_t num_kept = 0;    // values, of all components
    std::uint64_t num_logged = 0;  // calls, draws and captured packets, of all components

    std::vector<Picoseconds> law_lag_ps;  // by queue pair: how long its law's clock has stood still, see spans.inl
    MeanRates mean_rates;                 // empty but with bounded skip
};

// What exact skip takes besides, for the estimate of a run's memory.
inline constexpr std::size_t SKIP_BYTES_PER_PAIR =
    sizeof(Component) + sizeof(WindowUse) + sizeof(Wire) + sizeof(PendingEvent) + 4 * sizeof(std::uint32_t);
inline constexpr std::size_t SKIP_BYTES_PER_PORT =
    sizeof(Wire) + 2 * sizeof(std::vector<PauseFrame>) + sizeof(PendingEvent) + 4 * sizeof(std::uint32_t);
inline constexpr std::size_t SKIP_BYTES_PER_PACKET = sizeof(Wire::Flight) + sizeof(PendingEvent);

}  // namespace netsim
