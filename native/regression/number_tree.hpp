// Nodes of a tree grown from numbers: their moments, and those of their branches.
//
// Weights of a node are its moments: squares are added up where rows stay, in leaves, and by
// add_up_squares above them. Parts of rows that go down every branch are rounded, so there every
// node adds up its own.

#pragma once

#include "records/record_tree.hpp"
#include "regression/moments.hpp"

namespace branchwise {

template <typename W>
class NumberTree : public RecordTree<W, double> {
    using Base = RecordTree<W, double>;

  public:
    using typename Base::Job;

  protected:
    using Base::cases_are_added;
    using Base::children_;
    using Base::grown_;
    using Base::made_;
    using Base::may_be_split;
    using Base::mover_;
    using Base::problem_;
    using Base::records_;
    using Base::weights_of;
    using Base::width_;

    static constexpr bool weighted = Records<W, double>::weighted;

    NumberTree(const Problem& problem, const NumberScale& scale, const Numbers& numbers,
               ThreadPool& pool)
        : Base(problem, numbers, pool, scale.width()), scale_(scale) {}

    // Whether there are several numbers.
    struct Values {
        double first = std::numeric_limits<double>::quiet_NaN();
        bool several = false;

        void add(double number) {
            if (std::isnan(first)) first = number;
            several = several || number != first;
        }
    };

    // visit(i, record) for the records of a node.
    template <typename Visit>
    void each_record(const Job& job, const Visit& visit) const {
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) visit(i, record);
    }

    // To the moments of a node: weight and number, or the square of it.
    void add_sum(double* moments, const uint8_t* record, double weight) const {
        moments[0] += weight;
        scale_.template add_number<weighted>(records_.target(record), weight, moments + 1);
    }
    void add_sum(double* moments, const uint8_t* record) const {
        add_sum(moments, record, double(records_.weight(record)));
    }
    void add_square(double* moments, const uint8_t* record, double weight) const {
        scale_.template add_square<weighted>(records_.target(record), weight,
                                             scale_.squares_of(moments));
    }
    void add_square(double* moments, const uint8_t* record) const {
        add_square(moments, record, double(records_.weight(record)));
    }

    void add_squares(const Job& job) {
        each_record(
            job, [&](size_t, const uint8_t* record) { add_square(weights_of(job.node), record); });
    }

    // Whether depth and cases allow a node to be split, and its numbers differ.
    bool is_open(int64_t node, int64_t depth, bool differ) const {
        const double cases = grown_.nodes[size_t(node)].cases;
        return differ && may_be_split(cases_for_bars(problem_, weights_of(node)[0], cases), depth);
    }

    // Weights and sums of the branches, into made_: those of the one with the most records are
    // what the others leave of the node's, unless some records go nowhere.
    void add_up_children(const Job& job) {
        const size_t n = made_.count();
        size_t most = 0;
        for (size_t b = 1; b < n; ++b)
            if (mover_.rows(b) > mover_.rows(most)) most = b;
        const bool all = mover_.rows(n) == 0;
        made_.weights.assign(n * width_, 0.0);
        differ_.assign(n, Values());
        each_record(job, [&](size_t i, const uint8_t* record) {
            const uint32_t branch = mover_.branch(i);
            if (branch == n) return keep(job, record);
            if (!differ_[branch].several) differ_[branch].add(records_.target(record));
            if (!all || branch != most) add_sum(&made_.weights[branch * width_], record);
            if (cases_are_added()) made_.cases[branch] += records_.share(record);
        });
        mover_.each_part(job, [&](size_t branch, const uint8_t* record, double weight) {
            differ_[branch].add(records_.target(record));
            add_sum(&made_.weights[branch * width_], record, weight);
        });
        if (!all) return;
        const double* whole = weights_of(job.node);
        for (size_t k = 0; k < 1 + scale_.sums.size(); ++k) {
            double left = whole[k];
            for (size_t b = 0; b < n; ++b) left -= made_.weights[b * width_ + k];
            made_.weights[most * width_ + k] = left;
        }
    }

    // A record that goes nowhere, or in parts.
    void keep(const Job& job, const uint8_t* record) {
        if (!problem_.fractions) add_square(weights_of(job.node), record);
    }

    // Children that are not open have their own squares, too.
    void close_children(const Job& job, int64_t first) {
        const size_t n = made_.count();
        each_record(job, [&](size_t i, const uint8_t* record) {
            const uint32_t branch = mover_.branch(i);
            if (branch < n && !children_[branch].n)
                add_square(weights_of(first + int64_t(branch)), record);
        });
        mover_.each_part(job, [&](size_t branch, const uint8_t* record, double weight) {
            if (!children_[branch].n)
                add_square(weights_of(first + int64_t(branch)), record, weight);
        });
    }

    const NumberScale& scale_;
    std::vector<Values> differ_;  // by branch
};

}  // namespace branchwise
