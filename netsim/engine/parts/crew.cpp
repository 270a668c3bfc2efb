// What all parts do next.
#include "part.hpp"

namespace netsim {

Step Crew::next_step(std::uint32_t turn) const {
    FarEvents::Event next{NEVER, 0};
    bool is_quiet = true, has_failed = false;
    std::uint64_t num_events = num_clock_events;
    for (const Report& report : reports[turn]) {
        is_quiet &= report.is_quiet && !report.sends_packets;
        has_failed |= report.has_failed;
        num_events += report.num_events;
        if (!report.is_quiet) next = std::min(next, report.next);
        if (report.mail_ps != NEVER) next = std::min(next, {report.mail_ps, 0});
    }
    if (has_failed) return {Step::Failure};
    if (is_over) return {Step::Outcome};
    if (is_quiet) return {Step::End};
    const bool has_clock = !clocks.is_empty();
    if (next.time_ps == NEVER && !has_clock) return {Step::Stall};
    if (num_events >= stop_at) return {Step::Rest};
    if (has_clock && !(next < clocks.first())) return {Step::Clock, clocks.first()};
    const FarEvents::Event end{next.time_ps + lookahead_ps, 0};
    return {Step::Window, has_clock ? std::min(end, clocks.first()) : end};
}

}  // namespace netsim
