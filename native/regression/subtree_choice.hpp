// The split of a node of a subtree, from plain sums, as in number_bounds.hpp.

#pragma once

#include <iterator>

#include "core/draws.hpp"
#include "regression/subtree_separation.hpp"

namespace branchwise {

template <typename W, typename Row, size_t most_rows>
class SubtreeChoice : public SubtreeSeparation<W, Row, most_rows> {
    using Base = SubtreeSeparation<W, Row, most_rows>;

  public:
    using Base::repeated;
    using typename Base::Open;
    using typename Base::Rows;

  protected:
    SubtreeChoice(const Problem& problem, const NumberScale& scale, const Rows& records)
        : Base(problem, scale, records), draws_(problem) {}

    using Base::alive_;
    using Base::best_code;
    using Base::best_threshold;
    using Base::branch_;
    using Base::branch_of_code_;
    using Base::choose_separating;
    using Base::count;
    using Base::each_prefix;
    using Base::each_threshold;
    using Base::factor_;
    using Base::fewest_;
    using Base::find_values;
    using Base::in_order_of_numbers;
    using Base::is_ordered;
    using Base::of_few;
    using Base::off_;
    using Base::problem_;
    using Base::rank;
    using Base::rows_;
    using Base::set_distances;
    using Base::set_shares;
    using Base::squares_;
    using Base::values_;
    using typename Base::Best;
    using typename Base::Chosen;
    using typename Base::Value;

    // False where it is not certain. `moments` are those of the node.
    bool choose(const Open& node, const double* moments, Chosen& chosen) {
        if (node.cases < 2 * fewest_) return true;
        if (!set_distances(node, moments)) return false;
        set_shares(node.cases);
        const uint32_t *begin = alive_.data() + node.alive_begin,
                       *end = alive_.data() + node.alive_end;
        if (draws_.any()) return choose_drawn(node, begin, end, chosen);
        varies_.clear();
        return choose_by_sums(node, begin, end, chosen);
    }

    // Whether two rows can be split by any column in which they differ.
    bool parts_pairs() const { return fewest_ <= 1; }

    // The first column in which two rows differ, or -1: all such splits are as good as one another.
    int choose_for_pair(const Open& node) {
        const Row first = rows_[node.begin], second = rows_[node.begin + 1];
        const uint32_t *begin = alive_.data() + node.alive_begin,
                       *end = alive_.data() + node.alive_end;
        const auto differ = [&](uint32_t j) { return rank(j)[first] != rank(j)[second]; };
        if (!draws_.any()) {
            const uint32_t* const found = std::find_if(begin, end, differ);
            return found == end ? -1 : int(*found);
        }
        draws_.begin(node.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next())
            for (uint32_t j : *drawn)
                if (std::binary_search(begin, end, j) && differ(j)) return int(j);
        return -1;
    }

    ColumnDraws draws_;
    std::vector<uint32_t> varies_;  // columns of the node

  private:
    // ---- columns -------------------------------------------------------------------

    // Of the first batch of columns that has a split.
    bool choose_drawn(const Open& node, const uint32_t* begin, const uint32_t* end,
                      Chosen& chosen) {
        still_.assign(begin, end);
        draws_.begin(node.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next()) {
            batch_.clear();
            std::set_intersection(drawn->begin(), drawn->end(), begin, end,
                                  std::back_inserter(batch_));
            varies_.clear();
            if (!choose_by_sums(node, batch_.data(), batch_.data() + batch_.size(), chosen))
                return false;
            keep_varying();
            if (chosen.column >= 0) break;
        }
        varies_ = still_;
        return true;
    }

    // Those that were not drawn may.
    void keep_varying() {
        for (uint32_t j : batch_)
            if (!std::binary_search(varies_.begin(), varies_.end(), j))
                still_.erase(std::lower_bound(still_.begin(), still_.end(), j));
    }

    // As NumberGrower::best_by_bounds does.
    bool choose_by_sums(const Open& node, const uint32_t* begin, const uint32_t* end,
                        Chosen& chosen) {
        // What is subtracted for many values may be off, too.
        const double off = off_ * (problem_.corrects_values ? 3 : 1);
        if (choose_separating(node, begin, end, off, chosen)) {
            varies_.assign(begin, end);
            return true;
        }
        const double most_to_gain = this->most_to_gain(node) + off;
        double top = no_score, before = no_score;
        bool cut_short = false;
        scores_.clear();
        in_order_ = true;
        count(node, begin, end);
        for (; begin < end && !cut_short; ++begin) {
            const uint32_t j = *begin;
            const double least = top > no_score ? top - off - surely_apart(top) : top;
            const Best best = is_ordered(j) ? best_threshold(node, j, least) : best_values(node, j);
            if (!best.varies) continue;
            const double score = best.score;
            varies_.push_back(j);
            scores_.push_back(score);
            if (score == no_score) continue;
            top = std::max(top, score - off);
            cut_short = score - off >= most_to_gain - surely_equal(most_to_gain) &&
                        before < score - off - surely_apart(most_to_gain);
            if (cut_short) varies_.insert(varies_.end(), begin + 1, end);
            before = std::max(before, score + off);
        }
        if (!in_order_) return false;
        if (top == no_score) return true;
        const double least = top - surely_apart(top);
        size_t first = 0;
        while (scores_[first] + off < least) ++first;
        double others = cut_short ? most_to_gain : no_score;
        for (size_t i = first + 1; i < scores_.size(); ++i)
            if (scores_[i] + off >= least) others = std::max(others, scores_[i] + off);
        const auto is_best = [&](double own) {
            return others == no_score || own >= others - surely_equal(others);
        };
        const uint32_t j = varies_[first];
        chosen.column = int(j);
        if (!is_ordered(j)) return is_best(scores_[first] - off) && group_values(node, j);
        const double found = certain_threshold(node, scores_[first], chosen);
        return found > no_score && is_best(found);
    }

    // What any split can take away. In two branches, it is as much as the best threshold of the
    // numbers themselves does: of few rows, one of the first columns has a split that does so.
    double most_to_gain(const Open& node) {
        // Of repeated rows, others may be the best that have enough cases.
        if (!of_few || problem_.branching == Branching::values || (repeated && fewest_ > 1))
            return squares_ * (1 + (double(node.cases) + 64) * 0x1p-52);
        return Base::template best_of_list<false>(node, in_order_of_numbers(node), nullptr) *
               factor_;
    }

    // What the best threshold drops at least, if it is certain; see PlainScorer.
    double certain_threshold(const Open& node, double top, Chosen& chosen) {
        const double least = (top - 2 * off_ - surely_apart(top)) / factor_;
        double found = no_score;
        size_t number = 0;
        each_threshold(node, size_t(chosen.column), [&](double score, uint32_t low, uint32_t high) {
            if (score < least || ++number > 1) return;
            found = score * factor_ - off_;
            chosen.low = low;
            chosen.high = high;
        });
        const bool equal = found + off_ >= top - surely_equal(top) + 2 * off_;
        return number == 1 || equal ? found : no_score;
    }

    static constexpr double surely_other_mean = 0x1p-40;  // the difference of scaled means

    static constexpr auto by_mean = [](const Value& a, const Value& b) { return a.mean < b.mean; };
    static constexpr auto by_code = [](const Value& a, const Value& b) { return a.code < b.code; };

    Best best_values(const Open& node, size_t j) {
        if (!find_values(node, j)) return {};
        if (problem_.branching == Branching::values) return {value_of_values(), true};
        double top = no_score;
        sort_few(values_, by_mean);
        if (fewest_ > 1) in_order_ = in_order_ && means_are_apart();
        each_prefix(node, [&](double score, size_t) { top = std::max(top, score); });
        if (top == no_score) return {no_score, true};
        return {top * factor_ -
                    squares_ * corrected_share(problem_, values_.size(), double(node.cases)),
                true};
    }

    // What a branch for each value takes away, if none has too few cases.
    double value_of_values() const {
        double sum = 0;
        size_t n_large = 0;
        for (const Value& value : values_) {
            if (value.rows.n < std::max(problem_.cases_in_leaf, problem_.weight_in_leaf))
                return no_score;
            n_large += value.rows.n >= problem_.cases_in_branch;
            sum += value.rows.square();
        }
        return n_large < 2 ? no_score : sum * factor_;
    }

    // Whether values in the order of their means cannot be in another order.
    bool means_are_apart() const {
        const double factor = std::sqrt(factor_);
        for (size_t i = 1; i < values_.size(); ++i)
            if ((values_[i].mean - values_[i - 1].mean) * factor < surely_other_mean) return false;
        return true;
    }

    // The branch of each value; false where it is not certain.
    bool group_values(const Open& node, size_t j) {
        find_values(node, j);
        if (problem_.branching == Branching::values) {
            sort_few(values_, by_code);
            for (size_t i = 0; i < values_.size(); ++i) branch_of_code_[values_[i].code] = Row(i);
            return true;
        }
        sort_few(values_, by_mean);
        double top = no_score;
        scores_.assign(values_.size() - 1, no_score);
        each_prefix(node, [&](double score, size_t i) {
            scores_[i] = score * factor_;
            top = std::max(top, scores_[i]);
        });
        const double least = top - 2 * off_ - surely_apart(top);
        const auto best = std::find_if(scores_.begin(), scores_.end(),
                                       [&](double score) { return score >= least; });
        if (std::any_of(best + 1, scores_.end(), [&](double score) { return score >= least; }))
            return false;
        const auto last = size_t(best - scores_.begin());
        if (!is_in_order(node, last, least)) return false;
        branch_of_code(j, last + 1);
        return true;
    }

    // Values with the same mean, or nearly, may be in another order: whether none of them can make
    // groups with at least some score, if the best ends with one of the values. What two groups
    // drop is a convex function of the weight that goes from one to the other if all of it has one
    // mean. So some of such values are no better than a mean of what none and all of them do.
    bool is_in_order(const Open& node, size_t best, double least) const {
        constexpr double equal = 0x1p-46;
        const double factor = std::sqrt(factor_);
        const size_t n_values = values_.size();
        const double off = 4 * std::sqrt(double(node.cases)) * double(n_values) * equal;
        for (size_t begin = 0, end; begin < n_values; begin = end) {
            double weight = values_[begin].rows.n, lightest = weight;
            for (end = begin + 1; end < n_values; ++end) {
                const double more = (values_[end].mean - values_[end - 1].mean) * factor;
                if (more >= surely_other_mean) break;
                if (more >= equal) return false;
                weight += values_[end].rows.n;
                lightest = std::min(lightest, values_[end].rows.n);
            }
            if (end == begin + 1) continue;
            if (begin <= best && best + 1 < end) return false;
            const double before = begin > 0 ? scores_[begin - 1] : 0;
            const double after = end < n_values ? scores_[end - 1] : 0;
            const double some =
                std::max(before, after) - std::fabs(after - before) * lightest / weight;
            if (some + off >= least) return false;
        }
        return true;
    }

    // The first values are a branch, and so are the others; that of the lowest code is the first.
    void branch_of_code(size_t j, size_t n_left) {
        if (is_ordered(j)) return;
        size_t lowest = 0;
        for (size_t i = 1; i < values_.size(); ++i)
            if (values_[i].code < values_[lowest].code) lowest = i;
        for (size_t i = 0; i < values_.size(); ++i)
            branch_of_code_[values_[i].code] = Row((i < n_left) != (lowest < n_left));
        sort_few(values_, by_code);
    }

    bool in_order_ = true;  // whether the order of values is certain, where it must be

    // Scratch.
    std::vector<double> scores_;
    std::vector<uint32_t> still_, batch_;
};

}  // namespace branchwise
