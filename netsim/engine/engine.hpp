// The engine: takes events in order and does what each asks for.
//
// state/ holds the data of a run and what they do by themselves; events/ holds the engine's member functions, one idea
// a file, in the order in which they are declared here. The files of events/ are parts of engine.cpp, which alone
// includes them. The engine is a template so that what is rarely wanted (losses, telemetry, priorities, endpoint delay)
// costs nothing where it is not.
//
// It is compiled three times: as it is, with exact skip (engine_skipping.cpp), and for runs over several threads
// (engine_parted.cpp). What these need in events/ stands behind `if constexpr (SKIPS)` and `if constexpr (PARTS)`, so
// that a run without them runs what was compiled without them.
#pragma once

#include "parts/part.hpp"
#include "skip/rounds.hpp"
#include "skip/visitors.hpp"
#include "state/simulation.hpp"

#ifndef NETSIM_BUILD
#define NETSIM_BUILD plain
#define NETSIM_SKIPS false
#define NETSIM_PARTS false
#endif

namespace netsim {
inline namespace NETSIM_BUILD {

inline constexpr bool SKIPS = NETSIM_SKIPS;
inline constexpr bool PARTS = NETSIM_PARTS;

template <bool is_full>
class Engine final : public Simulation {
  public:
    explicit Engine(const Inputs& inputs);
    explicit Engine(Simulation&& run) : Simulation(std::move(run)) {}  // without skip, to go on with a run
    Outcome advance(std::uint64_t num_events) override;
    void settle() override;
    void start() override;

  private:
    Engine(const Engine&) = default;  // a part, at the start of a run

    // Whether a run has any of these features.
    bool uses(std::uint32_t any) const { return is_full && (features & any) != 0; }

    Outcome run(std::uint64_t stop_at, bool is_catching_up);
    void handle(std::uint64_t key);
    // Inlined by order: g++ 12 drops calls of a function that only prefetches, as having no effect.
    [[gnu::always_inline]] void prefetch_next_port();
    [[gnu::always_inline]] void prefetch_queues(std::uint64_t key, std::uint32_t next_port, const Packet& packet);
    void end_if_nothing_is_left();
    [[gnu::noinline]] void on_clock(ClockEvent event, std::uint32_t about);

    // events/forwarding.inl
    TrafficClass class_of(PacketType type) const;
    void arrive(std::uint32_t port, std::uint32_t packet);
    std::uint32_t next_port(std::uint32_t arrived, std::uint32_t packet);
    bool is_lost(PortStats& stats);
    [[gnu::noinline]] void drop(std::uint32_t port, std::uint32_t packet);
    void enqueue(std::uint32_t port, std::uint32_t packet);
    bool admit(std::uint32_t packet);
    bool admit_above_threshold(std::uint32_t ingress, std::int32_t level);
    void sample_load(const Port& out);
    [[gnu::noinline]] void settle_load(const Port& out);
    [[gnu::noinline]] void read_from_memory(std::uint32_t port, Port& out, const Packet& packet);
    void grow_queue(std::uint32_t port, Port& out, std::int32_t bytes);
    bool is_to_be_marked(PortStats& stats, std::int32_t queued_bytes, const MarkingCurve& curve);
    bool mark(PortStats& stats, Packet& packet, std::int32_t queued_bytes, const MarkingCurve& curve);
    void transmit(std::uint32_t port, Port& out, std::uint32_t packet);
    void count_transmission(std::uint32_t port, Port& out, TrafficClass cls);
    void leave_buffer(std::uint32_t ingress, std::int32_t bytes);
    std::uint32_t pause_generation(std::uint32_t port) const;
    void send_pause_frame(std::uint32_t port);
    void push_at_sender(Picoseconds time_ps, std::uint32_t port, std::uint32_t payload);
    [[gnu::noinline]] void obey_pause_frame(std::uint32_t port, bool is_pause);
    [[gnu::noinline]] void note_departure(std::uint32_t port, const Port& out, std::uint32_t packet);
    [[gnu::noinline]] void append_telemetry(std::uint32_t port, const Port& out, std::uint32_t packet);
    void wake(std::uint32_t port);
    void serve(std::uint32_t port, Port& out);
    bool has_sendable(std::uint32_t port, const Port& out) const;
    void wake_when_free(std::uint32_t port, Port& out);
    void kick(std::uint32_t port);

    // events/faults.inl
    void on_fault();
    void apply(const Change& change);
    void forget_pauses(std::uint32_t port);
    void clear(std::uint32_t port);
    [[gnu::noinline]] bool is_lost_on_the_way(std::uint32_t port, std::uint32_t packet);
    [[gnu::noinline]] bool has_way(std::uint32_t port, std::uint32_t packet);
    void lose(std::uint32_t port, std::uint32_t packet, DropCause cause);
    void on_reroute();
    void follow_path(std::uint32_t qp);
    void leave_ring(std::uint32_t qp, Sender& sender);
    std::uint32_t path_begin(std::uint32_t qp, std::uint32_t direction) const {
        if constexpr (is_full) return epochs.path_of(2 * qp + direction);
        return (2 * qp + direction) * settings.path_stride;
    }

    // events/priority_queues.inl
    bool has_priorities() const { return uses(USES_PRIORITIES); }
    std::uint8_t priority_of(std::uint32_t qp, PacketType type) const;
    bool is_ecn_capable(PacketType type) const;
    bool is_dropped_early(std::uint32_t port, const Packet& packet, const PriorityRule& rule,
                          std::int32_t queued_bytes);
    [[gnu::noinline]] void enqueue_by_priority(std::uint32_t port, std::uint32_t packet);
    bool admit_by_priority(std::uint32_t port, std::uint32_t priority, const Packet& packet);
    bool admit_lossless(std::uint32_t ingress, std::uint32_t priority, BufferPool& pool, std::int32_t bytes);
    bool admit_to_nic(std::uint32_t packet);
    void leave_nic(std::uint32_t port, const Packet& packet);
    [[gnu::noinline]] void leave_by_priority(std::uint32_t port, const Packet& packet);
    void leave_shared_buffer(std::uint32_t ingress, std::uint32_t port, std::uint32_t priority, std::int32_t bytes);
    [[gnu::noinline]] void serve_by_priority(std::uint32_t port, Port& out);
    std::uint32_t take_first(std::uint32_t port, std::uint32_t priority);
    std::uint32_t take_out(std::uint32_t port, std::uint32_t priority);
    void clear_priorities(std::uint32_t port);
    std::uint32_t next_priority(std::uint32_t port);
    [[gnu::noinline]] std::uint32_t first_waiting(std::uint32_t port) const;
    bool is_in_turn(std::uint32_t port, std::uint32_t priority);

    // events/priority_pauses.inl
    enum class PauseEvent : std::uint32_t { End, Begin, Expire, Refresh, Watch };  // in this order at one instant
    static bool is_pause_frame(std::uint32_t payload) {  // that arrives, and not a time that has come
        return (payload >> 3 & 7) <= static_cast<std::uint32_t>(PauseEvent::Begin);
    }
    Picoseconds pause_length_ps(std::uint32_t port) const;
    void schedule_pause_event(Picoseconds time_ps, std::uint32_t port, PauseEvent event, std::uint32_t priority);
    [[gnu::noinline]] void on_pause_event(std::uint32_t port, std::uint32_t payload);
    void send_priority_pause(std::uint32_t port, std::uint32_t priority, bool is_pause);
    void refresh_pause(std::uint32_t port, std::uint32_t priority);
    void begin_pause(std::uint32_t port, std::uint32_t priority);
    void end_pause(std::uint32_t port, std::uint32_t priority);
    void watch(std::uint32_t port, std::uint32_t priority);
    void look_at_storm(std::uint32_t port, std::uint32_t priority);
    void forget_priority_pauses(std::uint32_t port);

    // events/senders.inl
    std::uint32_t next_payload_bytes(const Sender& sender) const;
    bool is_window_open(std::uint32_t qp, const Sender& sender) const;
    bool may_send(std::uint32_t qp, const Sender& sender) const;
    Picoseconds earliest_send_ps(std::uint32_t qp, const Sender& sender) const;
    void resume(std::uint32_t qp);
    void schedule_pace(std::uint32_t qp, Sender& sender, Picoseconds time_ps);
    Ring& ring_of(std::uint32_t qp, const Sender& sender);
    void join_ring(std::uint32_t qp, Sender& sender);
    bool send_from_ring(Ring& ring, Port& out);
    void send_data(std::uint32_t qp, Sender& sender, Port& out);
    std::uint32_t emit_data(std::uint32_t qp, Sender& sender, Port& out, std::uint32_t sequence,
                            std::uint32_t payload_bytes);
    void finish_sending(std::uint32_t qp, Sender& sender, const Port& out, std::uint32_t packet,
                        std::uint32_t payload_bytes);
    void enter_transfer(Sender& sender, std::uint32_t transfer);
    std::uint32_t transfer_of_sequence(const Sender& sender, std::uint32_t sequence) const;
    Picoseconds next_timeout_ps(const Sender& sender) const;
    void on_pace(std::uint32_t qp);

    // events/retransmission.inl
    void on_acknowledgement(std::uint32_t packet);
    void acknowledge_all_below(std::uint32_t qp, Sender& sender, std::uint32_t sequence);
    void acknowledge(std::uint32_t qp, Sender& sender, std::uint32_t up_to_sequence);
    std::int64_t advance_oldest(Sender& sender, std::uint32_t up_to_sequence);
    bool is_idle(std::uint32_t qp, const Sender& sender) const;
    void restart_timeout(std::uint32_t qp, Sender& sender);
    void rewind(Sender& sender);
    void send_all_again(std::uint32_t qp, Sender& sender);
    void on_nak(std::uint32_t qp, std::uint32_t expected_sequence);
    void on_retransmission_timeout(std::uint32_t qp, Sender& sender);
    void fail(Sender& sender);

    // events/selective_repeat.inl
    bool is_selective() const { return uses(USES_SELECTIVE_REPEAT); }
    std::uint32_t payload_bytes_of(const Sender& sender, std::uint32_t sequence) const;
    bool has_selective_work(std::uint32_t qp, const Sender& sender) const;
    bool may_send_selectively(std::uint32_t qp, const Sender& sender) const;
    std::uint32_t first_lost(std::uint32_t qp, const Sender& sender) const;
    void note_transmission(std::uint32_t qp, const Sender& sender, std::uint32_t sequence);
    [[gnu::noinline]] void repeat_lost(std::uint32_t qp, Sender& sender, Port& out);
    void acknowledge_selectively(std::uint32_t qp, Sender& sender, std::uint32_t acknowledgement);
    [[gnu::noinline]] bool take_reported(std::uint32_t qp, Sender& sender, const ArrivalReport& report);
    bool take_arrivals_below(std::uint32_t qp, Sender& sender, std::uint32_t sequence);
    bool take_arrival(std::uint32_t qp, Sender& sender, std::uint32_t sequence);
    bool detect_losses(std::uint32_t qp, Sender& sender);
    bool is_flying(std::uint32_t qp, const Sender& sender, std::uint32_t sequence) const;
    void give_up(std::uint32_t qp, Sender& sender, std::uint32_t sequence);
    void give_up_all(std::uint32_t qp, Sender& sender);
    void on_reorder_deadline(std::uint32_t qp, Sender& sender);
    bool expect_next(Receiver& receiver);
    void answer_selectively(std::uint32_t packet);
    bool coalesces() const { return uses(USES_COALESCING); }
    [[gnu::noinline]] bool may_answer_later(const Packet& packet, bool is_new);
    [[gnu::noinline]] void report_arrivals(std::uint32_t acknowledgement);

    // events/credits.inl
    bool has_credits() const { return uses(USES_CREDITS); }
    std::int64_t wire_bytes_of(std::int64_t payload_bytes) const;
    std::int64_t& credit_count(std::uint32_t packet);
    void add_backlog(std::uint32_t qp, const Transfer& transfer);
    [[gnu::noinline]] void spend_credit(std::uint32_t qp, std::uint32_t packet);
    std::int64_t credit_target(std::uint32_t qp) const;
    bool lacks_credit(std::uint32_t qp, const Sender& sender) const;
    void ask_for_credit(std::uint32_t qp, Sender& sender);
    void forget_credit_target(std::uint32_t qp);
    [[gnu::noinline]] void on_credit(std::uint32_t packet);
    [[gnu::noinline]] void note_credit_target(std::uint32_t packet);
    void on_grant(std::uint32_t port);
    GrantTurn next_turn(std::uint32_t qp) const;
    void send_credit(std::uint32_t qp);

    // events/entropy.inl
    bool has_entropy() const { return uses(USES_ENTROPY); }
    std::uint16_t entropy_of(std::uint32_t packet) const;
    std::uint16_t& entropy_place(std::uint32_t packet);
    [[gnu::noinline]] void give_entropy(std::uint32_t qp, std::uint32_t packet);
    [[gnu::noinline]] void learn_from(std::uint32_t answer);
    void on_path_failure(std::uint32_t qp);

    // events/trimming.inl
    [[gnu::noinline]] bool is_to_be_trimmed(std::uint32_t port, std::int32_t queued_bytes, const Packet& packet) const;
    [[gnu::noinline]] void trim(std::uint32_t port, std::uint32_t packet);
    [[gnu::noinline]] void on_trim_nack(std::uint32_t packet);
    bool forget_transmission(std::uint32_t qp, const Sender& sender, const Packet& packet);

    // events/nic.inl
    std::int64_t payload_bytes_of(const Packet& packet) const;
    bool takes_time() const { return uses(USES_SLOW_HOSTS); }
    [[gnu::noinline]] void receive_slowly(std::uint32_t packet);
    void hand_on_later(std::uint32_t port, std::uint32_t packet);
    void on_drain(std::uint32_t port);
    void see(std::uint32_t packet);
    Picoseconds endpoint_delay_ps(std::uint32_t acknowledgement) const;
    [[gnu::noinline]] void note_round_trip(std::uint32_t transfer, Picoseconds rtt_ps, Picoseconds endpoint_ps);

    // events/receiver_not_ready.inl
    bool has_receive_queues() const { return uses(USES_RECEIVE_QUEUES); }
    [[gnu::noinline]] bool is_receiver_ready(const Packet& packet);
    [[gnu::noinline]] void refuse(std::uint32_t packet);
    [[gnu::noinline]] void on_refusal(std::uint32_t qp, std::uint32_t expected_sequence);

    // events/receivers.inl
    void deliver(std::uint32_t packet);
    void receive_data(std::uint32_t packet);
    void answer(std::uint32_t packet);
    void note_mark(std::uint32_t qp, Receiver& receiver);
    void deliver_transfer(Receiver& receiver);
    void make_room_for_answers();
    template <typename T>
    [[gnu::noinline]] void make_room(std::vector<T>& by_packet);
    void reply(std::uint32_t packet, PacketType type);

    // A law's clock stands still while its queue pair is taken at its mean rate.
    Picoseconds law_lag_ps([[maybe_unused]] std::uint32_t qp) const {
        if constexpr (SKIPS) return skip.law_lag_ps[qp];
        return 0;
    }
    Picoseconds law_now_ps(std::uint32_t qp) const { return now_ps - law_lag_ps(qp); }

    // events/laws.inl
    Picoseconds earliest_deadline_ps(std::uint32_t qp) const;
    FlowHeader& flow(std::uint32_t qp) { return reinterpret_cast<FlowHeader&>(flows[qp * flow_stride]); }
    const FlowHeader& flow(std::uint32_t qp) const { return const_cast<Engine*>(this)->flow(qp); }
    void obey(LawEvent event, std::uint32_t qp, std::int64_t status);
    void set_pace(Sender& sender, double rate_bps);
    void arm_timer(std::uint32_t qp, Sender& sender, Picoseconds time_ps);
    void on_timer(std::uint32_t qp);
    void call_due_timers(std::uint32_t qp);
    void notify_law(LawEvent event, Law::OnInstant handler, std::uint32_t qp);
    void take_notification(std::uint32_t qp);
    void call_due_notifications(std::uint32_t qp);
    void on_congestion_notification(std::uint32_t qp);

    // events/probes.inl
    void on_probe();
    Picoseconds previous_ps() const;
    void sample_port(std::uint32_t port);
    void sample_flow(std::uint32_t qp);

    // events/capture.inl
    void note(std::uint32_t packet, bool is_there);
    void note_leaving(std::uint32_t port, std::uint32_t packet);
    [[gnu::noinline]] void note_arrival(std::uint32_t port, std::uint32_t packet, bool is_at_its_end);

    // events/transfers.inl
    void schedule_transfer(Picoseconds time_ps, std::uint32_t row, bool is_end);
    void on_transfer(std::uint32_t row, bool is_end);
    Picoseconds cross_nvlink(std::uint32_t source, std::uint32_t destination, std::int64_t bytes);
    void append_to_queue_pair(std::uint32_t row);
    void expect_message(Receiver& receiver, std::uint32_t row);
    void complete(std::uint32_t row);
    void finish(std::uint32_t row);

    // What the hooks in events/ call is kept out of line, so that skip costs little where nothing repeats.

    // skip/components.inl
    template <typename Visit>
    void for_each_port_of(std::uint32_t qp, Visit visit) const;
    template <typename Visit>
    void for_each_choice_of(std::uint32_t qp, std::uint32_t direction, Visit visit) const;
    [[gnu::noinline]] void join_component(std::uint32_t qp);
    void merge_into_one(std::uint32_t qp);
    void absorb(std::uint32_t into, std::uint32_t index);
    std::uint32_t make_component();
    void free_component(std::uint32_t index);
    void add_to_component(std::uint32_t index, std::uint32_t qp);
    [[gnu::noinline]] void leave_component(std::uint32_t qp, bool is_last);
    void rebuild_component(std::uint32_t index);

    // skip/groups.inl
    void find_groups();
    [[gnu::noinline]] void note_entry(std::uint32_t port, std::uint32_t packet);
    void note_delivery(std::uint32_t port, std::uint32_t packet);
    [[gnu::noinline]] void disturb_port(std::uint32_t port);
    void rejoin_all();
    void search_all_anew();
    Picoseconds next_change_ps() const;

    // skip/captures.inl
    void log_capture(CapturedPacket& row);
    void repeat_captures(const Component& component, std::int64_t num_periods);
    void order_captures(Picoseconds after_ps);

    // skip/features_walk.inl
    template <typename Visitor>
    bool walk_priority(Visitor& visitor, std::uint32_t port, std::uint32_t priority);
    template <typename Visitor>
    bool walk_selective(Visitor& visitor, std::uint32_t qp);
    template <typename Visitor>
    bool walk_pair_features(Visitor& visitor, std::uint32_t qp);
    template <typename Visitor>
    bool walk_replies(Visitor& visitor, std::uint32_t qp);
    template <typename Visitor>
    bool walk_port_features(Visitor& visitor, std::uint32_t port);
    template <typename Visitor>
    bool walk_packet_features(Visitor& visitor, std::uint32_t packet_id, const Packet& packet);
    Picoseconds last_pending_feature_ps(const Component& component) const;

    // skip/state_walk.inl
    static constexpr std::int64_t END_OF_LIST = -1;
    bool marks_matter() const;
    template <typename Visitor>
    bool walk(Visitor& visitor, Component& component, bool is_whole);
    template <typename Visitor>
    bool walk_sender(Visitor& visitor, std::uint32_t qp);
    template <typename Visitor>
    bool walk_messages(Visitor& visitor, Sender& sender);
    template <typename Visitor>
    bool walk_receiver(Visitor& visitor, std::uint32_t qp);
    template <typename Visitor>
    bool walk_port(Visitor& visitor, std::uint32_t port);
    template <typename Visitor>
    bool walk_wire(Visitor& visitor, std::uint32_t port);
    template <typename Visitor>
    bool walk_queue(Visitor& visitor, std::uint32_t head);
    template <typename Visitor>
    bool walk_ring(Visitor& visitor, const Ring& ring);
    template <typename Visitor>
    bool walk_packet(Visitor& visitor, std::uint32_t packet);

    // skip/search.inl
    bool can_spend(std::size_t num_values) const;
    void look_at_components();
    void look_after(Picoseconds instant_ps);
    void start_search(Component& component, std::uint32_t index);
    void schedule_look(Component& component, std::uint32_t index);
    void stop_search(Component& component);
    void set_watched(Component& component, bool is_watched);
    void update_attention();
    std::uint32_t num_left(std::uint32_t qp) const;
    bool choose_reference(Component& component);
    void rest(Component& component);
    [[gnu::noinline]] void note_send(std::uint32_t qp, Sender& sender, std::uint32_t payload_bytes);
    void on_beat(Component& component, std::uint32_t index, Picoseconds instant_ps);
    void search_anew(Component& component);
    bool compare(Component& component, std::uint32_t index, Picoseconds instant_ps);
    void watch_wires(Component& component);
    void drop_arrived(Component& component, Picoseconds instant_ps);
    void keep_senders(Component& component, Picoseconds instant_ps);
    void keep_whole(Component& component, Picoseconds instant_ps);
    void keep(Component& component, Picoseconds instant_ps);
    void forget_state(Component& component);

    // skip/log.inl
    void start_log(Component& component);
    void end_log(Component& component);
    void forget_log(Component& component);
    bool has_room_to_log(Component& component);
    std::uint32_t component_of(EventIdentity identity) const;
    void log_event(EventIdentity identity);
    Component* logged_component(std::uint32_t index) const;
    [[gnu::noinline]] void log_call(LawEvent event, std::uint32_t qp, std::int64_t bytes = 0, Picoseconds rtt_ps = 0,
                                    Picoseconds endpoint_ps = 0, std::int32_t num_hops = 0, bool is_marked = false);
    [[gnu::noinline]] void log_window(std::uint32_t qp, double wanted_bytes, bool is_open) const;
    [[gnu::noinline]] void note_flight(std::uint32_t port, Picoseconds arrives_ps, std::uint32_t packet);
    void log_draw(std::uint32_t port, std::int32_t queued_bytes, std::uint32_t priority);
    [[gnu::noinline]] void disturb(std::uint32_t qp);
    void note_notification(LawEvent event, std::uint32_t qp);
    void note_pause_event(std::uint32_t port, bool is_frame, Picoseconds time_ps, std::uint32_t payload);
    void note_pause_frame_arrival(std::uint32_t port);
    void note_carrier(std::uint32_t port, std::uint32_t carrier);

    // skip/law_calls.inl
    void save_records(Component& component);
    void restore_records(const Component& component);
    void close_section(Component& component);
    std::vector<CallsOfPair> group_calls(const Component& component) const;
    std::int64_t repeat_calls(const Component& component, const std::vector<CallsOfPair>& groups,
                              std::int64_t num_periods);
    std::uint32_t place_of(const Component& component, std::uint32_t qp) const;
    std::string key_of_calls(const Component& component, const CallsOfPair& pair) const;
    std::int64_t repeat_calls_of(const Component& component, const CallsOfPair& pair, std::int64_t num_periods);
    bool repeat_call(const LawCall& call, Picoseconds time_ps, const WindowUse& use);
    std::int64_t call_again(const LawCall& call, Picoseconds time_ps);
    std::int64_t num_repeated(const Component& component, const std::vector<CallsOfPair>& groups) const;
    void repeat_draws(const Component& component, std::int64_t num_periods);
    void draw_again(const Draw& draw);

    // skip/windows.inl
    void prepare_mean_rates();
    bool is_bounded() const { return at_mean_rates.are_taken; }
    bool is_busy(std::uint32_t qp) const { return senders[qp].oldest_sequence != senders[qp].end_sequence; }
    Picoseconds window_length_ps(const Component& component) const;
    void arm_window(std::uint32_t index);
    void note_change(std::uint32_t index);
    void push_window(ComponentWindows& windows, std::uint32_t index, Picoseconds time_ps);
    void on_window(std::uint32_t index);
    bool end_window(Component& component);
    void open_window(PairWindows& pair, const Sender& sender);
    void close_window(PairWindows& pair, std::uint32_t qp, Picoseconds length_ps);
    void make_groups(const Component& component);
    void change_group(std::uint32_t qp, std::uint64_t group);
    std::uint32_t group_root(std::uint32_t place);

    // skip/spans.inl
    std::int64_t packets_left(std::uint32_t qp) const;
    double mean_packets(const MeanRate& rate, double span_ps) const;
    Picoseconds longest_span_ps(const Component& component) const;
    bool is_precise(const Component& component, Picoseconds span_ps, double factor) const;
    void consider_span(Component& component, std::uint32_t index);
    void begin_span(Component& component, std::uint32_t index, Picoseconds span_ps);
    Picoseconds last_arrival_ps(const Component& component) const;
    void rouse_from_span(std::uint32_t index, EventIdentity identity);
    void end_span(Component& component, std::uint32_t index, Picoseconds span_ps);
    void move_by(Component& component, Picoseconds span_ps);
    void move_pair(std::uint32_t qp, Picoseconds span_ps);
    void move_packet(std::uint32_t packet, Picoseconds span_ps);
    void move_port(std::uint32_t port, Picoseconds span_ps);
    void count_moved(std::uint32_t qp, std::uint32_t num_packets);
    void begin_audit(Component& component, Picoseconds span_ps);
    void end_audit(std::uint32_t index);

    // skip/intervals.inl
    void note_ready(std::uint32_t row);
    void note_append(std::uint32_t row);
    void note_finish(std::uint32_t row);
    Width width_of(const Component& component) const;
    void widen(Component& component, Picoseconds span_ps);

    // skip/sleep.inl
    [[gnu::noinline]] bool is_awake(std::uint64_t key);
    bool park(EventIdentity identity);
    bool is_timer_of_span(EventIdentity identity);
    void on_resume(std::uint32_t index);
    std::int64_t num_repeats(const Component& component, const std::vector<CallsOfPair>& groups, Picoseconds instant_ps,
                             Picoseconds event_ps) const;
    Picoseconds next_probe_ps(Picoseconds instant_ps) const;
    Picoseconds last_pending_ps(const Component& component) const;
    void sleep(Component& component, std::uint32_t index, Picoseconds instant_ps, Picoseconds event_ps);
    void rouse(std::uint32_t index);
    void rouse_before(std::uint32_t index, EventIdentity identity);
    void wake_up(Component& component, std::uint32_t index, std::int64_t num_periods);
    void move(Component& component, std::int64_t num_periods);
    void catch_up();
    bool take_caught(std::uint64_t& key);
    void rouse_all();

    // skip/rounds.inl
    void choose_rounds();
    [[gnu::noinline]] void note_round_beat();
    void on_round_beat();
    bool can_spend_on_rounds() const;
    std::uint64_t digest_of_round();
    void keep_round(std::uint64_t digest, std::uint32_t num_beats);
    void drop_round();
    bool compare_round();

    // skip/round_walk.inl
    template <typename Visitor>
    bool walk_run(Visitor& visitor);
    std::vector<FarEvents::Event> pending_events();
    void keep_events();
    bool compare_events(ComparingRound& comparing);
    bool is_shifted(ComparingRound& comparing, const KeptEvent& before, const KeptEvent& after);
    bool have_one_stride();
    Totals totals() const;

    // skip/round_rows.inl
    void log_finish(std::uint32_t row);
    void log_release(std::uint32_t row, Picoseconds ready_ps);
    void log_repeats(const Component& component, std::int64_t num_periods);
    void log_section(const Component& component, std::int64_t num_periods);
    bool are_alike(std::uint32_t row, std::uint32_t other) const;
    std::int64_t repeat_releases(std::int64_t num_rounds);
    bool release_again(std::int64_t round, std::size_t& num_told);
    bool is_released_again(std::int64_t round, const Release& release, std::uint32_t row, Picoseconds finish_ps);
    void take_back_releases(std::int64_t round, std::size_t num_told);
    void write_transfers(std::int64_t num_rounds);
    void write_transfer(std::uint32_t row, const Transfer& first, std::int64_t num_rounds);
    std::vector<std::vector<MessageUnderWay>> messages_under_way() const;
    void link_messages(const std::vector<std::vector<MessageUnderWay>>& messages, std::int64_t num_rounds);

    // skip/round_move.inl
    bool take_rounds(Picoseconds until_ps);
    std::int64_t repeat_round(Picoseconds until_ps);
    void move_round(std::int64_t num_rounds);
    void move_events(MovingRound& moving);
    void move_totals(std::int64_t num_rounds);
    void search_after_rounds(Picoseconds moved_ps);

    // skip/turns.inl
    void advance_in_turns(std::uint64_t stop_at);
    void begin_next_turn();
    std::uint64_t search_length() const;
    bool must_search() const;
    bool is_worth_it(std::uint64_t num_handled) const;
    void begin_plain_turn(std::uint64_t turn_length);
    void forget_components();
    void run_plainly(std::uint64_t stop_at);
    void begin_search();
    void note_pending();

    Turns turns;
    mutable Skipper skip;
    mutable Rounds rounds;

    // In a run over several threads each part is an engine of its own, the first the one that holds the others.

    // parts/windows.inl
    void take_part(std::uint32_t number, const std::vector<Engine*>& all, Crew& crew);
    Outcome advance_parts(std::uint64_t num_events);
    void handle_windows_in_threads();
    void handle_windows();
    void run_until(FarEvents::Event until, bool is_behind);
    bool is_quiet() const { return packets.num_live() == 0 && num_open == 0 && num_transfer_events == 0; }
    Report report() const;
    void write_report() { part.crew->reports[part.turn][part.number] = report(); }
    void handle_clock();
    bool nothing_is_pending() const;
    void schedule_clock(Picoseconds time_ps, ClockEvent event);
    void conclude();
    void settle_parts();
    FarEvents::Event last_event() const;
    void follow_up_to(FarEvents::Event end);
    void rethrow_first_failure();

    // parts/mail.inl
    void mail_packet(std::uint32_t port, Picoseconds arrives_ps, std::uint32_t packet);
    void mail_extras(Mailbox& box, std::uint32_t packet);
    void mail_event(std::uint32_t port, Picoseconds time_ps, EventIdentity identity);
    void mail_message(std::uint32_t row);
    void take_mail();
    void take_packets(const Mailbox& box);
    void require_to_come(Picoseconds time_ps) const;
    void take_extras(const PacketExtras& extras, const TelemetryRecord* hops, std::uint32_t packet);
    void take_message(const MessageMail& mail);

    // parts/results.inl
    bool sends(std::uint32_t port) const { return !PARTS || part.crew->cut.part_of_port[port] == part.number; }
    bool receives(std::uint32_t qp) const { return !PARTS || part.crew->cut.part_of_receiver[qp] == part.number; }
    Engine& part_that_sends(std::uint32_t port);
    std::uint64_t acknowledged_in_all() const;
    void add_up();
    void join_results();
    void join_port(std::uint32_t port);
    void join_priority(std::uint32_t port, std::uint32_t priority, Engine& sender, Engine& receiver);
    void join_queue(std::uint32_t& head, Engine& sender);
    void join_pairs();
    void join_rows();
    void join_counts(Engine& other);
    template <typename Row>
    void join_list(std::vector<Row> RunState::* list, std::vector<EventIdentity> Part::* order, std::size_t most_rows);
    void join_lists();

    Part part;
    std::vector<Engine*> parts;      // all, in each
    std::shared_ptr<Crew> own_crew;  // of the first
};

std::unique_ptr<Simulation> make_engine(const Inputs& inputs, bool is_full);
std::unique_ptr<Simulation> take_over(Simulation&& run, bool is_full);

}  // namespace NETSIM_BUILD

}  // namespace netsim
