// Growth by several threads: the top of the tree by one, then subtrees by all.
//
// Every subtree is grown exactly as one thread would grow it, over rows that no other
// subtree touches, so the tree does not depend on the number of threads. Threads take
// the largest subtrees first; the caller's thread waits passively and keeps the watch.

#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "problem.hpp"

namespace branchwise {

// Subtrees for each thread, so that a large one at the end does not keep all waiting.
constexpr size_t subtrees_per_thread = 32;
// Nodes below this are not worth handing over.
constexpr size_t least_rows = 2048;

// A Grower has: Job (with n and node), plant(), split(job, jobs), adopt(job, grown) and
// take(). `make` makes one; growers share nothing but the rows of their jobs.
template <typename Grower>
class Team {
  public:
    using Job = typename Grower::Job;

    Team(const Watch& watch, unsigned n_threads) : watch_(watch), n_threads_(n_threads) {}

    template <typename Make>
    std::vector<Grown> grow(Make make) {
        Grower first = make();
        std::vector<Job> jobs;
        first.plant(jobs);
        if (n_threads_ <= 1) {
            finish(first, jobs, watch_);
            return one(first.take());
        }
        if (!grow_top(first, jobs)) return one(first.take());
        std::vector<Grown> grown = one(first.take());
        grow_subtrees(make, jobs, grown);
        return grown;
    }

  private:
    static std::vector<Grown> one(Grown&& tree) {
        std::vector<Grown> grown;
        grown.push_back(std::move(tree));
        return grown;
    }

    // Depth first, so that few rows are in flight; false if the watch gave up.
    static bool finish(Grower& grower, std::vector<Job>& jobs, const Watch& watch) {
        Vigil vigil(watch);
        while (!jobs.empty()) {
            Job job = std::move(jobs.back());
            jobs.pop_back();
            if (!vigil.go_on(grower.work(job), grower.n_nodes())) return false;
            grower.split(job, jobs);
        }
        return true;
    }

    // Split the largest open node until there are enough for everybody.
    bool grow_top(Grower& grower, std::vector<Job>& jobs) {
        const auto smaller = [](const Job& a, const Job& b) { return a.n < b.n; };
        Vigil vigil(watch_);
        while (!jobs.empty() && jobs.size() < subtrees_per_thread * n_threads_) {
            auto largest = std::max_element(jobs.begin(), jobs.end(), smaller);
            if (largest->n < least_rows) break;
            std::swap(*largest, jobs.back());
            Job job = std::move(jobs.back());
            jobs.pop_back();
            if (!vigil.go_on(grower.work(job), grower.n_nodes())) return false;
            grower.split(job, jobs);
        }
        std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.n > b.n; });
        return true;
    }

    template <typename Make>
    void grow_subtrees(Make make, std::vector<Job>& jobs, std::vector<Grown>& grown) {
        const unsigned n_threads = std::min<unsigned>(n_threads_, unsigned(std::max<size_t>(jobs.size(), 1)));
        std::vector<int64_t> roots(jobs.size(), -1);
        std::vector<unsigned> owners(jobs.size(), 0);
        std::vector<Grown> parts(n_threads);
        std::vector<std::exception_ptr> failures(n_threads);
        std::atomic<size_t> next{0};
        std::atomic<size_t> n_nodes{grown[0].nodes.size()};
        std::atomic<bool> stopped{false};
        std::mutex mutex;
        std::condition_variable done;
        unsigned running = n_threads;
        const Watch keep_on = [&](size_t) { return !stopped.load(); };

        const auto work = [&](unsigned me) {
            try {
                Grower grower = make();
                for (size_t i; !stopped.load() && (i = next.fetch_add(1)) < jobs.size();) {
                    const size_t before = grower.n_nodes();
                    roots[i] = grower.adopt(jobs[i], grown[0]);
                    owners[i] = me;
                    std::vector<Job> stack;
                    stack.push_back(std::move(jobs[i]));
                    stack.back().node = roots[i];
                    if (!finish(grower, stack, keep_on)) break;
                    n_nodes += grower.n_nodes() - before;
                }
                parts[me] = grower.take();
            } catch (...) {
                failures[me] = std::current_exception();
                stopped = true;
            }
            const std::lock_guard<std::mutex> lock(mutex);
            --running;
            done.notify_all();
        };
        std::vector<int64_t> nodes;  // jobs are moved from; remember what they are for
        for (const Job& job : jobs) nodes.push_back(job.node);
        std::vector<std::thread> threads;
        for (unsigned me = 0; me < n_threads; ++me) threads.emplace_back(work, me);
        std::exception_ptr unwatched;
        {
            std::unique_lock<std::mutex> lock(mutex);
            while (running) {
                done.wait_for(lock, std::chrono::milliseconds(50));
                if (!running || stopped) continue;
                lock.unlock();
                try {
                    if (!watch_(n_nodes)) stopped = true;
                } catch (...) {
                    unwatched = std::current_exception();
                    stopped = true;
                }
                lock.lock();
            }
        }
        for (auto& thread : threads) thread.join();
        if (unwatched) std::rethrow_exception(unwatched);
        for (auto& failure : failures)
            if (failure) std::rethrow_exception(failure);
        for (size_t i = 0; i < nodes.size(); ++i) {
            if (roots[i] < 0) continue;
            Node& node = grown[0].nodes[size_t(nodes[i])];
            node.graft = int32_t(owners[i]) + 1;
            node.first_child = uint32_t(roots[i]);
        }
        for (auto& part : parts) grown.push_back(std::move(part));
    }

    const Watch& watch_;
    const unsigned n_threads_;
};

}  // namespace branchwise
