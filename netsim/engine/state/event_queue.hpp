// The event queue: a wheel of slots, each a cache line of seven keys and a link to its overflow.
//
// A slot is unordered until its turn comes; then its keys are copied out and sorted. Its width adapts between 256 ps
// and 4 ns so that a slot holds 5 to 12 events, the range where sorting networks are at their best; the width never
// changes the order of events. What lies beyond the wheel waits in a heap and joins its slot when that opens.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "event.hpp"
#include "far_events.hpp"
#include "huge_pages.hpp"
#include "prefetch.hpp"
#include "sorting_network.hpp"

namespace netsim {

class EventQueue {
  public:
    EventQueue() : chunks_(NUM_SLOTS), tail_(NUM_SLOTS), open_(1 << 12), spare_(1 << 12) {
        for (std::uint32_t slot = 0; slot < NUM_SLOTS; slot++) tail_[slot] = slot * 8;
        grow_overflow();
    }

    // `time_ps` is not before the event last taken.
    [[gnu::always_inline]] void push(Picoseconds time_ps, EventIdentity identity) {
        const std::int64_t slot = time_ps >> width_log2_;
        const std::int64_t distance = slot - current_slot_;
        if (distance <= 0) [[unlikely]]
            return push_into_open_slot(time_ps, identity);
        if (distance >= NUM_SLOTS) [[unlikely]]
            return far_.push({time_ps, identity});
        const std::uint32_t index = slot & (NUM_SLOTS - 1);
        std::uint32_t position = tail_[index];
        occupied_[index / 64] |= 1ull << (index % 64);
        num_near_++;
        if (position % 8 == KEYS_PER_CHUNK) [[unlikely]]
            position = append_chunk(position);
        const std::uint64_t offset = static_cast<std::uint64_t>(time_ps) & ((1ull << width_log2_) - 1);
        chunks_[position / 8].keys[position % 8] = offset << (64 - OFFSET_BITS) | identity;
        tail_[index] = position + 1;
    }

    bool is_slot_exhausted() const { return next_ == num_open_; }
    std::size_t size() const { return num_near_ + far_.size() + (num_open_ - next_); }

    // Open the next slot that holds events, and call with each of its keys, in no order; false when there is none.
    template <typename Visit>
    bool open_next_slot(Visit visit);

    // The same for a slot that begins up to `last_ps`.
    template <typename Visit>
    bool open_slot_until(Picoseconds last_ps, Visit visit);

    // No event comes before it; NEVER if none is left.
    Picoseconds next_ps() const {
        if (!is_slot_exhausted()) return time_of(open_[next_]);
        const std::int64_t slot = next_slot();
        return slot == NEVER ? NEVER : slot << width_log2_;
    }

    // The key of the next event in the open slot, or of one a few behind it; any key if there is none.
    std::uint64_t peek(std::uint32_t num_behind = 0) const { return open_[next_ + num_behind]; }
    std::uint64_t take() { return open_[next_++]; }
    Picoseconds time_of(std::uint64_t key) const {
        return base_ps_ + static_cast<Picoseconds>(key >> (64 - OFFSET_BITS));
    }

    Picoseconds slot_start_ps() const { return base_ps_; }

    // When the event happened that was taken before the last one.
    Picoseconds previous_ps() const { return next_ > 1 ? time_of(open_[next_ - 2]) : last_of_closed_slot_ps_; }

    // From here on what is pushed for before an instant and identity is handed out by `take_caught`, in order.
    void begin_catching_up(Picoseconds time_ps, EventIdentity identity) { catch_up_to_ = {time_ps, identity}; }
    void end_catching_up() { catch_up_to_ = {-1, 0}; }
    bool take_caught(FarEvents::Event& event) {
        if (caught_.is_empty()) return false;
        event = caught_.first();
        caught_.pop();
        return true;
    }

    // Take every event out, to begin anew after an instant at which none is left.
    std::vector<FarEvents::Event> take_all();
    void begin_after(Picoseconds time_ps);

    // Call with each key of the slot behind the open one that is in the first or the last of its cache lines, and fetch
    // those of the slot behind that.
    template <typename Visit>
    [[gnu::always_inline]] void look_ahead(Visit visit) const;

    std::uint64_t num_events() const { return num_events_ - (num_open_ - next_); }  // taken so far

  private:
    static constexpr std::int64_t NUM_SLOTS = 1 << 13;
    static constexpr std::uint32_t KEYS_PER_CHUNK = 7;
    static constexpr int MIN_WIDTH_LOG2 = 8, MAX_WIDTH_LOG2 = OFFSET_BITS;
    static constexpr std::uint64_t FEWEST_EVENTS = 5, MOST_EVENTS = 12, SLOTS_BETWEEN_ADAPTATIONS = 2048;

    struct alignas(64) Chunk {
        std::uint64_t keys[KEYS_PER_CHUNK];
        std::uint64_t link;  // tail position in the chunk filled before this one, or the next free chunk
    };

    void push_into_open_slot(Picoseconds time_ps, EventIdentity identity);
    std::uint32_t append_chunk(std::uint32_t full_position);
    void grow_overflow();
    std::int64_t nearest_occupied_slot() const { return occupied_slot_behind(current_slot_); }
    std::int64_t occupied_slot_behind(std::int64_t slot) const;
    std::int64_t next_slot() const;
    void drain_slot(std::int64_t slot, std::vector<std::uint64_t>& keys, std::uint32_t& count);
    void close_slot();
    template <typename Visit>
    [[gnu::always_inline]] void open_slot(std::int64_t slot, Visit visit);
    void adapt_width();
    void set_width(int width_log2);
    void take_near(std::vector<FarEvents::Event>& events);

    Array<Chunk> chunks_;              // the first NUM_SLOTS belong to their slots, the rest are overflow
    std::vector<std::uint32_t> tail_;  // per slot: 8 * chunk + keys in it
    std::array<std::uint64_t, NUM_SLOTS / 64> occupied_{};
    std::uint32_t free_chunk_ = 0;             // 0: none, since chunk 0 is a slot's own
    std::vector<std::uint64_t> open_, spare_;  // the second for sorting the first
    std::uint32_t next_ = 0, num_open_ = 0;
    int width_log2_ = (MIN_WIDTH_LOG2 + MAX_WIDTH_LOG2) / 2;
    std::int64_t current_slot_ = -1;
    Picoseconds base_ps_ = 0;  // start of the open slot
    Picoseconds last_of_closed_slot_ps_ = 0;
    std::size_t num_near_ = 0;
    FarEvents far_;
    FarEvents caught_;
    FarEvents::Event catch_up_to_{-1, 0};
    std::uint64_t num_events_ = 0, num_slots_opened_ = 0;
    std::uint64_t events_at_adaptation_ = 0, slots_at_adaptation_ = 0;
};

inline void EventQueue::push_into_open_slot(Picoseconds time_ps, EventIdentity identity) {
    if (FarEvents::Event{time_ps, identity} < catch_up_to_) [[unlikely]]
        return caught_.push({time_ps, identity});
    const std::uint64_t key = static_cast<std::uint64_t>(time_ps - base_ps_) << (64 - OFFSET_BITS) | identity;
    if (num_open_ + 2 * NETWORK_WIDTH >= open_.size()) open_.resize(2 * open_.size());
    std::uint32_t place = num_open_++;
    for (; place > next_ && open_[place - 1] > key; place--) open_[place] = open_[place - 1];
    open_[place] = key;
    open_[num_open_] = 0;
    num_events_++;
}

inline std::uint32_t EventQueue::append_chunk(std::uint32_t full_position) {
    if (!free_chunk_) grow_overflow();
    const std::uint32_t chunk = free_chunk_;
    free_chunk_ = static_cast<std::uint32_t>(chunks_[chunk].link);
    chunks_[chunk].link = full_position;
    return chunk * 8;
}

inline void EventQueue::grow_overflow() {
    const std::size_t first = chunks_.size();
    chunks_.resize(first == NUM_SLOTS ? first + 1024 : 2 * first);
    for (std::size_t chunk = first; chunk < chunks_.size(); chunk++) {
        chunks_[chunk].link = chunk + 1 < chunks_.size() ? chunk + 1 : 0;
    }
    free_chunk_ = static_cast<std::uint32_t>(first);
}

inline std::int64_t EventQueue::occupied_slot_behind(std::int64_t slot) const {
    if (!num_near_) return NEVER;
    const std::uint32_t start = (slot + 1) & (NUM_SLOTS - 1);
    std::uint32_t word = start / 64;
    std::uint64_t bits = occupied_[word] & (~0ull << (start % 64));
    while (!bits) {
        word = (word + 1) % occupied_.size();
        bits = occupied_[word];
    }
    const std::uint32_t found = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    return slot + 1 + ((found - start) & (NUM_SLOTS - 1));
}

template <typename Visit>
inline void EventQueue::look_ahead(Visit visit) const {
    const std::int64_t next = occupied_slot_behind(current_slot_);
    if (next == NEVER) return;
    const std::uint32_t index = next & (NUM_SLOTS - 1);
    const std::uint32_t last = tail_[index];
    const Chunk& chunk = chunks_[last / 8];
    for (std::uint32_t i = 0; i < last % 8; i++) visit(chunk.keys[i]);
    if (last / 8 != index) {
        for (const std::uint64_t key : chunks_[index].keys) visit(key);
    }
    const std::uint32_t behind = occupied_slot_behind(next) & (NUM_SLOTS - 1);
    prefetch(chunks_.data(), behind);
    prefetch(chunks_.data(), tail_[behind] / 8);
}

inline std::int64_t EventQueue::next_slot() const {
    const std::int64_t near = nearest_occupied_slot();
    return far_.is_empty() ? near : std::min(near, far_.first().time_ps >> width_log2_);
}

inline void EventQueue::drain_slot(std::int64_t slot, std::vector<std::uint64_t>& keys, std::uint32_t& count) {
    const std::uint32_t index = slot & (NUM_SLOTS - 1);
    std::uint32_t position = tail_[index];
    occupied_[index / 64] &= ~(1ull << (index % 64));
    tail_[index] = index * 8;
    const std::uint32_t before = count;
    for (;;) {
        Chunk& chunk = chunks_[position / 8];
        for (std::uint32_t i = 0; i < KEYS_PER_CHUNK; i++) keys[count + i] = chunk.keys[i];
        count += position % 8;
        if (position / 8 == index) [[likely]]
            break;
        if (count + 2 * NETWORK_WIDTH >= keys.size()) keys.resize(2 * keys.size());
        const std::uint32_t freed = position / 8;
        position = static_cast<std::uint32_t>(chunk.link);
        chunk.link = free_chunk_;
        free_chunk_ = freed;
    }
    num_near_ -= count - before;
}

template <typename Visit>
inline bool EventQueue::open_next_slot(Visit visit) {
    close_slot();
    const std::int64_t slot = next_slot();
    if (slot == NEVER) return false;
    open_slot(slot, visit);
    return true;
}

template <typename Visit>
inline bool EventQueue::open_slot_until(Picoseconds last_ps, Visit visit) {
    close_slot();
    const std::int64_t slot = next_slot();
    if (slot == NEVER || slot << width_log2_ > last_ps) return false;
    open_slot(slot, visit);
    return true;
}

inline void EventQueue::close_slot() {
    if (num_open_ > 0) last_of_closed_slot_ps_ = time_of(open_[num_open_ - 1]);
    if (num_slots_opened_ - slots_at_adaptation_ >= SLOTS_BETWEEN_ADAPTATIONS) [[unlikely]]
        adapt_width();
}

// What the visitor fetches comes while the keys are sorted.
template <typename Visit>
inline void EventQueue::open_slot(std::int64_t slot, Visit visit) {
    current_slot_ = slot;
    base_ps_ = slot << width_log2_;
    next_ = num_open_ = 0;
    drain_slot(slot, open_, num_open_);
    while (!far_.is_empty() && far_.first().time_ps >> width_log2_ == slot) {
        const auto offset = static_cast<std::uint64_t>(far_.first().time_ps - base_ps_);
        open_[num_open_++] = offset << (64 - OFFSET_BITS) | far_.first().identity;
        far_.pop();
        if (num_open_ + 2 * NETWORK_WIDTH >= open_.size()) open_.resize(2 * open_.size());
    }
    for (std::uint32_t i = 0; i < num_open_; i++) visit(open_[i]);
    if (spare_.size() < open_.size()) spare_.resize(open_.size());
    sort_keys(open_.data(), num_open_, spare_.data());
    open_[num_open_] = open_[num_open_ + 1] = 0;
    num_events_ += num_open_;
    num_slots_opened_++;
}

inline void EventQueue::adapt_width() {
    const std::uint64_t events = num_events_ - events_at_adaptation_;
    const std::uint64_t slots = num_slots_opened_ - slots_at_adaptation_;
    events_at_adaptation_ = num_events_;
    slots_at_adaptation_ = num_slots_opened_;
    if (events < FEWEST_EVENTS * slots && width_log2_ < MAX_WIDTH_LOG2) set_width(width_log2_ + 1);
    if (events > MOST_EVENTS * slots && width_log2_ > MIN_WIDTH_LOG2) set_width(width_log2_ - 1);
}

inline void EventQueue::take_near(std::vector<FarEvents::Event>& events) {
    std::vector<std::uint64_t> keys(open_.size());
    for (std::int64_t slot = nearest_occupied_slot(); slot != NEVER; slot = nearest_occupied_slot()) {
        std::uint32_t count = 0;
        drain_slot(slot, keys, count);
        for (std::uint32_t i = 0; i < count; i++) {
            const auto offset = static_cast<Picoseconds>(keys[i] >> (64 - OFFSET_BITS));
            events.push_back({(slot << width_log2_) + offset, identity_of(keys[i])});
        }
    }
}

inline std::vector<FarEvents::Event> EventQueue::take_all() {
    std::vector<FarEvents::Event> events;
    for (; next_ < num_open_; next_++) {
        events.push_back({time_of(open_[next_]), identity_of(open_[next_])});
        num_events_--;
    }
    take_near(events);
    for (; !far_.is_empty(); far_.pop()) events.push_back(far_.first());
    return events;
}

inline void EventQueue::begin_after(Picoseconds time_ps) {
    current_slot_ = (time_ps >> width_log2_) - 1;
    base_ps_ = current_slot_ << width_log2_;
    next_ = num_open_ = 0;
    last_of_closed_slot_ps_ = time_ps;
}

// Put every near event back under a new width. What is pushed next may still lie in the slot that was open last.
inline void EventQueue::set_width(int width_log2) {
    std::vector<FarEvents::Event> events;
    take_near(events);
    const Picoseconds resume_ps = current_slot_ << width_log2_;
    width_log2_ = width_log2;
    current_slot_ = (resume_ps >> width_log2_) - 1;
    base_ps_ = current_slot_ << width_log2_;
    next_ = num_open_ = 0;
    for (const auto& event : events) push(event.time_ps, event.identity);
}

}  // namespace netsim
