// What all ways to put the values of a category in groups have in common: the values of a node, and
// how groupings are scored.

#pragma once

#include <algorithm>
#include <vector>

#include "core/choose.hpp"

namespace branchwise {

// The values that a node has: class weights, sizes and cases of each.
template <typename W>
struct Values {
    std::vector<uint32_t> codes;
    std::vector<W> cells;  // by value and class
    std::vector<W> sizes;
    std::vector<double> cases;

    void clear() {
        codes.clear();
        cells.clear();
        sizes.clear();
        cases.clear();
    }
    void add(uint32_t code, const W* cell, size_t classes, W size, double n_cases) {
        codes.push_back(code);
        cells.insert(cells.end(), cell, cell + classes);
        sizes.push_back(size);
        cases.push_back(n_cases);
    }
    size_t count() const { return codes.size(); }
};

// The classes of each value, and their weights.
template <typename W>
class ClassesOfValues {
  public:
    struct Entry {
        uint32_t label;
        W weight;
    };

    void collect(const Values<W>& values, size_t n_classes) {
        entries_.clear();
        first_.assign(1, 0);
        for (size_t v = 0; v < values.count(); ++v) {
            for (size_t c = 0; c < n_classes; ++c) {
                const W weight = values.cells[v * n_classes + c];
                if (weight > 0) entries_.push_back({uint32_t(c), weight});
            }
            first_.push_back(uint32_t(entries_.size()));
        }
    }

    const Entry* begin(size_t v) const { return entries_.data() + first_[v]; }
    const Entry* end(size_t v) const { return entries_.data() + first_[v + 1]; }
    size_t size() const { return entries_.size(); }

  private:
    std::vector<Entry> entries_;
    std::vector<uint32_t> first_;
};

template <typename W>
class Grouping {
  public:
    Grouping(const Problem& problem, const Impurities& impurities)
        : problem_(problem), impurities_(impurities), classes_(size_t(problem.n_classes)) {}

  protected:
    static constexpr bool whole = std::is_same<W, uint32_t>::value;

    // `known` is the impurity of all values together, `outside` the weight impurity of the node
    // less that of its missing values.
    void begin(const Values<W>& values, int64_t known, int64_t outside, const Scale& scale) {
        values_ = &values;
        known_ = known;
        outside_ = outside;
        scale_ = &scale;
        group_.assign(values.count(), 0);
        add_up_all();
    }

    double cases_of(size_t v) const {
        return cases_for_bars(problem_, values_->sizes[v], values_->cases[v]);
    }

    // Whole weights are few additions at once; of others there may be many, most of them 0.
    void add_cells(size_t v, std::vector<W>& sums) const {
        if (whole) {
            for (size_t c = 0; c < classes_; ++c) sums[c] += values_->cells[v * classes_ + c];
        } else {
            for (auto at = classes_of_.begin(v); at < classes_of_.end(v); ++at)
                sums[at->label] += at->weight;
        }
    }

    int64_t impurity(const W* cell, W size) const {
        return impurities_.impurity(problem_.criterion, cell, problem_.n_classes, size);
    }

    double score(int64_t in_branches, int64_t of_sizes) const {
        const int64_t drop = std::max<int64_t>(known_ - in_branches, 0);
        return scale_->score(drop, outside_ - of_sizes);
    }

    // The values in the order of their shares of a class.
    void order_by_share(size_t label, std::vector<uint32_t>& order) {
        constexpr size_t few = 24;
        const size_t n = values_->count();
        share_.resize(n);
        order.resize(n);
        for (size_t v = 0; v < n; ++v) {
            const double share =
                double(values_->cells[v * classes_ + label]) / double(values_->sizes[v]);
            share_[v] = share;
            size_t at = v;
            if (n <= few)  // sorted as they come
                for (; at > 0 && share < share_[order[at - 1]]; --at) order[at] = order[at - 1];
            order[at] = uint32_t(v);
        }
        if (n > few)
            std::stable_sort(order.begin(), order.end(),
                             [&](uint32_t a, uint32_t b) { return share_[a] < share_[b]; });
    }

    // Groups get their numbers in the order in which the values meet them.
    void number_in_order() {
        number_.assign(group_.size() + 1, ~0u);
        uint32_t next = 0;
        for (uint32_t& g : group_) {
            if (number_[g] == ~0u) number_[g] = next++;
            g = number_[g];
        }
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const size_t classes_;
    const Values<W>* values_ = nullptr;
    const Scale* scale_ = nullptr;
    int64_t known_ = 0, outside_ = 0;
    ClassesOfValues<W> classes_of_;  // where weights are not whole
    std::vector<uint32_t> group_;

    // Of all values together.
    std::vector<W> all_;
    W all_size_ = 0;
    double all_cases_ = 0;

  private:
    void add_up_all() {
        if (!whole) classes_of_.collect(*values_, classes_);
        all_.assign(classes_, W(0));
        all_size_ = 0;
        all_cases_ = 0;
        for (size_t v = 0; v < values_->count(); ++v) {
            add_cells(v, all_);
            all_size_ += values_->sizes[v];
            all_cases_ += cases_of(v);
        }
    }

    std::vector<uint32_t> number_;
    std::vector<double> share_;
};

}  // namespace branchwise
