// The best column of a node of bit rows whose values share branches, and its groups.
//
// Values that share a branch cannot take away more impurity than values that have one each, which
// is quickly added up. So columns are grouped in the order of these bounds, until none is left
// that may be the best; what is subtracted for many values only makes them worse. With two classes,
// by gini, groups are first scored as plain numbers: only those that may be equal to the best, ties
// included, are scored as the reference does.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bit_rows/bit_halves.hpp"
#include "bit_rows/bit_impurity.hpp"
#include "groups/categories.hpp"
#include "groups/learned_groups.hpp"

namespace branchwise {

class BitGroups {
  public:
    static constexpr size_t none = ~size_t(0);

    BitGroups(const Problem& problem, const Impurities& impurities, const BitLayout& layout)
        : problem_(problem),
          impurities_(impurities),
          layout_(layout),
          classes_(size_t(problem.n_classes)),
          line_(layout.n_pairs() * 128),
          learned_(problem.missing == Policy::learned),
          bounded_(problem.takes_largest_gain()),
          plain_(ValueHalves::serve(problem)),
          halver_(problem),
          entropy_(impurities),
          grouper_(problem, impurities),
          learned_grouper_(problem, impurities),
          table_(layout, classes_) {
        candidates_.resize(layout.n_columns());
        branches_.resize(layout.n_columns());
        bounds_.resize(layout.n_columns());
        halves_.resize(layout.n_columns());
        known_.resize(classes_);
    }

    // The best of some columns that vary, or none; its values are grouped. Of what a node has of
    // a bit, counts[class * line + bit] are of one class, those after the last class of all.
    template <typename Count>
    size_t best_column(const BitNode& node, const std::vector<uint32_t>& columns,
                       const Count* counts) {
        hopeful_ = columns;
        if (bounded_) {
            const bool plain = is_plain(node);
            if (plain && hopeful_.size() <= few_to_halve)
                for (uint32_t j : hopeful_) bounds_[j] = -no_score;
            else
                bound_columns(node, counts);
            if (plain) {
                halve_columns(node, counts);
                if (first_is_best(node)) {
                    group_halves(halves_[hopeful_[0]]);
                    return hopeful_[0];
                }
            }
        }
        const size_t best = score_columns(node, counts);
        if (best != none) branch_of_ = branches_[best];
        return best;
    }

    // Group the values of a column, each of which has rows of one class, the node two.
    void group_pure(const BitNode& node, size_t j, const ValueTable& table) {
        if (!learned_ && has_missing(j, table)) return group_values(node, j, table);
        const size_t c = node.classes[0];
        bool first = false, any = false;  // whether those of the first class come first
        for (size_t v = 0; v < layout_[j].values; ++v) {
            const bool one = table.cells[v * classes_ + c] > 0;
            if (!any && table.sizes[v]) {
                any = true;
                first = one;
            }
            branch_of_[v] = uint8_t(one != first);
        }
    }

    // The branch of every value of the chosen column, missing values being in the last, or in that
    // which is learned.
    const uint8_t* branch_of() const { return branch_of_.data(); }

    // Add up the values of every branch of the chosen column; returns how many there are.
    size_t gather(const Field& field, ValueTable& table) const {
        size_t n = 0;  // the first value of a branch comes after those of the branches before it
        for (size_t v = 0; v < field.values; ++v) {
            if (!table.sizes[v]) continue;
            const size_t b = branch_of_[v];
            const uint32_t* from = &table.cells[v * classes_];
            uint32_t* to = &table.cells[b * classes_];
            if (b == n) {
                ++n;
                table.sizes[b] = table.sizes[v];
                std::copy_n(from, classes_, to);
            } else {
                table.sizes[b] += table.sizes[v];
                for (size_t c = 0; c < classes_; ++c) to[c] += from[c];
            }
        }
        return n;
    }

  private:
    // Whether values are halved as plain numbers.
    bool is_plain(const BitNode& node) const {
        return plain_ && halver_.serves(node.n, node.classes.size(), noise(node));
    }

    bool tells_missing(size_t j) const { return layout_[j].values == problem_.columns[j].n_codes; }
    bool has_missing(size_t j, const ValueTable& table) const {
        return tells_missing(j) && table.sizes[layout_[j].values - 1] > 0;
    }

    static double tolerance(const BitNode& node, double drop) {
        return ValueHalves::tolerance(node.n, noise(node), drop);
    }
    static double noise(const BitNode& node) { return node.scale.resolution * node.scale.total; }

    // ---- bounds -----------------------------------------------------------------

    static constexpr size_t few_to_draw = 3;
    // So few columns are halved as quickly as bounded.
    static constexpr size_t few_to_halve = 5;

    // What a branch for each value takes away, and what this may be off.
    template <typename Count>
    void bound_columns(const BitNode& node, const Count* counts) {
        if (problem_.criterion == Criterion::gini) return bound_by_squares(node, counts);
        const double off = tolerance(node, 0);
        for (uint32_t j : hopeful_) {
            int64_t of_sizes;
            const int64_t in_branches =
                entropy_.of_branches(layout_[j], node, counts, line_, of_sizes);
            bounds_[j] = double(node.impurity - in_branches) * impurities_.unit() + off;
        }
    }

    // The gini impurity of a branch is its size less the sum of squares divided by it. Small
    // counts in single precision, so that many are divided at once.
    template <typename Count>
    void bound_by_squares(const BitNode& node, const Count* counts) {
        using Real = std::conditional_t<sizeof(Count) == 1, float, double>;
        const double off = double(node.n) * (sizeof(Real) == 4 ? 1e-5 : ValueHalves::plain_error);
        // Of all bits at once, unless few columns are drawn.
        const bool few = few_to_draw * hopeful_.size() <= layout_.n_columns();
        auto& squares = std::get<std::vector<Real>>(squares_);
        squares.resize(line_);
        for (size_t first = 0; !few && first < line_; first += 128)
            divide_squares<128>(node, counts + first, squares.data() + first);
        double whole = 0;
        for (size_t c : node.classes)
            whole += double(node.counts_of_class[c]) * node.counts_of_class[c];
        whole /= node.n;
        for (uint32_t j : hopeful_) {
            const Field& field = layout_[j];
            const size_t first = field.first_bit(), end = first + field.values - 1;
            for (size_t bit = first; few && bit < end; bit += 4) {
                // Bits of other columns are of no use, and of no harm.
                const size_t at = std::min(bit, line_ - 4);
                divide_squares<4>(node, counts + at, squares.data() + at);
            }
            Real sum = 0;
            for (size_t bit = first; bit < end; ++bit) sum += squares[bit];
            bounds_[j] = double(sum) + square_of_last(field, node, counts) - whole + off;
        }
    }

    template <size_t n, typename Count, typename Real>
    void divide_squares(const BitNode& node, const Count* counts, Real* out) const {
        Real sum[n] = {};
        for (size_t c : node.classes) {
            const Count* of_class = counts + c * line_;
            for (size_t i = 0; i < n; ++i) sum[i] += Real(of_class[i]) * Real(of_class[i]);
        }
        const Count* sizes = counts + classes_ * line_;
        for (size_t i = 0; i < n; ++i) out[i] = sum[i] / std::max(Real(sizes[i]), Real(1));
    }

    template <typename Count>
    double square_of_last(const Field& field, const BitNode& node, const Count* counts) const {
        const Count* first = counts + field.first_bit();
        double squares = 0, size = 0;
        for (size_t c : node.classes) {
            uint32_t left = node.counts_of_class[c];
            for (size_t v = 0; v + 1 < field.values; ++v) left -= first[c * line_ + v];
            squares += double(left) * left;
            size += left;
        }
        return squares / std::max(size, 1.0);
    }

    // Of the columns from `first` on, put the one of the largest bound there.
    void bring_up(size_t first) {
        size_t top = first;
        for (size_t i = first + 1; i < hopeful_.size(); ++i)
            if (bounds_[hopeful_[i]] > bounds_[hopeful_[top]]) top = i;
        std::swap(hopeful_[first], hopeful_[top]);
    }

    // ---- two classes at a node, by gini, as plain numbers -----------------------

    // Leave the columns that may be the best.
    template <typename Count>
    void halve_columns(const BitNode& node, const Count* counts) {
        double top = no_score, least = no_score;
        size_t n = 0;
        for (; n < hopeful_.size(); ++n) {
            bring_up(n);
            const uint32_t j = hopeful_[n];
            if (bounds_[j] < least) break;
            halves_[j] = halve(node, j, counts);
            if (halves_[j].drop <= top) continue;
            top = halves_[j].drop;
            least = top - tolerance(node, top);
        }
        hopeful_.resize(n);
        const auto hopeless = [&](uint32_t j) {
            return halves_[j].drop == no_score || halves_[j].drop < least;
        };
        hopeful_.erase(std::remove_if(hopeful_.begin(), hopeful_.end(), hopeless), hopeful_.end());
        std::sort(hopeful_.begin(), hopeful_.end());
    }

    // Whether the first of the columns that are left is the best, by plain numbers alone.
    bool first_is_best(const BitNode& node) const {
        if (hopeful_.empty() || problem_.min_gain > 0) return false;
        const Halves& first = halves_[hopeful_[0]];
        return first.sure && std::all_of(hopeful_.begin() + 1, hopeful_.end(), [&](uint32_t j) {
                   return ValueHalves::are_equal(first, halves_[j], node.n);
               });
    }

    // Rows without a value join a half, or have a branch of their own, which makes three.
    template <typename Count>
    Halves halve(const BitNode& node, size_t j, const Count* counts) {
        const Field& field = layout_[j];
        const size_t last_class = node.classes.back();
        const Count* of_last = counts + last_class * line_ + field.first_bit();
        const Count* sizes = counts + classes_ * line_ + field.first_bit();
        const bool joining = learned_ && tells_missing(j);
        if (tells_missing(j) && !joining &&
            std::accumulate(sizes, sizes + field.values - 1, 0u) < node.n)
            return halve_exactly(node, j, counts);
        const uint32_t n_of_last = node.counts_of_class[last_class];
        const size_t n_values = halver_.read(field, joining, sizes, of_last, node.n, n_of_last);
        const double less = double(node.impurity) * impurities_.unit() *
                            corrected_share(problem_, n_values, double(node.n));
        const Halves found = halver_.best(node.n, n_of_last, noise(node), less);
        return found.plain ? found : halve_exactly(node, j, counts);
    }

    // What groups take away by their exact score, but not which they are.
    template <typename Count>
    Halves halve_exactly(const BitNode& node, size_t j, const Count* counts) {
        const Candidate candidate = score(node, j, counts);
        Halves found;
        if (candidate.drop >= 0) found.drop = candidate.score * node.scale.total;
        return found;
    }

    // ---- exact scores -----------------------------------------------------------

    // The best of the columns that may be, or none.
    template <typename Count>
    size_t score_columns(const BitNode& node, const Count* counts) {
        double top = no_score;
        size_t n = 0;
        if (problem_.average_gain) std::fill(candidates_.begin(), candidates_.end(), Candidate());
        for (; n < hopeful_.size(); ++n) {
            if (bounded_ && !is_plain(node)) {
                bring_up(n);
                const double bound = bounds_[hopeful_[n]] / node.scale.total;
                if (top != no_score && bound < node.scale.least(top)) break;
            }
            candidates_[hopeful_[n]] = score(node, hopeful_[n], counts);
            top = std::max(top, candidates_[hopeful_[n]].score);
        }
        hopeful_.resize(n);
        if (problem_.average_gain) top = top_above_average(node);
        if (top == no_score) return none;
        const double least = node.scale.least(top);
        size_t best = none;
        for (uint32_t j : hopeful_)
            if (candidates_[j].score >= least) best = std::min<size_t>(best, j);
        return best;
    }

    // The best score of columns that gain about as much as columns do on average.
    double top_above_average(const BitNode& node) {
        drop_below_average(candidates_, node.scale, problem_);
        double top = no_score;
        for (uint32_t j : hopeful_) top = std::max(top, candidates_[j].score);
        return top;
    }

    template <typename Count>
    Candidate score(const BitNode& node, size_t j, const Count* counts) {
        table_.read(layout_[j], node, counts, line_);
        group_values(node, j, table_);
        branches_[j] = branch_of_;
        const size_t n_branches = gather(layout_[j], table_);
        Candidate candidate;
        size_t large = 0;
        int64_t in_branches = 0, of_sizes = 0;
        for (size_t b = 0; b < n_branches; ++b) {
            const uint32_t size = table_.sizes[b];
            if (size < problem_.cases_in_leaf || size < problem_.weight_in_leaf) return candidate;
            large += size >= problem_.cases_in_branch;
            in_branches += impurity(&table_.cells[b * classes_], size);
            of_sizes += impurities_.x_log2_x(size);
        }
        if (n_branches < 2 || large < 2) return candidate;
        const int64_t drop = std::max<int64_t>(node.impurity - in_branches, 0);
        const double less =
            node.scale.gain(node.impurity) *
            corrected_share(problem_, node.counts_of_class, values_.count(), double(node.n));
        if (!problem_.average_gain && !node.scale.enough(drop, less)) return candidate;
        candidate.score = node.scale.score(drop, impurities_.x_log2_x(node.n) - of_sizes) - less;
        candidate.drop = drop;
        return candidate;
    }

    int64_t impurity(const uint32_t* cells, uint32_t size) const {
        return impurities_.impurity(problem_.criterion, cells, problem_.n_classes, size);
    }

    void group_halves(const Halves& halves) {
        for (size_t v = 0; v < Field::most_values; ++v)
            branch_of_[v] = uint8_t(halves.second >> v & 1);
    }

    void group_values(const BitNode& node, size_t j, const ValueTable& table) {
        const size_t last = layout_[j].values - 1;
        const bool missing = has_missing(j, table);
        const uint32_t n_missing = missing ? table.sizes[last] : 0;
        values_.clear();
        for (uint32_t v = 0; v < last + !missing; ++v)
            if (table.sizes[v])
                values_.add(v, &table.cells[v * classes_], classes_, table.sizes[v],
                            table.sizes[v]);
        if (missing) {
            const uint32_t* cells = &table.cells[last * classes_];
            missing_.assign(cells, cells + classes_);
        }
        if (missing && learned_) return group_with_missing(node, last, n_missing);
        for (size_t c = 0; c < classes_; ++c)
            known_[c] = node.counts_of_class[c] - (missing ? missing_[c] : 0);
        const int64_t outside = impurities_.x_log2_x(node.n) - impurities_.x_log2_x(n_missing);
        const auto& group = grouper_.group(values_, impurity(known_.data(), node.n - n_missing),
                                           outside, node.scale);
        set_branches(group);
        if (missing)
            branch_of_[last] =
                uint8_t(group.empty() ? 0 : 1 + *std::max_element(group.begin(), group.end()));
    }

    // The same with missing rows in the group that is learned.
    void group_with_missing(const BitNode& node, size_t last, uint32_t n_missing) {
        int32_t missing_to = stop_here;
        set_branches(learned_grouper_.group(values_, {&missing_, n_missing, double(n_missing)},
                                            node.impurity, impurities_.x_log2_x(node.n), node.scale,
                                            missing_to));
        branch_of_[last] = uint8_t(std::max(missing_to, 0));
    }

    void set_branches(const std::vector<uint32_t>& group) {
        for (size_t i = 0; i < group.size(); ++i) branch_of_[values_.codes[i]] = uint8_t(group[i]);
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const BitLayout& layout_;
    const size_t classes_;
    const size_t line_;
    const bool learned_;  // missing rows join a group
    const bool bounded_;  // whether columns have bounds
    const bool plain_;    // and groups scores as plain numbers
    ValueHalves halver_;
    const BitEntropy entropy_;
    Grouper<uint32_t> grouper_;
    LearnedGrouper<uint32_t> learned_grouper_;

    using Branches = std::array<uint8_t, Field::most_values>;  // by value
    Branches branch_of_ = {};                                  // of the chosen column

    // Scratch, kept between nodes.
    std::vector<uint32_t> hopeful_;      // columns that may be the best
    std::vector<Candidate> candidates_;  // by column
    std::vector<Branches> branches_;
    std::vector<double> bounds_;
    std::vector<Halves> halves_;
    std::tuple<std::vector<float>, std::vector<double>> squares_;  // by bit, divided by its rows
    ValueTable table_;
    Values<uint32_t> values_;
    std::vector<uint32_t> known_, missing_;  // by class
};

}  // namespace branchwise
