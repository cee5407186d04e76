// Threads that wait to be given work, and share it out by items.
//
// They wait passively, on condition variables. What they do must not depend on which
// of them does it: results go to places of their own and are combined in order.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace branchwise {

class ThreadPool {
  public:
    // `worth_sharing`: less work than this, in cells looked at, is not handed over.
    ThreadPool(unsigned n_threads, size_t worth_sharing)
        : n_threads_(std::max(n_threads, 1u)), worth_sharing_(worth_sharing) {}
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    ~ThreadPool() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            dismissed_ = true;
        }
        called_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    unsigned size() const { return n_threads_; }
    bool shares(size_t work) const { return n_threads_ > 1 && work >= worth_sharing_; }

    // Enough pieces that a slow one at the end does not keep all waiting.
    size_t pieces(size_t work) const { return shares(work) ? 4 * size_t(n_threads_) : 1; }

    // do_item(item, member) for every item below n; members below size() may have
    // scratch of their own. The first exception comes back once all are done.
    template <typename DoItem>
    void each(size_t n, size_t work, const DoItem& do_item) {
        if (n < 2 || !shares(work)) {
            for (size_t item = 0; item < n; ++item) do_item(item, 0u);
            return;
        }
        std::atomic<size_t> next{0};
        run([&](unsigned member) {
            try {
                for (size_t item; (item = next.fetch_add(1)) < n;) do_item(item, member);
            } catch (...) {
                next = n;  // the others need not begin another
                throw;
            }
        });
    }

    // work(member) on every thread of the pool; the caller waits, and calls `meanwhile`
    // every 50 ms. Whatever happens, it comes back only when all threads are done.
    void run(const std::function<void(unsigned)>& work,
             const std::function<void()>& meanwhile = nullptr) {
        if (!muster()) return work(0);
        std::exception_ptr unwatched;
        std::unique_lock<std::mutex> lock(mutex_);
        work_ = &work;
        failure_ = nullptr;
        busy_ = unsigned(threads_.size());
        ++turn_;
        called_.notify_all();
        while (busy_) {
            if (!meanwhile || unwatched) {
                finished_.wait(lock);
                continue;
            }
            if (finished_.wait_for(lock, std::chrono::milliseconds(50)) ==
                std::cv_status::no_timeout)
                continue;
            lock.unlock();
            try {
                meanwhile();
            } catch (...) {
                unwatched = std::current_exception();
            }
            lock.lock();
        }
        work_ = nullptr;
        if (unwatched) std::rethrow_exception(unwatched);
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    // Start the threads, or as many as can be had; false if there are none.
    bool muster() {
        if (mustered_) return !threads_.empty();
        mustered_ = true;
        threads_.reserve(n_threads_);
        try {
            for (unsigned member = 0; member < n_threads_; ++member)
                threads_.emplace_back([this, member] { serve(member); });
        } catch (const std::system_error&) {  // fewer will do
        }
        return !threads_.empty();
    }

    void serve(unsigned member) {
        std::unique_lock<std::mutex> lock(mutex_);
        for (size_t seen = 0;;) {
            called_.wait(lock, [&] { return dismissed_ || turn_ != seen; });
            if (dismissed_) return;
            seen = turn_;
            const auto* work = work_;
            lock.unlock();
            std::exception_ptr failure;
            try {
                (*work)(member);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            if (failure && !failure_) failure_ = failure;
            if (--busy_ == 0) finished_.notify_one();
        }
    }

    const unsigned n_threads_;
    const size_t worth_sharing_;
    bool mustered_ = false;
    std::vector<std::thread> threads_;

    std::mutex mutex_;
    std::condition_variable called_, finished_;
    const std::function<void(unsigned)>* work_ = nullptr;
    size_t turn_ = 0;
    unsigned busy_ = 0;
    bool dismissed_ = false;
    std::exception_ptr failure_;
};

}  // namespace branchwise
