// A barrier for a few threads that meet every some microseconds: they spin for a while before they sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace netsim {

class Barrier {
  public:
    // With fewer cores than threads, one that spins keeps another from coming.
    explicit Barrier(std::uint32_t num_threads)
        : num_threads_(num_threads),
          num_spins_(num_threads <= std::thread::hardware_concurrency() ? MOST_SPINS : 0),
          num_missing_(num_threads) {}

    // Returns once all threads have come; what each wrote before is visible to all.
    void wait() {
        const std::uint32_t round = round_.load(std::memory_order_relaxed);
        if (num_missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            num_missing_.store(num_threads_, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return round_.notify_all();
        }
        for (int i = 0; i < num_spins_; i++) {
            if (round_.load(std::memory_order_acquire) != round) return;
            pause();
        }
        while (round_.load(std::memory_order_acquire) == round) round_.wait(round, std::memory_order_acquire);
    }

  private:
    static constexpr int MOST_SPINS = 4096;  // some tens of microseconds

    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    const std::uint32_t num_threads_;
    const int num_spins_;
    alignas(64) std::atomic<std::uint32_t> num_missing_;
    alignas(64) std::atomic<std::uint32_t> round_{0};
};

}  // namespace netsim
