// The settings: numbers that hold for a whole run, SETTING(type, name). This is the list of them: Settings has these
// fields, and the bindings take exactly these names from netsim/engine_inputs/settings.py.

SETTING(std::int64_t, mtu_bytes);  // payload of a full packet
SETTING(std::int64_t, wire_overhead_bytes);
SETTING(std::int64_t, ack_bytes);  // of acknowledgements and notifications, and the least any packet has
SETTING(std::int64_t, pause_frame_bytes);
SETTING(std::uint32_t, ack_every_packets);
SETTING(bool, acknowledgements_are_data);  // without priorities: of the traffic class of data
SETTING(MarkingCurve, marking);
SETTING(bool, is_pfc_enabled);
SETTING(std::int64_t, trim_above_bytes);           // queue beyond which a data packet is trimmed; 0: never
SETTING(std::int64_t, last_hop_trim_above_bytes);  // the same at ports that lead to hosts
SETTING(std::int64_t, trimmed_bytes);              // of a trimmed packet on the wire
SETTING(Picoseconds, cnp_interval_ps);
SETTING(Picoseconds, cnp_delay_ps);  // from a notification's arrival to the law's reaction
SETTING(Picoseconds, endpoint_delay_ps);
SETTING(Picoseconds, endpoint_jitter_ps);
SETTING(std::uint64_t, endpoint_key);
SETTING(std::uint32_t, window_packets);  // selective repeat: most between the oldest not acknowledged and the next
SETTING(std::int64_t, acknowledge_after_bytes);  // selective repeat: coalesced acknowledgements; 0: they are not
SETTING(std::int64_t, grant_bytes);              // receiver credits: most of a grant, on the wire
SETTING(std::uint32_t, num_receives);            // posted by each queue pair at first; 0: any number
SETTING(Picoseconds, replenish_ps);
SETTING(Picoseconds, rnr_wait_ps);
SETTING(std::uint32_t, rnr_retries);
SETTING(bool, rnr_retries_are_limited);
SETTING(std::int64_t, nvlink_rate_bps);
SETTING(Picoseconds, time_limit_ps);
SETTING(Picoseconds, probe_interval_ps);
SETTING(std::uint64_t, max_samples);
SETTING(CapturePoint, capture_at);
SETTING(std::uint32_t, capture_port);
SETTING(std::uint64_t, max_captured);
SETTING(std::uint64_t, random_key);
SETTING(std::uint64_t, fault_key);
SETTING(std::uint64_t, num_transfers);
SETTING(std::uint32_t, path_stride);  // entries of a path; a queue pair's data path begins at 2 * path_stride * row
SETTING(std::size_t, flow_bytes);     // of a law's record
SETTING(bool, skips_repeats);         // take what repeats at once, see skip/; the results are the same
SETTING(bool, skips_at_mean_rates);   // take what is stationary at once, see skip/windows.inl
SETTING(double, skip_precision);      // largest half-width of what is taken so, in parts of it
SETTING(double, audited_fraction);    // of such spans
SETTING(double, mean_rate_bias);      // added to mean rates, in parts of them: what audits must find
SETTING(std::uint32_t, num_threads);  // that the run may take, see parts/; the results are the same for any
SETTING(std::uint64_t, free_search_values);      // that its search may visit at first; results are the same for any
SETTING(std::uint64_t, search_events_per_pair);  // of its turn, see skip/turns.inl; results are the same for any
SETTING(std::uint64_t, most_values_kept);        // of all states that it compares; results are the same for any
SETTING(std::uint64_t, most_logged);             // calls, draws and captured packets; results are the same for any
SETTING(std::uint32_t, first_packet_count);      // where 32-bit counts of packets begin; results are the same for any
SETTING(bool, force_full);  // run in the full engine even where the lean one would do; the results are the same

// Only where ports have priorities; see priorities.hpp.
SETTING(std::int32_t, full_frame_bytes);
SETTING(std::uint32_t, acknowledgement_priority);  // NONE: that of their queue pair
SETTING(std::uint32_t, trimmed_priority);          // only where switches trim
SETTING(std::uint32_t, cnp_priority);              // the same
SETTING(bool, acknowledgements_are_ecn_capable);
SETTING(bool, cnps_are_ecn_capable);
SETTING(std::int64_t, pause_quanta);  // 0: a pause lasts until it is ended
SETTING(bool, is_pause_refreshed);
SETTING(Picoseconds, pause_patience_ps);   // longer than any pause and its way
SETTING(Picoseconds, watchdog_detect_ps);  // NEVER: there is none
SETTING(Picoseconds, watchdog_restore_ps);
SETTING(bool, watchdog_drops);

// See path_choice.hpp.
SETTING(PathRule, path_rule);
SETTING(Picoseconds, flowlet_gap_ps);  // 0: the rule is asked for every packet
SETTING(std::int32_t, queue_step_bytes);
SETTING(std::int32_t, queue_levels);
SETTING(bool, is_tie_random);
SETTING(bool, control_has_choice);
SETTING(std::uint64_t, path_choice_key);
SETTING(std::uint64_t, max_flows);  // entries that a set of ports has for flowlets; 0: one for each flow

// Only for the rule Quality; see port_loads.hpp.
SETTING(Picoseconds, load_sampling_ps);
SETTING(std::int64_t, load_exponent);
SETTING(bool, load_falls_at_once);
SETTING(std::int64_t, load_bands);
SETTING(LoadRange, past_load);  // in parts of 2**16 of what a port sends at its rate
SETTING(std::int64_t, past_load_weight);
SETTING(LoadRange, future_load);  // bytes of the queue of one of the fastest ports
SETTING(std::int64_t, future_load_weight);

// Only for the rule Entropy; see entropy_cache.hpp.
SETTING(std::uint32_t, num_entropy_values);  // that a queue pair's packets may have; 0: they have none
SETTING(bool, recycles_entropy);             // REPS
SETTING(Picoseconds, entropy_freeze_ps);
SETTING(std::uint64_t, entropy_key);
