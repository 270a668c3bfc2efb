// A 4-ary heap for the few events too far ahead for the wheel: timeouts, slow timers, late starts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "event.hpp"

namespace netsim {

class FarEvents {
  public:
    struct Event {
        Picoseconds time_ps;
        EventIdentity identity;
        bool operator<(const Event& other) const {
            return time_ps < other.time_ps || (time_ps == other.time_ps && identity < other.identity);
        }
    };

    bool is_empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    const Event& first() const { return heap_.front(); }

    void push(const Event& event) {
        heap_.push_back(event);
        std::size_t hole = heap_.size() - 1;
        for (; hole > 0 && event < heap_[(hole - 1) / 4]; hole = (hole - 1) / 4) heap_[hole] = heap_[(hole - 1) / 4];
        heap_[hole] = event;
    }

    void pop() {
        const Event last = heap_.back();
        heap_.pop_back();
        if (heap_.empty()) return;
        std::size_t hole = 0;
        for (std::size_t child = 1; child < heap_.size(); child = 4 * hole + 1) {
            const auto end = heap_.begin() + static_cast<std::ptrdiff_t>(std::min(child + 4, heap_.size()));
            const auto least = std::min_element(heap_.begin() + static_cast<std::ptrdiff_t>(child), end);
            if (!(*least < last)) break;
            heap_[hole] = *least;
            hole = static_cast<std::size_t>(least - heap_.begin());
        }
        heap_[hole] = last;
    }

  private:
    std::vector<Event> heap_;
};

}  // namespace netsim
