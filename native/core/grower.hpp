// What all growers have in common: nodes that are added, adopted and closed.

#pragma once

#include <algorithm>
#include <stdexcept>

#include "core/choose.hpp"
#include "core/draws.hpp"
#include "core/thread_pool.hpp"

namespace branchwise {

class Grower {
  public:
    size_t n_nodes() const { return grown_.nodes.size(); }
    Grown take() { return std::move(grown_); }

    // Make a root of one's own for an open node of another grower.
    template <typename Job>
    int64_t adopt(const Job& job, const Grown& from) {
        const int64_t node = add_nodes(1);
        const auto there = size_t(job.node);
        const auto here = size_t(node);
        grown_.nodes[here].code = grown_.add_code_of(from, from.nodes[there].code);
        grown_.nodes[here].cases = from.nodes[there].cases;
        std::copy_n(&from.weights[there * width_], width_, &grown_.weights[here * width_]);
        return node;
    }

  protected:
    // `width`: numbers that a node has as its weights.
    Grower(const Problem& problem, ThreadPool& pool, size_t width)
        : problem_(problem), pool_(pool), width_(width), draws_(problem) {}

    // Room that is not touched costs nothing; moving what outgrows its room does.
    void reserve_nodes(size_t n, size_t most_weights) {
        grown_.nodes.reserve(n);
        grown_.weights.reserve(std::min(n * width_, most_weights));
    }

    // Their weights are to be set.
    int64_t add_nodes(size_t count) { return int64_t(grown_.add_nodes(count, width_)); }

    double* weights_of(int64_t node) { return &grown_.weights[size_t(node) * width_]; }
    const double* weights_of(int64_t node) const { return &grown_.weights[size_t(node) * width_]; }

    // Whether depth and cases allow a node to be split.
    bool may_be_split(double cases, int64_t depth) const {
        return (problem_.max_depth < 0 || depth < problem_.max_depth) &&
               cases >= problem_.cases_to_split;
    }

    void record_split(int64_t at, const Split& split, int64_t first_child, size_t n_children) {
        Node& node = grown_.nodes[size_t(at)];
        static_cast<Split&>(node) = split;
        node.n_children = int32_t(n_children);
        node.first_child = uint32_t(first_child);
    }

    const Problem& problem_;
    ThreadPool& pool_;
    const size_t width_;
    ColumnDraws draws_;
    Grown grown_;
};

}  // namespace branchwise
