// Plain sums of the rows of a node of a subtree: what its thresholds and groups take away.
//
// Distances are those from the mean, nearly: they add up to less than what a sum of them may be off
// by, so that the sum on one side of a split is that on the other side, turned round. Sums are
// made from the end that is nearer. So a sum of m of n distances, the squares of which are less
// than 1 when scaled, is off by at most m^1.5 2^-53 and m / n of what all are off by; its square,
// over m (n - m) / n with m at most n / 2, by less than 4 n 2^-53. A row that is repeated is one
// term, the distance times its cases.

#pragma once

#include "core/problem.hpp"
#include "regression/plain_sums.hpp"
#include "regression/subtree_rows.hpp"

namespace branchwise {

template <typename W, typename Row, size_t most_rows>
class SubtreeSums : public SubtreeRows<W, Row, most_rows> {
    using Base = SubtreeRows<W, Row, most_rows>;

  public:
    using Base::most_cases;
    using Base::repeated;
    using typename Base::Open;
    using typename Base::Rows;

  protected:
    SubtreeSums(const Problem& problem, const NumberScale& scale, const Rows& records)
        : Base(problem, scale, records), fewest_(fewest_of(problem)) {
        counters_.resize(records.most_codes());
        inverse_.resize(most_cases + 1);
        for (size_t n = 1; n <= most_cases; ++n) inverse_[n] = 1.0 / double(n);
        share_.resize(most_cases + 1);
    }

    using Base::has_list;
    using Base::in_order;
    using Base::is_counted;
    using Base::n_codes;
    using Base::number_;
    using Base::of_few;
    using Base::rank;
    using Base::rows_;
    using Base::scale_;
    using Base::tied_;
    using Base::times;

    // The rows of a category's value.
    struct Value {
        uint32_t code;
        Plain rows;
        double mean;
    };

    // ---- sums ----------------------------------------------------------------------

    // Cases of a branch.
    static size_t fewest_of(const Problem& problem) {
        const double fewest =
            std::max({problem.cases_in_leaf, problem.cases_in_branch, problem.weight_in_leaf, 1.0});
        return size_t(std::min(std::ceil(fewest), 4e9));
    }

    // As NodeMoments::find_scale does; false where plain numbers do not tell the scale.
    bool set_distances(const Open& node, const double* moments) {
        const auto n = double(node.cases);
        double sum = 0, limbs = 0;
        for (size_t k = scale_.sums.size(); k > 0; --k) {
            sum += moments[k];
            limbs += std::fabs(moments[k]);
        }
        const double centre = sum / n;
        double total, left, rest;  // of the sum, beyond the centre
        two_product(-centre, n, total, rest);
        for (size_t k = 1; k <= scale_.sums.size(); ++k) {
            two_sum(total, moments[k], total, left);
            rest += left;
        }
        const double beyond = (total + rest) / n;
        double squares = 0;
        distance_.resize(number_.size());
        double* const distances = distance_.data();
        for (size_t i = node.begin; i < node.end; ++i) {
            const Row row = rows_[i];
            const double distance = (number_[row] - centre) - beyond;
            distances[row] = distance * times(row);
            squares += distance * distances[row];
        }
        constexpr double epsilon = std::numeric_limits<double>::epsilon();
        const double off = squares * (n + 64) * epsilon;
        const double off_centre = 4 * epsilon * limbs / n;
        if (!(squares >= 1e-280) || n * off_centre * off_centre > off / 4) return false;
        int bits, other;
        std::frexp(squares - off, &bits);
        std::frexp(squares + off, &other);
        if (bits != other) return false;
        const double factor = std::ldexp(1.0, -((bits + (bits > 0)) / 2));
        factor_ = factor * factor;
        squares_ = squares * factor_;
        off_ = (n + 16) * 0x1p-50 + 0x1p-46;
        return true;
    }

    // What the square of a sum is multiplied by, by cases on the smaller side; 0 where these are
    // too few. As many as are on the larger side have no share: their sum is not made from the end
    // that is nearer.
    void set_shares(size_t n) {
        const size_t half = n / 2;
        std::fill_n(share_.begin(), std::min(fewest_, n), 0.0);
        for (size_t m = fewest_; m <= half; ++m) share_[m] = inverse_[m] + inverse_[n - m];
        if constexpr (repeated) std::fill(share_.begin() + half + 1, share_.begin() + n + 1, 0.0);
    }

    // ---- thresholds ----------------------------------------------------------------

    // The best of all thresholds between the rows of a node in some order, not scaled; if `tied`,
    // there is none between equal ranks.
    template <bool tied>
    double best_of_list(const Open& node, const Row* row, const uint32_t* ranks) const {
        const double* const distances = distance_.data();
        const double* const shares = share_.data();
        const size_t n = node.n(), half = node.cases / 2;
        double left = 0, right = 0, top = 0;
        size_t on_left = 0, on_right = 0;  // cases
        for (size_t i = 1; i <= (repeated ? n - 1 : half); ++i) {
            const Row first = row[i - 1], last = row[n - i];
            left += distances[first];
            right += distances[last];
            double ending = left, beginning = right;
            if constexpr (tied) {
                ending = ranks[first] != ranks[row[i]] ? left : 0;
                beginning = ranks[last] != ranks[row[n - i - 1]] ? right : 0;
            }
            double score;
            if constexpr (repeated) {
                on_left += times(first);
                on_right += times(last);
                score = std::max(ending * ending * shares[on_left],
                                 beginning * beginning * shares[on_right]);
            } else {
                score = std::max(ending * ending, beginning * beginning) * shares[i];
            }
            top = std::max(top, score);
            if (repeated && std::min(on_left, on_right) >= half) break;
        }
        return top;
    }

    // What a column can take away, if it has a split, and whether it has several values.
    struct Best {
        double score = no_score;
        bool varies = false;
    };

    Best best_threshold(const Open& node, size_t j) {
        if (!has_list(j)) return best_code(node, j);
        const Row* const row = in_order(node, j);
        const uint32_t* const ranks = rank(j);
        if (ranks[row[0]] == ranks[row[node.n() - 1]]) return {};
        const double top =
            tied_[j] ? best_of_list<true>(node, row, ranks) : best_of_list<false>(node, row, ranks);
        if (top > 0 || fewest_ <= 1) return {factor_ * top, true};
        bool any = false;  // with enough cases
        each_threshold(node, j, [&](double, uint32_t, uint32_t) { any = true; });
        return {any ? 0 : no_score, true};
    }

    // visit(score, low, high) for all thresholds of a column, in order; ranks are those beside it.
    template <typename Visit>
    void each_threshold(const Open& node, size_t j, const Visit& visit) {
        if (!has_list(j)) return each_code(node, j, visit);
        const Row* const row = in_order(node, j);
        const uint32_t* const ranks = rank(j);
        each_prefix(
            node, node.n(),
            [&](size_t i) { return Plain{distance_[row[i]], double(times(row[i]))}; },
            [&](double score, size_t i) {
                const uint32_t low = ranks[row[i]], high = ranks[row[i + 1]];
                if (low != high) visit(score, low, high);
            });
    }

    // visit(score, i) for the first i + 1 of some groups of rows, and all others, if both have
    // enough cases; rows_of(i): those of a group.
    template <typename RowsOf, typename Visit>
    void each_prefix(const Open& node, size_t n_groups, const RowsOf& rows_of, const Visit& visit) {
        const size_t n = node.cases;
        beyond_.resize(n_groups);
        Plain right;
        for (size_t i = n_groups; --i > 0 && 2 * right.n <= double(n);) {
            right += rows_of(i);
            beyond_[i] = right.sum;
        }
        Plain left;
        for (size_t i = 0; i + 1 < n_groups; ++i) {
            left += rows_of(i);
            const auto m = size_t(left.n);
            const double sum = 2 * m <= n ? left.sum : beyond_[i + 1];
            const double share = share_[std::min(m, n - m)];
            if (share > 0) visit(sum * sum * share, i);
        }
    }

    // ---- codes ---------------------------------------------------------------------

    // Add up the rows by the codes of all columns that are counted.
    void count(const Open& node, const uint32_t* begin, const uint32_t* end) {
        if (of_few) return;
        counted_.clear();
        for (; begin < end; ++begin)
            if (is_counted(*begin)) counted_.push_back(*begin);
        if (counted_.empty()) return;
        sums_of_codes_.assign(counted_.size() * Base::most_counted, Plain());
        codes_of_.clear();
        for (uint32_t j : counted_) codes_of_.push_back(rank(j));
        for (size_t i = node.begin; i < node.end; ++i) {
            const Row row = rows_[i];
            const double distance = distance_[row];
            Plain* sums = sums_of_codes_.data();
            for (const uint32_t* codes : codes_of_) {
                sums[codes[row]].sum += distance;
                sums[codes[row]].n += times(row);
                sums += Base::most_counted;
            }
        }
    }

    const Plain* sums_of(size_t j) const {
        const auto at = std::lower_bound(counted_.begin(), counted_.end(), uint32_t(j));
        return &sums_of_codes_[size_t(at - counted_.begin()) * Base::most_counted];
    }

    // The values of a column, by code or in the order of their first rows; false where there is
    // one alone.
    bool find_values(const Open& node, size_t j) {
        values_.clear();
        if (is_counted(j)) {
            const Plain* const sums = sums_of(j);
            for (uint32_t code = 0; code < n_codes(j); ++code)
                if (sums[code].n > 0)
                    values_.push_back({code, sums[code], sums[code].sum / sums[code].n});
            return values_.size() > 1;
        }
        const uint32_t* codes = rank(j);
        present_.resize(std::max(present_.size(), node.n()));
        uint32_t* next = present_.data();  // written whether or not the value is new
        for (size_t i = node.begin; i < node.end; ++i) {
            const Row row = rows_[i];
            Plain& counter = counters_[codes[row]];
            *next = codes[row];
            next += counter.n == 0;
            counter.sum += distance_[row];
            counter.n += times(row);
        }
        for (const uint32_t* code = present_.data(); code < next; ++code) {
            const Plain rows = counters_[*code];
            values_.push_back({*code, rows, rows.sum / rows.n});
            counters_[*code] = Plain();
        }
        return values_.size() > 1;
    }

    // The same for the values of a column.
    template <typename Visit>
    void each_prefix(const Open& node, const Visit& visit) {
        each_prefix(node, values_.size(), [&](size_t i) { return values_[i].rows; }, visit);
    }

    // Thresholds of a column of numbers that is counted.
    template <typename Visit>
    void each_code(const Open& node, size_t j, const Visit& visit) {
        if (!find_values(node, j)) return;
        each_prefix(node, [&](double score, size_t i) {
            visit(score, values_[i].code, values_[i + 1].code);
        });
    }
    Best best_code(const Open& node, size_t j) {
        Best best;
        each_code(node, j, [&](double score, uint32_t, uint32_t) {
            best.score = std::max(best.score, score * factor_);
        });
        best.varies = values_.size() > 1;
        return best;
    }

    const size_t fewest_;        // cases of a branch
    std::vector<Value> values_;  // of a column

    // Of the node.
    double factor_ = 0;   // what scores are multiplied by
    double squares_ = 0;  // the sum of squared distances, scaled
    double off_ = 0;      // how far scores may be off

  private:
    std::vector<double> distance_;  // by row
    std::vector<double> share_;     // by cases on one side

    // Scratch.
    std::vector<double> inverse_, beyond_;
    std::vector<uint32_t> present_;
    std::vector<Plain> counters_;  // by code
    std::vector<uint32_t> counted_;
    std::vector<const uint32_t*> codes_of_;
    std::vector<Plain> sums_of_codes_;
};

}  // namespace branchwise
