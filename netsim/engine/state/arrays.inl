// The arrays a run is made from, ARRAY(type, name). This is the list of them: Inputs has these fields, and the bindings
// take exactly these names from netsim/engine_inputs.
//
// Shapes: P ports, N nodes, Q queue pairs, H entries of a path (its hops and an end mark). Transfers come in parts:
// transfer_arrays.inl.

ARRAY(std::int64_t, port_rate_bps);   // P
ARRAY(std::int64_t, port_delay_ps);   // P
ARRAY(std::int64_t, port_peer);       // P: the same link's other direction
ARRAY(std::int64_t, port_node);       // P: the node that sends through it
ARRAY(std::int64_t, port_is_host);    // P
ARRAY(std::int64_t, pause_above);     // P: bytes in the ingress buffer behind the port
ARRAY(std::int64_t, resume_below);    // P
ARRAY(std::int64_t, ingress_limit);   // P
ARRAY(std::int64_t, pause_response);  // P: picoseconds
ARRAY(std::int64_t, drain_rate);      // P: bps at which a host takes what its NIC received; 0: at once
ARRAY(double, loss_fraction);         // P
ARRAY(std::int64_t, grant_rate);      // P: bps at which the NIC behind a port grants; empty without receiver credits

// Host links: L of PCIe, each of some ports of one host. Empty where they limit nothing.
ARRAY(std::uint32_t, host_link);            // P x 2: what a port's data cross; NONE on switches
ARRAY(std::int64_t, host_link_read_rate);   // L: bps of payload from memory to NICs
ARRAY(std::int64_t, host_link_write_rate);  // L: and back

ARRAY(std::uint32_t, path);  // Q x 2 x H, each path ended by NONE; then those of later epochs

// Next hops, of E sets of paths, the first set's before the second's: F = 2 Q flows (a queue pair's data, then its
// acknowledgements), A attachments, S switches, K sets of ports, X ports of all these. Empty where paths are fixed.
ARRAY(std::uint32_t, next_hop_switch);  // P: number of the switch behind the wire, NONE for a host
ARRAY(std::uint32_t, next_hop_row);     // E x F: the destination's first entry of next_hop_set
ARRAY(std::uint32_t, next_hop_exit);    // E x F x 2: ports straight to the destination, the hash path's first
ARRAY(std::uint32_t, next_hop_set);     // E x A x S
ARRAY(std::uint32_t, next_hop_offset);  // K + 1
ARRAY(std::uint32_t, next_hop_port);    // X
ARRAY(std::uint32_t, next_hop_weight);  // X

// Routing epochs: E after the first, S sets of paths, X flows of all sets that differ from the first epoch.
ARRAY(std::int64_t, epoch_time);          // E: picoseconds
ARRAY(std::int64_t, epoch_set);           // E: 0 for the paths of the first epoch
ARRAY(std::uint32_t, path_set_offset);    // S + 1: where each set's flows begin; set 0 has none
ARRAY(std::uint32_t, path_set_flow);      // X: 2 * queue pair + direction
ARRAY(std::uint32_t, path_set_position);  // X: where the flow's path begins in `path`

// Faults: K changes of ports, in the order of time.
ARRAY(std::int64_t, fault_time);    // K: picoseconds
ARRAY(std::int64_t, fault_effect);  // K: Effect
ARRAY(std::int64_t, fault_port);    // K
ARRAY(double, fault_value);         // K: the new value

// Priorities: C of them in ascending order. Empty where ports have data and control only.
ARRAY(std::int64_t, priority_weight);          // C: of what strict priorities leave; 0: strict
ARRAY(std::int64_t, priority_is_lossless);     // C
ARRAY(double, priority_alpha);                 // C
ARRAY(std::int64_t, priority_ecn_min);         // C: bytes
ARRAY(std::int64_t, priority_ecn_max);         // C: bytes
ARRAY(double, priority_ecn_max_fraction);      // C
ARRAY(std::int64_t, priority_ecn_drops);       // C: whether it drops what would be marked and is not ECN-capable
ARRAY(std::int64_t, priority_output_reserve);  // C: bytes of each queue, if lossy
ARRAY(std::int64_t, priority_input_reserve);   // P x C: bytes behind the port, if lossless
ARRAY(std::int64_t, priority_input_headroom);  // P x C
ARRAY(std::int64_t, priority_resume_offset);   // P x C
ARRAY(std::int64_t, priority_shared_buffer);   // N: bytes
ARRAY(std::int64_t, priority_headroom_pool);   // N: bytes
ARRAY(std::int64_t, priority_queue_pair);      // Q: priority of its data

ARRAY(std::int64_t, retransmission_wait);  // until the first sending again, the second, ..., and failure; one or more
ARRAY(std::int64_t, reorder_window);       // Q: picoseconds; empty under go-back-N
ARRAY(std::int64_t, credit_window);        // Q: bytes on the wire; empty without receiver credits
ARRAY(std::byte, flow);                    // Q records of the law, the engine's header filled in

ARRAY(std::int64_t, probed_port);    // ports sampled
ARRAY(std::int64_t, probed_flow);    // queue pairs sampled
ARRAY(std::int64_t, captured_flow);  // Q: whether it is captured; empty if none is
