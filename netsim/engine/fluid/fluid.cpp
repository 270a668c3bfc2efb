#include "fluid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace netsim::fluid {

namespace {

constexpr Picoseconds PARTS_OF_A_TRANSFER = 256;  // by which its end may be late in a crowd

}  // namespace

const std::size_t Fluid::BYTES_PER_TRANSFER = sizeof(Row);

void Fluid::Width::widen(const Width& other) {
    early_ps = std::max(early_ps, other.early_ps);
    late_ps = std::max(late_ps, other.late_ps);
}

Fluid::Fluid(Paths paths, const Settings& settings)
    : paths_(std::move(paths)),
      settings_(settings),
      shares_(paths_, settings.most_uncrowded),
      senders_(paths_.num_pairs()) {
    rows_.reserve(settings.num_transfers);
}

void Fluid::add_transfers(const Rows& rows) {
    const auto number = [](std::span<const std::int64_t> column, std::size_t i) {
        return column.empty() || column[i] < 0 ? NONE : static_cast<std::uint32_t>(column[i]);
    };
    const auto note_gpu = [](std::vector<Link>& links, std::uint32_t gpu) {
        if (gpu != NONE && gpu >= links.size()) links.resize(gpu + 1);
    };
    for (std::size_t i = 0; i < rows.bytes.size(); i++) {
        const bool crosses_fabric = static_cast<Medium>(rows.medium[i]) == Medium::Fabric;
        rows_.push_back({
            .bytes = rows.bytes[i],
            .earliest_ps = rows.start[i],
            .delay_ps = rows.delay[i],
            .low_ps = rows.start[i],
            .high_ps = rows.start[i],
            .qp = crosses_fabric ? number(rows.qp, i) : NONE,
            .num_dependencies = static_cast<std::uint32_t>(rows.num_dependencies[i]),
            .nvlink_source = number(rows.nvlink_source, i),
            .nvlink_destination = number(rows.nvlink_destination, i),
        });
        note_gpu(nvlink_out_, rows_.back().nvlink_source);
        note_gpu(nvlink_in_, rows_.back().nvlink_destination);
    }
    for (const std::int64_t row : rows.dependency_row) dependency_row_.push_back(static_cast<std::uint32_t>(row));
}

void Fluid::start(const Widening& alone, const Widening& held) {
    alone_ = alone;
    held_ = held;
    if (dependent_offset_.empty()) {
        turn_dependencies_round();
    } else {
        forget_run();
    }
    for (std::uint32_t row = 0; row < rows_.size(); row++) {
        if (rows_[row].num_dependencies == 0) set_free(row);
    }
}

void Fluid::forget_run() {
    for (Row& row : rows_) {
        row.ready_ps = row.start_ps = row.finish_ps = NOT_YET;
        row.low_ps = row.high_ps = row.earliest_ps;
        row.held_ps = 0;
        row.num_dependencies = 0;
        row.next = NONE;
    }
    for (const std::uint32_t row : dependent_row_) rows_[row].num_dependencies++;
    for (std::uint32_t qp = 0; qp < senders_.size(); qp++) {
        if (senders_[qp].sending != NONE) shares_.remove(qp);
    }
    senders_.assign(senders_.size(), {});
    nvlink_out_.assign(nvlink_out_.size(), {});
    nvlink_in_.assign(nvlink_in_.size(), {});
    events_ = {};
    crowd_ends_.clear();
    now_ps_ = 0;
    num_events_ = 0;
    finished_bytes_ = 0;
}

// What each transfer waits for becomes what waits for each.
void Fluid::turn_dependencies_round() {
    dependent_offset_.assign(rows_.size() + 2, 0);
    for (const std::uint32_t row : dependency_row_) dependent_offset_[row + 2]++;
    std::partial_sum(dependent_offset_.begin(), dependent_offset_.end(), dependent_offset_.begin());
    dependent_row_.resize(dependency_row_.size());
    std::size_t place = 0;
    for (std::uint32_t row = 0; row < rows_.size(); row++) {
        for (std::uint32_t i = 0; i < rows_[row].num_dependencies; i++) {
            dependent_row_[dependent_offset_[dependency_row_[place++] + 1]++] = row;
        }
    }
    std::vector<std::uint32_t>().swap(dependency_row_);
}

// Shares are worked out once all of an instant's events have been handled.
bool Fluid::advance(std::uint64_t num_events) {
    while (num_events-- > 0) {
        if (!shares_.are_settled() && (events_.empty() || events_.top().time_ps > now_ps_)) settle_shares();
        if (events_.empty() || events_.top().time_ps > settings_.time_limit_ps) return false;
        const Event event = events_.top();
        events_.pop();
        now_ps_ = event.time_ps;
        num_events_++;
        handle(event);
    }
    return true;
}

void Fluid::handle(const Event& event) {
    switch (event.kind) {
        case Kind::Sent:
            if (senders_[event.id].end_ps == now_ps_) end_sending(event.id);
            return;
        case Kind::SentInCrowd:
            return end_crowd();
        case Kind::Delivered:
            return finish(event.id);
        case Kind::Crossed:
            return rows_[event.id].qp == NONE ? finish(event.id) : append(event.id);
        case Kind::Ready:
            return become_ready(event.id);
    }
}

void Fluid::push(Picoseconds time_ps, Kind kind, std::uint32_t id) {
    if (time_ps > LAST_INSTANT) throw std::out_of_range("an instant beyond the clock");
    events_.push({time_ps, kind, id});
}

void Fluid::set_free(std::uint32_t number) {
    Row& row = rows_[number];
    const auto ready_after = [&](Picoseconds done_ps) { return std::max(done_ps, row.earliest_ps) + row.delay_ps; };
    row.low_ps = ready_after(row.low_ps);
    row.high_ps = ready_after(row.high_ps);
    push(ready_after(now_ps_), Kind::Ready, number);
}

Fluid::Width Fluid::width_of(const Row& row, Picoseconds at_ps) const {
    const auto within = [](Picoseconds width_ps) { return std::clamp<Picoseconds>(width_ps, 0, LAST_INSTANT); };
    return {within(at_ps - row.low_ps), within(row.high_ps - at_ps)};
}

void Fluid::become_ready(std::uint32_t number) {
    Row& row = rows_[number];
    row.ready_ps = now_ps_;
    if (row.qp == NONE) row.start_ps = now_ps_;
    if (row.nvlink_source != NONE) return cross_nvlink(number);
    row.qp == NONE ? finish(number) : append(number);
}

// Each GPU's link out carries its transfers one after another, and so does each GPU's link in.
void Fluid::cross_nvlink(std::uint32_t number) {
    Row& row = rows_[number];
    const Picoseconds duration_ps = transfer_ps(row.bytes, settings_.nvlink_rate_bps);
    Link& out = nvlink_out_[row.nvlink_source];
    Link& in = nvlink_in_[row.nvlink_destination];
    Width width = width_of(row, now_ps_);
    for (Link* link : {&out, &in}) {
        if (link->until_ps > now_ps_) width.widen(link->width);
        link->until_ps = std::max(link->until_ps, now_ps_) + duration_ps;
    }
    out.width = in.width = width;
    const Picoseconds end_ps = std::max(out.until_ps, in.until_ps);
    row.low_ps = end_ps - width.early_ps;
    row.high_ps = end_ps + width.late_ps;
    push(end_ps, Kind::Crossed, number);
}

// Behind those of its queue pair that became ready before it.
void Fluid::append(std::uint32_t number) {
    Row& row = rows_[number];
    Sender& sender = senders_[row.qp];
    const bool is_first = sender.sending == NONE;
    if (is_first) {
        sender.sending = number;
    } else {
        rows_[sender.last].next = number;
    }
    sender.last = number;
    const Width width = width_of(row, now_ps_);
    is_first ? void(sender.width = width) : sender.width.widen(width);
    if (is_first) begin(row.qp);
}

void Fluid::begin(std::uint32_t qp) {
    Sender& sender = senders_[qp];
    Row& row = rows_[sender.sending];
    row.start_ps = now_ps_;
    sender.left_bytes = static_cast<double>(paths_.wire_bytes(row.bytes));
    sender.since_ps = now_ps_;
    sender.end_ps = NOT_YET;
    shares_.add(qp);
}

void Fluid::settle_shares() {
    shares_.settle([&](std::span<const std::uint32_t> flows) { widen_group(flows); },
                   [&](std::uint32_t qp, const Share& share) {
                       progress(qp);
                       expect_end(qp, share);
                   });
}

// One event for all ends of a crowd that fall together; an end that is the same as before is pending already.
void Fluid::expect_end(std::uint32_t qp, const Share& share) {
    const Picoseconds end_ps = end_of_sending(qp, share);
    if (std::exchange(senders_[qp].end_ps, end_ps) == end_ps) return;
    if (!share.is_crowded) return push(end_ps, Kind::Sent, qp);
    std::vector<std::uint32_t>& ends = crowd_ends_[end_ps];
    if (ends.empty()) push(end_ps, Kind::SentInCrowd, 0);
    ends.push_back(qp);
}

void Fluid::end_crowd() {
    const auto ended = crowd_ends_.extract(now_ps_);
    for (const std::uint32_t qp : ended.mapped()) {
        if (senders_[qp].end_ps == now_ps_) end_sending(qp);
    }
}

// In a crowd those of like transfers fall together: it is filled anew whenever one ends.
Picoseconds Fluid::end_of_sending(std::uint32_t qp, const Share& share) const {
    const Sender& sender = senders_[qp];
    const double left_ps = std::ceil(std::max(sender.left_bytes, 0.0) / share.rate);
    if (left_ps > static_cast<double>(LAST_INSTANT)) throw std::out_of_range("beyond the clock");
    const Picoseconds end_ps = now_ps_ + static_cast<Picoseconds>(left_ps);
    if (!share.is_crowded) return end_ps;
    const auto least_ps = static_cast<std::uint64_t>((end_ps - rows_[sender.sending].start_ps) / PARTS_OF_A_TRANSFER);
    const auto step_ps = static_cast<Picoseconds>(std::bit_floor(std::max<std::uint64_t>(least_ps, 1)));
    return (end_ps + step_ps - 1) / step_ps * step_ps;
}

// Who comes later leaves the others alone for longer, and the other way round.
void Fluid::widen_group(std::span<const std::uint32_t> flows) {
    if (flows.size() < 2) return;
    Width widest;
    for (const std::uint32_t qp : flows) widest.widen(senders_[qp].width);
    widest.early_ps = widest.late_ps = std::max(widest.early_ps, widest.late_ps);
    for (const std::uint32_t qp : flows) {
        if (shares_.is_held(qp)) senders_[qp].width.widen(widest);
    }
}

// What has been sent since the share was last another.
void Fluid::progress(std::uint32_t qp) {
    Sender& sender = senders_[qp];
    const Picoseconds elapsed_ps = now_ps_ - sender.since_ps;
    const Share& share = shares_.of(qp);
    sender.left_bytes -= share.rate * static_cast<double>(elapsed_ps);
    if (share.is_held) rows_[sender.sending].held_ps += elapsed_ps;
    sender.since_ps = now_ps_;
}

// For how long others had a say in when a transfer ends at `end_ps`: as long as it was held; if nothing held it, what
// acknowledgements have cost it.
Picoseconds Fluid::uncertain_ps(const Row& row, Picoseconds end_ps) const {
    const Picoseconds lost_ps = end_ps - row.start_ps - paths_.alone_ps(row.qp, row.bytes);
    const Picoseconds others_ps = row.held_ps > 0 ? row.held_ps : std::max<Picoseconds>(lost_ps, 0);
    return others_ps + paths_.latency_ps(row.qp, row.bytes);
}

// What its own sending leaves open.
Fluid::Width Fluid::width_of_sending(const Row& row, Picoseconds end_ps) const {
    const Widening& by = row.held_ps > 0 ? held_ : alone_;
    const auto part = [&](double factor) {
        const double width_ps = factor * static_cast<double>(uncertain_ps(row, end_ps));
        return static_cast<Picoseconds>(std::min(width_ps, static_cast<double>(LAST_INSTANT) / 4));
    };
    return {part(by.early), part(by.late)};
}

// A transfer cannot be done sooner than alone; no bound lies beyond the clock.
void Fluid::end_sending(std::uint32_t qp) {
    Sender& sender = senders_[qp];
    const std::uint32_t number = sender.sending;
    Row& row = rows_[number];
    progress(qp);
    shares_.remove(qp);
    const Picoseconds end_ps = now_ps_ + paths_.latency_ps(qp, row.bytes);
    const Width own = width_of_sending(row, end_ps);
    const Picoseconds alone_ps = row.start_ps - sender.width.early_ps + paths_.alone_ps(qp, row.bytes);
    const Picoseconds soonest_ps = std::max<Picoseconds>(std::min(alone_ps, end_ps), 0);
    row.low_ps = std::max(end_ps - sender.width.early_ps - own.early_ps, soonest_ps);
    row.high_ps = end_ps + std::min(sender.width.late_ps + own.late_ps, LAST_INSTANT - end_ps);
    push(end_ps, Kind::Delivered, number);
    sender.sending = row.next;
    sender.end_ps = NOT_YET;
    if (sender.sending == NONE) return;
    sender.width.widen(width_of(row, end_ps));
    begin(qp);
}

void Fluid::finish(std::uint32_t number) {
    Row& row = rows_[number];
    row.finish_ps = now_ps_;
    finished_bytes_ += row.bytes;
    for (std::uint32_t i = dependent_offset_[number]; i < dependent_offset_[number + 1]; i++) {
        Row& waiting = rows_[dependent_row_[i]];
        waiting.low_ps = std::max(waiting.low_ps, row.low_ps);
        waiting.high_ps = std::max(waiting.high_ps, row.high_ps);
        if (--waiting.num_dependencies == 0) set_free(dependent_row_[i]);
    }
}

std::int64_t Fluid::value(const std::string& column, std::size_t number) const {
    const Row& row = rows_[number];
    const bool is_done = row.finish_ps != NOT_YET;
    if (column == "ready_ps") return row.ready_ps;
    if (column == "start_ps") return row.start_ps;
    if (column == "finish_ps") return row.finish_ps;
    if (column == "finish_low_ps") return is_done ? row.low_ps : NOT_YET;
    if (column == "finish_high_ps") return is_done ? row.high_ps : NOT_YET;
    if (column == "held_ps") return row.held_ps;
    if (column == "latency_ps") return row.qp == NONE ? 0 : paths_.latency_ps(row.qp, row.bytes);
    if (column == "uncertain_ps") return is_done && row.qp != NONE ? uncertain_ps(row, row.finish_ps) : 0;
    if (column == "acknowledged_ps")
        return is_done && row.qp != NONE ? row.finish_ps + paths_.answer_ps(row.qp) : row.finish_ps;
    throw std::invalid_argument(column);
}

std::vector<std::string> Fluid::transfer_column_names() {
    return {"ready_ps", "start_ps", "finish_ps", "acknowledged_ps", "finish_low_ps", "finish_high_ps"};
}

}  // namespace netsim::fluid
