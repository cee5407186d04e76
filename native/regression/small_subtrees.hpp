// Whole subtrees of few rows: by variance, for rows that count as one, without missing values.
//
// Splits are chosen from plain sums, as in number_bounds.hpp, but of distances
// from a plain mean: no split depends on where distances are measured from. A node whose split is
// not certain is handed back.

#pragma once

#include <iterator>

#include "core/draws.hpp"
#include "regression/number_bounds.hpp"
#include "regression/small_rows.hpp"

namespace branchwise {

class SmallSubtrees : SmallRows {
  public:
    using Rows = Records<uint32_t, double>;
    using SmallRows::most;

    static bool suits(const Problem& problem, const NumberScale& scale) {
        const double fewest =
            std::max({problem.cases_in_leaf, problem.cases_in_branch, problem.weight_in_leaf});
        return !scale.poisson && !problem.fractions && !problem.tests_splits &&
               problem.missing != Policy::surrogate && !(problem.min_gain > 0) && fewest <= 1 &&
               !problem.random_splits && !problem.average_gain &&
               std::none_of(problem.columns.begin(), problem.columns.end(),
                            [](const Column& column) { return column.has_missing; });
    }

    SmallSubtrees(const Problem& problem, const NumberScale& scale, const Rows& records,
                  Grown& grown)
        : SmallRows(problem, scale, records), problem_(problem), grown_(grown), draws_(problem) {
        branch_of_code_.resize(records.most_codes());
        counters_.resize(records.most_codes());
        for (size_t n = 2; n <= most; ++n) {
            off_[n] = off_by(n);
            for (size_t left = 1; left < n; ++left)
                share_[n][left] = double(n) / (double(left) * double(n - left));
        }
    }

    // Grow the subtree of an open node of at most so many rows. Nodes in it that are not certain
    // are added to the stack. False where it is the node itself that is not.
    bool grow(const RecordJob& job, std::vector<RecordJob>& stack) {
        load(job);
        const auto n = uint32_t(job.n), n_alive = uint32_t(alive_.size());
        open_.assign(1, {job.node, job.depth, 0, n, 0, n_alive, job.key, true});
        while (!open_.empty()) {
            const Open node = open_.back();
            open_.pop_back();
            alive_.resize(node.alive_end);
            if (split(node)) continue;
            if (node.node == job.node) return false;
            hand_back(job, node, stack);
        }
        return true;
    }

  private:
    // Nodes with more rows have lists.
    static constexpr size_t most_unlisted = 4;

    // The rows of a category's value.
    struct Value {
        uint32_t code;
        Plain rows;
        double mean;
    };

    // The split of a node; no column: it is a leaf.
    struct Chosen {
        int column = -1;
        uint32_t low = 0, high = 0;  // ranks beside a threshold
    };

    // ---- the choice ----------------------------------------------------------------

    // False where it is not certain how.
    bool split(const Open& node) {
        Chosen chosen;
        if (node.n() > 2 && !set_distances(node)) return false;
        const uint32_t *begin = alive_.data() + node.alive_begin,
                       *end = alive_.data() + node.alive_end;
        if (!draws_.any()) {
            varies_.clear();
            if (!choose(node, begin, end, chosen)) return false;
        } else if (!choose_drawn(node, begin, end, chosen)) {
            return false;
        }
        if (chosen.column < 0)
            add_squares(node.node, node.begin, node.end);
        else
            carry_out(node, chosen);
        return true;
    }

    // Of some columns; false where it is not certain.
    bool choose(const Open& node, const uint32_t* begin, const uint32_t* end, Chosen& chosen) {
        if (node.n() > 2) return choose_by_sums(node, begin, end, chosen);
        chosen = choose_for_pair(node, begin, end);
        return true;
    }

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
            if (!choose(node, batch_.data(), batch_.data() + batch_.size(), chosen)) return false;
            if (node.n() > 2) keep_varying();
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

    // The first column in which two rows differ: all such splits are as good as one another.
    Chosen choose_for_pair(const Open& node, const uint32_t* begin, const uint32_t* end) {
        const uint8_t first = rows_[node.begin], second = rows_[node.begin + 1];
        for (; begin < end; ++begin) {
            const uint32_t j = *begin, a = rank(j)[first], b = rank(j)[second];
            if (a == b) continue;
            values_.clear();
            values_.push_back({std::min(a, b), {}, 0});
            values_.push_back({std::max(a, b), {}, 0});
            branch_of_code(j, 1);
            return {int(j), std::min(a, b), std::max(a, b)};
        }
        return {};
    }

    // As NodeMoments::find_scale does; false where plain numbers do not tell the scale.
    bool set_distances(const Open& node) {
        const size_t n = node.n();
        double sum = 0, largest = 0, squares = 0;
        for (size_t i = node.begin; i < node.end; ++i) {
            sum += number_[rows_[i]];
            largest = std::max(largest, std::fabs(number_[rows_[i]]));
        }
        const double centre = sum / double(n);
        for (size_t i = node.begin; i < node.end; ++i) {
            const double distance = number_[rows_[i]] - centre;
            distance_[rows_[i]] = distance;
            squares += distance * distance;
        }
        constexpr double epsilon = std::numeric_limits<double>::epsilon();
        const double off = squares * (double(n) + 64) * epsilon;
        const double off_centre = double(n) * epsilon * largest;
        if (!(squares >= 1e-280) || double(n) * off_centre * off_centre > off / 4) return false;
        int bits, other;
        std::frexp(squares - off, &bits);
        std::frexp(squares + off, &other);
        if (bits != other) return false;
        const double factor = std::ldexp(1.0, -((bits + (bits > 0)) / 2));
        squares_ = squares * factor * factor;
        all_ = {0, double(n)};
        for (size_t i = node.begin; i < node.end; ++i) {
            distance_[rows_[i]] *= factor;
            all_.sum += distance_[rows_[i]];
        }
        return true;
    }

    // As NumberGrower::best_by_bounds does.
    bool choose_by_sums(const Open& node, const uint32_t* begin, const uint32_t* end,
                        Chosen& chosen) {
        // What is subtracted for many values may be off, too.
        const double off = off_[node.n()] * (problem_.corrects_values ? 3 : 1);
        const double most_to_gain = this->most_to_gain(node) + off;
        double top = no_score, before = no_score;
        bool cut_short = false;
        scores_.clear();
        for (; begin < end && !cut_short; ++begin) {
            const uint32_t j = *begin;
            const double score = is_ordered(j) ? best_threshold(node, j) : best_values(node, j);
            if (score == no_score) continue;
            varies_.push_back(j);
            scores_.push_back(score);
            top = std::max(top, score - off);
            cut_short = score - off >= most_to_gain - surely_equal(most_to_gain) &&
                        before < score - off - surely_apart(most_to_gain);
            if (cut_short) varies_.insert(varies_.end(), begin + 1, end);
            before = std::max(before, score + off);
        }
        if (scores_.empty()) return true;
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
        if (problem_.branching == Branching::values)
            return squares_ * (1 + (all_.n + 64) * 0x1p-52) - all_.square();
        double most = 0;
        each_prefix(in_order_of_numbers(node), node.n(),
                    [&](double score, size_t) { most = std::max(most, score); });
        return most;
    }

    // visit(score, i) for each of n rows in some order and those before it, against all others.
    template <typename Visit>
    void each_prefix(const uint8_t* row, size_t n, const Visit& visit) {
        const double mean = all_.sum / all_.n;
        const double* share = share_[n];
        double sum = 0;
        for (size_t i = 0; i + 1 < n; ++i) {
            sum += distance_[row[i]];
            const double off_mean = sum - double(i + 1) * mean;
            visit(off_mean * off_mean * share[i + 1], i);
        }
    }

    // The same in the order of a column, without a score where there is no threshold.
    template <typename Visit>
    void each_threshold(const Open& node, size_t j, const Visit& visit) {
        const uint8_t* row = in_order(node, j);
        const uint32_t* ranks = rank(j);
        each_prefix(row, node.n(), [&](double score, size_t i) {
            visit(ranks[row[i]] != ranks[row[i + 1]] ? score : no_score, i);
        });
    }

    double best_threshold(const Open& node, size_t j) {
        double top = no_score;
        each_threshold(node, j, [&](double score, size_t) { top = std::max(top, score); });
        return top;
    }

    // What the best threshold drops at least, if it is certain; see PlainScorer.
    double certain_threshold(const Open& node, double top, Chosen& chosen) {
        const auto j = size_t(chosen.column);
        const double off = off_[node.n()];
        const double least = top - 2 * off - surely_apart(top);
        double found = no_score;
        size_t number = 0, at = 0;
        each_threshold(node, j, [&](double score, size_t i) {
            if (score < least || ++number > 1) return;
            found = score - off;
            at = i;
        });
        const bool equal = found + off >= top - surely_equal(top) + 2 * off;
        if (number != 1 && !equal) return no_score;
        const uint8_t* row = in_order(node, j);
        chosen.low = rank(j)[row[at]];
        chosen.high = rank(j)[row[at + 1]];
        return found;
    }

    // The values of a category, by code; false where there is one alone.
    bool find_values(const Open& node, size_t j) {
        const uint32_t* codes = rank(j);
        values_.clear();
        for (size_t i = node.begin; i < node.end; ++i) {
            const uint8_t row = rows_[i];
            Plain& counter = counters_[codes[row]];
            if (counter.n == 0) values_.push_back({codes[row], {}, 0});
            counter.sum += distance_[row];
            counter.n += 1;
        }
        for (Value& value : values_) {
            value.rows = counters_[value.code];
            value.mean = value.rows.sum / value.rows.n;
            counters_[value.code] = Plain();
        }
        return values_.size() > 1;
    }

    static constexpr auto by_mean = [](const Value& a, const Value& b) { return a.mean < b.mean; };
    static constexpr auto by_code = [](const Value& a, const Value& b) { return a.code < b.code; };

    double best_values(const Open& node, size_t j) {
        if (!find_values(node, j)) return no_score;
        if (problem_.branching == Branching::values) {
            double sum = 0;
            for (const Value& value : values_) sum += value.rows.square();
            return sum - all_.square();
        }
        double top = no_score;
        each_grouping(node, [&](double score, size_t) { top = std::max(top, score); });
        return top - (squares_ - all_.square()) *
                         corrected_share(problem_, values_.size(), double(node.n()));
    }

    // visit(score, i) for the values up to one, in the order of their means, and all others.
    template <typename Visit>
    void each_grouping(const Open& node, const Visit& visit) {
        sort_few(values_, by_mean);
        const double mean = all_.sum / all_.n;
        Plain left;
        for (size_t i = 0; i + 1 < values_.size(); ++i) {
            left.sum += values_[i].rows.sum;
            left.n += values_[i].rows.n;
            const double off_mean = left.sum - left.n * mean;
            visit(off_mean * off_mean * share_[node.n()][size_t(left.n)], i);
        }
    }

    // The branch of each value; false where it is not certain: values with nearly the same mean
    // may be in another order.
    bool group_values(const Open& node, size_t j) {
        find_values(node, j);
        if (problem_.branching == Branching::values) {
            sort_few(values_, by_code);
            for (size_t i = 0; i < values_.size(); ++i)
                branch_of_code_[values_[i].code] = uint8_t(i);
            return true;
        }
        constexpr double apart = 0x1p-40;
        double top = no_score;
        each_grouping(node, [&](double score, size_t) { top = std::max(top, score); });
        for (size_t i = 1; i < values_.size(); ++i)
            if (values_[i].mean - values_[i - 1].mean < apart) return false;
        const double least = top - 2 * off_[node.n()] - surely_apart(top);
        size_t number = 0, best = 0;
        each_grouping(node, [&](double score, size_t i) {
            if (score >= least && ++number == 1) best = i;
        });
        if (number != 1) return false;
        branch_of_code(j, best + 1);
        return true;
    }

    // The first values are a branch, and so are the others; that of the lowest code is the first.
    void branch_of_code(size_t j, size_t n_left) {
        if (is_ordered(j)) return;
        size_t lowest = 0;
        for (size_t i = 1; i < values_.size(); ++i)
            if (values_[i].code < values_[lowest].code) lowest = i;
        for (size_t i = 0; i < values_.size(); ++i)
            branch_of_code_[values_[i].code] = uint8_t((i < n_left) != (lowest < n_left));
        sort_few(values_, by_code);
    }

    // ---- the split -----------------------------------------------------------------

    void carry_out(const Open& node, const Chosen& chosen) {
        const auto j = size_t(chosen.column);
        set_branches(node, chosen);
        const size_t n_branches = sizes_.size(), first = grown_.nodes.size();
        const size_t width = scale_.width();
        grown_.nodes.resize(first + n_branches);
        grown_.weights.resize(grown_.weights.size() + n_branches * width, 0.0);
        record(node, chosen, first);
        add_sums(node, first);
        bool any_open = false, listed = false;
        const size_t alive_begin = alive_.size();
        for (size_t b = 0; b < n_branches; ++b) {
            is_open_[b] = several_[b] &&
                          (problem_.max_depth < 0 || node.depth + 1 < problem_.max_depth) &&
                          sizes_[b] >= problem_.cases_to_split;
            any_open = any_open || is_open_[b];
            listed = listed || (is_open_[b] && sizes_[b] > most_unlisted);
        }
        if (!any_open && n_branches == 2) return add_squares_of_rows(node, first);
        divide(rows_, node, n_branches);
        if (listed) divide(by_number_, node, n_branches);
        if (node.n() == 2)
            varies_.assign(alive_.begin() + node.alive_begin, alive_.begin() + node.alive_end);
        const bool again = is_ordered(j) || problem_.branching != Branching::values;
        for (uint32_t column : varies_) {
            if (column == j && !again) continue;
            alive_.push_back(column);
            if (listed && is_ordered(column)) divide(order(column), node, n_branches);
        }
        uint32_t begin = node.begin;
        for (size_t b = 0; b < n_branches; ++b) {
            const uint32_t end = begin + uint32_t(sizes_[b]);
            const auto child = int64_t(first + b);
            if (is_open_[b])
                open_.push_back({child, node.depth + 1, begin, end, uint32_t(alive_begin),
                                 uint32_t(alive_.size()), draws_.any() ? child_key(node.key, b) : 0,
                                 listed});
            else
                add_squares(child, begin, end);
            begin = end;
        }
    }

    // The branch of every row, and the rows of every branch.
    void set_branches(const Open& node, const Chosen& chosen) {
        const auto j = size_t(chosen.column);
        const bool ordered = is_ordered(j);
        const uint32_t* ranks = rank(j);
        sizes_.assign(ordered || problem_.branching == Branching::two_way ? 2 : values_.size(),
                      0.0);
        for (size_t i = node.begin; i < node.end; ++i) {
            const uint8_t row = rows_[i];
            branch_[row] = ordered ? ranks[row] > chosen.low : branch_of_code_[ranks[row]];
            sizes_[branch_[row]] += 1;
        }
    }

    void record(const Open& node, const Chosen& chosen, size_t first) {
        const auto j = size_t(chosen.column);
        Node& parent = grown_.nodes[size_t(node.node)];
        const int32_t largest = largest_branch(sizes_);
        parent.column = int32_t(j);
        if (is_ordered(j))
            parent.threshold = threshold_between(records_.values(j), chosen.low, chosen.high,
                                                 problem_.positions[j]);
        parent.missing_to = missing_route(problem_, largest, stop_here);
        parent.unseen_to = unseen_route(problem_, largest, parent.missing_to);
        parent.n_children = int32_t(sizes_.size());
        parent.first_child = uint32_t(first);
        for (size_t b = 0; b < sizes_.size(); ++b) {
            grown_.nodes[first + b].cases = sizes_[b];
            grown_.nodes[first + b].code = is_ordered(j) ? int32_t(b) : code_of_branch(b);
        }
    }

    // A value, or a group of them. Values are in the order of their codes.
    int32_t code_of_branch(size_t b) {
        codes_.clear();
        for (const Value& value : values_)
            if (branch_of_code_[value.code] == b) codes_.push_back(value.code);
        return codes_.size() == 1 ? int32_t(codes_[0]) : grown_.add_group(codes_);
    }

    // Weights and sums of the children, and whether their numbers differ.
    void add_sums(const Open& node, size_t first) {
        const size_t width = scale_.width(), n_limbs = scale_.sums.size();
        several_.assign(sizes_.size(), 0);
        is_open_.assign(sizes_.size(), 0);
        first_number_.assign(sizes_.size(), std::numeric_limits<double>::quiet_NaN());
        for (size_t i = node.begin; i < node.end; ++i) {
            const uint8_t row = rows_[i], branch = branch_[row];
            double* to = &grown_.weights[(first + branch) * width];
            to[0] += 1;
            for (size_t k = 0; k < n_limbs; ++k) to[1 + k] += limbs_[row * n_limbs + k];
            if (std::isnan(first_number_[branch])) first_number_[branch] = number_[row];
            several_[branch] |= number_[row] != first_number_[branch];
        }
    }

    void add_square(size_t node, uint8_t row) {
        double* moments = &grown_.weights[node * scale_.width()];
        scale_.add_square<false>(number_[row], 1.0, scale_.squares_of(moments));
    }
    void add_squares(int64_t node, size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) add_square(size_t(node), rows_[i]);
    }
    void add_squares_of_rows(const Open& node, size_t first) {
        for (size_t i = node.begin; i < node.end; ++i)
            add_square(first + branch_[rows_[i]], rows_[i]);
    }

    const Problem& problem_;
    Grown& grown_;
    ColumnDraws draws_;

    double off_[most + 1] = {};              // by number of rows: how far scores may be off
    double share_[most + 1][most + 1] = {};  // what a square is multiplied by, by rows on the left

    // Scratch.
    std::vector<Open> open_;
    std::vector<uint32_t> varies_, still_, batch_;
    std::vector<double> scores_;
    double distance_[most] = {};  // by row, scaled
    Plain all_;
    double squares_ = 0;
    std::vector<Value> values_;
    std::vector<Plain> counters_;
    std::vector<uint8_t> branch_of_code_;
    std::vector<double> sizes_, first_number_;
    std::vector<uint8_t> several_, is_open_;
    std::vector<uint32_t> codes_;
};

}  // namespace branchwise
