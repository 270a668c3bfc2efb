// Numbers that hold for the whole run.
#pragma once

#include <cstdint>

#include "clock.hpp"

namespace netsim {

enum class PathRule : std::uint32_t { Hash, Random, RoundRobin, LeastQueue, Weighted };  // see path_choice.hpp

enum class CapturePoint : std::uint32_t { Sender, Receiver, Port };  // see capturing.hpp
// RED: nothing is marked up to `min_bytes` of queue, `max_fraction` just below `max_bytes`, everything from there on.
struct MarkingCurve {
    std::int64_t min_bytes = 0, max_bytes = 0;
    double max_fraction = 0;
};

struct Settings {
    std::int64_t mtu_bytes = 4096;  // payload of a full packet
    std::int64_t wire_overhead_bytes = 0;
    std::int64_t ack_bytes = 64;  // of acknowledgements and notifications, and the least any packet has
    std::int64_t pause_frame_bytes = 84;
    std::uint32_t ack_every_packets = 1;
    MarkingCurve marking;
    bool is_pfc_enabled = false;
    Picoseconds cnp_interval_ps = 0;
    Picoseconds cnp_delay_ps = 0;  // from a notification's arrival to the law's reaction
    Picoseconds endpoint_delay_ps = 0;
    Picoseconds endpoint_jitter_ps = 0;
    std::uint64_t endpoint_key = 0;
    std::uint32_t window_packets =
        1;                           // selective repeat: most packets between the oldest not acknowledged and the next
    std::uint32_t num_receives = 0;  // posted by each queue pair at first; 0: any number
    Picoseconds replenish_ps = 0;
    Picoseconds rnr_wait_ps = 0;
    std::uint32_t rnr_retries = 0;
    bool rnr_retries_are_limited = false;
    std::int64_t nvlink_rate_bps = 1;
    Picoseconds time_limit_ps = NEVER;
    Picoseconds probe_interval_ps = NEVER;
    std::uint64_t max_samples = 0;
    CapturePoint capture_at = CapturePoint::Sender;
    std::uint32_t capture_port = 0;
    std::uint64_t max_captured = 0;
    std::uint64_t random_key = 0;
    std::uint64_t fault_key = 0;
    bool force_full = false;  // run in the full engine even where the lean one would do; the results are the same

    // Only where ports have priorities; see priorities.hpp.
    std::int32_t full_frame_bytes = 0;
    std::uint32_t acknowledgement_priority = ~0u, cnp_priority = ~0u;  // ~0: that of their queue pair
    std::int64_t pause_quanta = 0;                                     // 0: a pause lasts until it is ended
    bool is_pause_refreshed = true;
    Picoseconds pause_patience_ps = 0;       // longer than any pause and its way
    Picoseconds watchdog_detect_ps = NEVER;  // NEVER: there is none
    Picoseconds watchdog_restore_ps = 0;
    bool watchdog_drops = true;

    PathRule path_rule = PathRule::Hash;
    Picoseconds flowlet_gap_ps = 0;  // 0: the rule is asked for every packet
    std::int32_t queue_step_bytes = 1, queue_levels = 1 << 30;
    bool is_tie_random = true;
    bool control_has_choice = false;
    std::uint64_t path_choice_key = 0;
};

}  // namespace netsim
