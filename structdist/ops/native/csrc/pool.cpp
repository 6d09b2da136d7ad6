#include "pool.h"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace structdist {
namespace {

constexpr auto kLongestSpin = std::chrono::microseconds(30);

class Pool {
 public:
  // False if the helpers are taken, or cannot be had.
  bool run(int64_t count, int64_t num_threads, Piece piece, void* context) {
    std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (!turn.owns_lock() || !enlist(num_threads - 1)) return false;
    piece_ = piece, context_ = context, count_ = count;
    next_.store(0, std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      vacancies_ = num_threads - 1;
      ++job_;
    }
    wake_.notify_all();
    take_pieces();
    wait_for_helpers();
    return true;
  }

 private:
  bool enlist(int64_t wanted) {
    try {
      for (; helpers_ < wanted; ++helpers_) std::thread(&Pool::help, this).detach();
    } catch (...) {  // no more threads to be had
    }
    return helpers_ > 0;
  }

  void take_pieces() {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;)
      piece_(context_, i);
  }

  void wait_for_helpers() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      vacancies_ = 0;  // who has not come by now is not needed
    }
    const auto patience = std::chrono::steady_clock::now() + kLongestSpin;
    while (at_work_.load(std::memory_order_acquire) > 0)
      if (std::chrono::steady_clock::now() > patience) {
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [&] { return at_work_.load(std::memory_order_acquire) == 0; });
      }
  }

  void help() {
    uint64_t last_job = 0;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return job_ != last_job && vacancies_ > 0; });
        last_job = job_;
        --vacancies_;
        at_work_.fetch_add(1, std::memory_order_acq_rel);
      }
      take_pieces();
      std::lock_guard<std::mutex> lock(mutex_);
      if (at_work_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.notify_one();
    }
  }

  std::mutex turn_;   // held by the caller whose job runs
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_, done_;
  uint64_t job_ = 0;
  int64_t vacancies_ = 0;
  std::atomic<int64_t> at_work_{0};
  // Of the job that runs: set before its number changes.
  Piece piece_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
  int64_t helpers_ = 0;  // guarded by turn_
};

std::atomic<Pool*> pool{nullptr};  // never destroyed: helpers outlive everything

// The child of a fork has no helpers, and locks in any state: it begins anew.
int begin_anew_in_children() {
#ifdef _WIN32
  return 0;  // where there are no forks
#else
  return pthread_atfork(nullptr, nullptr,
                        [] { pool.store(nullptr, std::memory_order_release); });
#endif
}

Pool& the_pool() {
  static const int registered = begin_anew_in_children();
  (void)registered;
  Pool* known = pool.load(std::memory_order_acquire);
  if (known) return *known;
  Pool* fresh = new Pool;
  if (pool.compare_exchange_strong(known, fresh)) return *fresh;
  delete fresh;
  return *known;
}

}  // namespace

void run_pieces(int64_t count, int64_t num_threads, Piece piece, void* context) {
  num_threads = std::min(num_threads, count);
  if (num_threads > 1 && the_pool().run(count, num_threads, piece, context)) return;
  for (int64_t i = 0; i < count; ++i) piece(context, i);
}

}  // namespace structdist
