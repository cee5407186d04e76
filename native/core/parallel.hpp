// Growth by several threads: the top of the tree node by node, then subtrees by all.
//
// At the top, the grower shares a large node's columns or rows out to the pool; then
// every subtree is grown exactly as one thread would grow it, over rows that no other
// subtree touches. So the tree does not depend on the number of threads. Threads take
// the largest subtrees first; the caller's thread waits passively and keeps the watch.

#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/thread_pool.hpp"
#include "core/problem.hpp"

namespace branchwise {

// A Grower has: Job (with n and node), plant(), split(job, jobs), adopt(job, grown) and
// take(). `make` makes one that may share its work out to a pool; growers share nothing
// but the rows of their jobs.
template <typename Grower>
class Team {
  public:
    using Job = typename Grower::Job;

    Team(const Problem& problem, const Watch& watch, ThreadPool& pool)
        : watch_(watch), pool_(pool), least_rows_(problem.worth_sharing / cells_per_row) {}

    template <typename Make>
    std::vector<Grown> grow(Make make) {
        Grower first = make(pool_);
        std::vector<Job> jobs;
        first.plant(jobs);
        const bool alone = pool_.size() == 1;
        const bool goes_on = alone ? finish(first, jobs, watch_) : grow_top(first, jobs);
        std::vector<Grown> grown;
        grown.push_back(first.take());
        if (goes_on && !jobs.empty()) grow_subtrees(make, jobs, grown);
        return grown;
    }

  private:
    // Subtrees for each thread, so that a large one at the end does not keep all waiting.
    static constexpr size_t subtrees_per_thread = 32;
    // Nodes are not handed over that have fewer rows than would be worth sharing out
    // if rows had this many columns.
    static constexpr size_t cells_per_row = 128;

    // Depth first, so that few rows are in flight; false if the watch gave up.
    static bool finish(Grower& grower, std::vector<Job>& jobs, const Watch& watch) {
        InterruptCheck interrupts(watch);
        while (!jobs.empty()) {
            Job job = std::move(jobs.back());
            jobs.pop_back();
            if (!interrupts.go_on(grower.work(job), grower.n_nodes())) return false;
            grower.split(job, jobs);
        }
        return true;
    }

    // Split the largest open node until there are enough for everybody.
    bool grow_top(Grower& grower, std::vector<Job>& jobs) {
        const auto smaller = [](const Job& a, const Job& b) { return a.n < b.n; };
        InterruptCheck interrupts(watch_);
        while (!jobs.empty() && jobs.size() < subtrees_per_thread * pool_.size()) {
            auto largest = std::max_element(jobs.begin(), jobs.end(), smaller);
            if (largest->n < least_rows_) break;
            std::swap(*largest, jobs.back());
            Job job = std::move(jobs.back());
            jobs.pop_back();
            if (!interrupts.go_on(grower.work(job), grower.n_nodes())) return false;
            grower.split(job, jobs);
        }
        std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.n > b.n; });
        return true;
    }

    template <typename Make>
    void grow_subtrees(Make make, std::vector<Job>& jobs, std::vector<Grown>& grown) {
        std::vector<int64_t> nodes;  // jobs are moved from; remember what they are for
        for (const Job& job : jobs) nodes.push_back(job.node);
        std::vector<int64_t> roots(jobs.size(), -1);
        std::vector<unsigned> owners(jobs.size(), 0);
        std::vector<Grown> parts(pool_.size());
        std::atomic<size_t> next{0};
        std::atomic<size_t> n_nodes{grown[0].nodes.size()};
        std::atomic<bool> stopped{false};
        const Watch keep_on = [&](size_t) { return !stopped.load(); };

        const auto grow_some = [&](unsigned me) {
            ThreadPool alone(1, 0);
            Grower grower = make(alone);
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
        };
        // Whoever fails, or gives up, ends the work of all.
        const auto or_stop = [&](const auto& act) {
            try {
                act();
            } catch (...) {
                stopped = true;
                throw;
            }
        };
        pool_.run([&](unsigned me) { or_stop([&] { grow_some(me); }); },
                  [&] { or_stop([&] { stopped = stopped || !watch_(n_nodes); }); });

        for (size_t i = 0; i < nodes.size(); ++i) {
            if (roots[i] < 0) continue;
            grown[0].nodes[size_t(nodes[i])].set_graft(owners[i] + 1, size_t(roots[i]));
        }
        for (auto& part : parts) grown.push_back(std::move(part));
    }

    const Watch& watch_;
    ThreadPool& pool_;
    const size_t least_rows_;
};

}  // namespace branchwise
