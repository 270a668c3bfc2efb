// Windows: what each part handles by itself, and where all meet.
//
// A wire takes time, so what one part does cannot matter in another before the lookahead has passed. From the earliest
// event of all parts on, each handles its events for that long; then all meet, and each takes what the others have
// sent it. A rare event of the kind Clock (probe, fault, rerouting, time limit) is handled by the first part for all,
// when all have come so far.
//
// Order: events of one instant are handled by kind and id, but what an event adds to its own instant comes behind it,
// whatever its identity. So an event's place is its instant and the highest identity of this instant so far.
//
// End: a part without packets and without transfers that could send one is quiet. It waits where it became so, because
// the run may have ended there: the run ends with the event after which all parts are quiet.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "../engine.hpp"

namespace netsim {

template <bool is_full>
void Engine<is_full>::start() {
    Simulation::start();
    if constexpr (PARTS) {
        Cut cut = make_cut(*this, settings.num_threads);
        const Picoseconds lookahead = lookahead_ps(*this, cut);
        queue = EventQueue();
        num_unfinished = num_transfer_events = 0;
        not_cut = cut.obstacle;
        num_parts = cut.num_parts;
        for (std::uint32_t port = 0; port < ports.size(); port++) {
            ports[port].is_cut = cut.part_of_port[port] != cut.part_of_port[port_stats[port].peer];
        }
        auto crew = std::make_shared<Crew>(std::move(cut), lookahead);
        parts.push_back(this);
        for (std::uint32_t number = 1; number < num_parts; number++) {
            std::unique_ptr<Engine> other(new Engine(*this));
            parts.push_back(other.get());
            crew->others.push_back(std::move(other));
        }
        own_crew = std::move(crew);
        part_of_port = own_crew->cut.part_of_port;
        for (std::uint32_t number = 0; number < num_parts; number++) parts[number]->take_part(number, parts, *own_crew);
        for (const FarEvents::Event& event : first_clock_events()) own_crew->clocks.push(event);
    }
}

// Begin as a part, with the transfers that start in it.
template <bool is_full>
void Engine<is_full>::take_part(std::uint32_t number, const std::vector<Engine*>& all, Crew& crew) {
    parts = all;
    part.number = number;
    part.crew = &crew;
    for (std::uint32_t row = 0; row < transfers.size(); row++) {
        if (crew.cut.part_of_row[row] != number) continue;
        num_unfinished++;
        push_when_ready(row);
    }
    write_report();
    part.turn ^= 1;
}

template <bool is_full>
Outcome Engine<is_full>::advance_parts(std::uint64_t num_events) {
    if (outcome != Outcome::Running) return outcome;
    Crew& crew = *own_crew;
    if (crew.is_joined) throw std::logic_error("a run over several threads does not go on once it was settled");
    crew.stop_at = crew.num_clock_events + num_events;
    for (const Engine* engine : parts) crew.stop_at += engine->queue.num_events();
    handle_windows_in_threads();
    conclude();
    return outcome;
}

// All parts begin once there is a thread for each.
template <bool is_full>
void Engine<is_full>::handle_windows_in_threads() {
    enum Signal { Wait, Begin, GiveUp };
    std::atomic<Signal> signal = Wait;
    const auto tell = [&](Signal told) {
        signal.store(told);
        signal.notify_all();
    };
    std::vector<std::jthread> threads;
    try {
        for (Engine* engine : parts) {
            if (engine == this) continue;
            threads.emplace_back([engine, &signal] {
                signal.wait(Wait);
                if (signal.load() == Begin) engine->handle_windows();
            });
        }
    } catch (const std::system_error&) {
        tell(GiveUp);
        throw std::runtime_error("no more threads can be started here; next: lower engine.threads");
    }
    tell(Begin);
    handle_windows();
}

// A part's thread: window by window, until all stop.
template <bool is_full>
void Engine<is_full>::handle_windows() {
    Crew& crew = *part.crew;
    for (Step step = crew.next_step(part.turn ^ 1); step.goes_on(); step = crew.next_step(part.turn ^ 1)) {
        part.mail_ps = NEVER;
        part.sends_packets = false;
        try {
            take_mail();
            run_until(step.until, step.kind == Step::Clock);
        } catch (...) {
            part.failure = std::current_exception();
        }
        write_report();
        crew.barrier.wait();
        if (step.kind == Step::Clock) {
            if (part.number == 0) handle_clock();
            crew.barrier.wait();
        }
        part.turn ^= 1;
    }
}

// Handle events before an instant and identity; a quiet part only if it may fall behind no longer.
template <bool is_full>
void Engine<is_full>::run_until(FarEvents::Event until, bool is_behind) {
    const Picoseconds last_ps = until.identity > 0 ? until.time_ps : until.time_ps - 1;
    const auto prefetch_packet = [this](std::uint64_t key) { packets.prefetch(payload_of(key)); };
    while (is_behind || !is_quiet() || part.sends_packets) {
        if (queue.is_slot_exhausted()) {
            if (!queue.open_slot_until(last_ps, prefetch_packet)) return;
            if (queue.slot_start_ps() > LAST_INSTANT) [[unlikely]]
                throw std::out_of_range("an instant beyond the clock");
            queue.look_ahead(prefetch_packet);
        }
        const std::uint64_t key = queue.peek();
        FarEvents::Event event{queue.time_of(key), identity_of(key)};
        if (event.time_ps == part.last.time_ps) event.identity = std::max(event.identity, part.last.identity);
        if (!(event < until)) return;
        queue.take();
        part.last = event;
        now_ps = event.time_ps;
        prefetch_next_port();
        handle(key);
    }
}

template <bool is_full>
Report Engine<is_full>::report() const {
    Report report;
    report.next = {queue.next_ps(), 0};
    if (!queue.is_slot_exhausted()) report.next.identity = identity_of(queue.peek());
    if (report.next.time_ps == part.last.time_ps) {
        report.next.identity = std::max(report.next.identity, part.last.identity);
    }
    report.mail_ps = part.mail_ps;
    report.num_events = queue.num_events();
    report.sends_packets = part.sends_packets;
    report.is_quiet = is_quiet();
    report.has_failed = part.failure != nullptr;
    return report;
}

// Handle an event for all parts, which have come so far.
template <bool is_full>
void Engine<is_full>::handle_clock() {
    Crew& crew = *part.crew;
    const FarEvents::Event clock = crew.clocks.first();
    crew.clocks.pop();
    crew.num_clock_events++;
    crew.before_clock_ps = last_event().time_ps;
    for (Engine* engine : parts) {
        engine->part.last = clock;
        engine->now_ps = clock.time_ps;
    }
    for (Engine* engine : parts) {
        if (static_cast<ClockEvent>(id_of(clock.identity)) == PROBE && engine != this) continue;
        try {
            engine->on_clock(static_cast<ClockEvent>(id_of(clock.identity)), 0);
        } catch (...) {
            engine->part.failure = std::current_exception();
        }
    }
    crew.is_over = outcome != Outcome::Running;
    for (Engine* engine : parts) engine->write_report();
}

// For a probe: whether there is no event but itself.
template <bool is_full>
bool Engine<is_full>::nothing_is_pending() const {
    if constexpr (PARTS) {
        return part.crew->clocks.is_empty() && std::ranges::all_of(parts, [](const Engine* engine) {
                   return engine->queue.size() == 0 && engine->part.mail_ps == NEVER;
               });
    }
    return queue.size() == skip.num_void_resumes;
}

template <bool is_full>
void Engine<is_full>::schedule_clock(Picoseconds time_ps, ClockEvent event) {
    const EventIdentity identity = identify(EventKind::Clock, event);
    if constexpr (!PARTS) return queue.push(time_ps, identity);
    if (part.number == 0) part.crew->clocks.push({time_ps, identity});
}

// All threads have stopped.
template <bool is_full>
void Engine<is_full>::conclude() {
    const Step::Kind why = own_crew->next_step(part.turn ^ 1).kind;
    if (why == Step::Failure) rethrow_first_failure();
    if (why == Step::End) {
        follow_up_to(last_event());
        const auto has_finished = [](const Engine* engine) { return engine->num_unfinished == 0; };
        outcome = std::ranges::all_of(parts, has_finished) ? Outcome::Finished : Outcome::Stalled;
    }
    if (why == Step::Stall) {
        follow_up_to({NEVER, 0});
        outcome = Outcome::Stalled;
    }
    if (why != Step::Outcome) now_ps = last_event().time_ps;
    add_up();
    if (outcome != Outcome::Running) join_results();
}

// What is left of a window does not matter to a record that ends before the run.
template <bool is_full>
void Engine<is_full>::settle_parts() {
    if (own_crew->is_joined) return;
    follow_up_to(last_event());
    now_ps = last_event().time_ps;
    add_up();
    join_results();
}

// The last event of all parts.
template <bool is_full>
FarEvents::Event Engine<is_full>::last_event() const {
    FarEvents::Event last{0, 0};
    for (const Engine* engine : parts) last = std::max(last, engine->part.last);
    return last;
}

// Let parts that have fallen behind handle what comes before the end.
template <bool is_full>
void Engine<is_full>::follow_up_to(FarEvents::Event end) {
    for (Engine* engine : parts) engine->take_mail();
    for (Engine* engine : parts) engine->run_until(end, true);
}

// A quiet part that has fallen behind may fail earlier than the others.
template <bool is_full>
void Engine<is_full>::rethrow_first_failure() {
    Engine* first = nullptr;
    for (Engine* engine : parts) {
        if (engine->part.failure && (!first || engine->part.last < first->part.last)) first = engine;
    }
    for (Engine* engine : parts) {
        if (engine->part.failure || !engine->is_quiet() || engine->part.sends_packets) continue;
        try {
            engine->run_until(first->part.last, true);
        } catch (...) {
            engine->part.failure = std::current_exception();
            first = engine;
        }
    }
    now_ps = first->part.last.time_ps;
    std::rethrow_exception(first->part.failure);
}

}  // namespace netsim
