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
        constexpr size_t most_times = repeated ? std::numeric_limits<Times>::max() : 1;
        const size_t n_cases = std::min(most_cases, problem.n_rows * most_times);
        inverse_.resize(n_cases + 1);
        for (size_t n = 1; n <= n_cases; ++n) inverse_[n] = 1.0 / double(n);
        share_.resize(n_cases + 1);
        first_sum_.resize(problem.columns.size());
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

    // As std::frexp and std::ldexp have them, of normal numbers above 0.
    static int exponent_of(double number) {
        uint64_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        return int(bits >> 52) - 1022;
    }
    static double power_of_two(int exponent) {
        const uint64_t bits = uint64_t(exponent + 1023) << 52;
        double power;
        std::memcpy(&power, &bits, sizeof power);
        return power;
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
        const int bits = exponent_of(squares - off);
        if (bits != exponent_of(squares + off)) return false;
        factor_ = power_of_two(-((bits + (bits > 0)) / 2 * 2));
        squares_ = squares * factor_;
        off_ = (n + 16) * 0x1p-50 + 0x1p-46;
        return true;
    }

    // What the square of a sum is multiplied by, by cases on the smaller side; 0 where these are
    // too few. As many as are on the larger side have no share: their sum is not made from the end
    // that is nearer.
    void set_shares(size_t n) {
        const size_t half = n / 2;
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
        const auto step = [&](size_t i) {
            const Row first = row[i - 1], last = row[n - i];
            left += distances[first];
            right += distances[last];
            double ending = left, beginning = right;
            if constexpr (tied) {
                ending = ranks[first] != ranks[row[i]] ? left : 0;
                beginning = ranks[last] != ranks[row[n - i - 1]] ? right : 0;
            }
            if constexpr (repeated) {
                on_left += times(first);
                on_right += times(last);
                top = std::max(top, ending * ending * shares[on_left]);
                top = std::max(top, beginning * beginning * shares[on_right]);
            } else {
                const double square = std::max(ending * ending, beginning * beginning);
                top = std::max(top, square * shares[i]);
            }
        };
        // Of repeated rows, cases tell where the half is.
        const auto goes_on = [&] { return !repeated || std::min(on_left, on_right) < half; };
        const size_t end = repeated ? n : half + 1;
        size_t i = 1;
        for (; i + 4 <= end && goes_on(); i += 4)
            for (size_t k = 0; k < 4; ++k) step(i + k);
        for (; i < end && goes_on(); ++i) step(i);
        return top;
    }

    // What a column can take away, if it has a split, and whether it has several values.
    struct Best {
        double score = no_score;
        bool varies = false;
    };

    // Where it is less than `least`, it may be less than what is returned: without a look at ranks
    // thresholds between equal ones count.
    Best best_threshold(const Open& node, size_t j, double least) {
        if (!has_list(j)) return best_code(node, j);
        const Row* const row = in_order(node, j);
        const uint32_t* const ranks = rank(j);
        if (ranks[row[0]] == ranks[row[node.n() - 1]]) return {};
        double top = best_of_list<false>(node, row, ranks);
        if (tied_[j] && factor_ * top >= least) top = best_of_list<true>(node, row, ranks);
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
            [&](size_t i) {
                return Plain{distance_[row[i]], double(times(row[i]))};
            },
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
        size_t n_sums = 0;
        for (uint32_t j : counted_) {
            first_sum_[j] = uint32_t(n_sums);
            n_sums += n_codes(j);
        }
        sums_of_codes_.assign(2 * n_sums, Both{});
        codes_of_.clear();
        for (uint32_t j : counted_) codes_of_.push_back({rank(j), &sums_of_codes_[first_sum_[j]]});
        const auto add = [&](size_t i, size_t to) {
            const Row row = rows_[i];
            const Both own = {{distance_[row], double(times(row))}};
            for (const CodesOf& column : codes_of_)
                column.sums[to + column.codes[row]].sum_and_n += own.sum_and_n;
        };
        // Every other row has sums of its own: one that is added to waits for the one before.
        size_t i = node.begin;
        for (; i + 1 < node.end; i += 2) {
            add(i, 0);
            add(i + 1, n_sums);
        }
        if (i < node.end) add(i, 0);
        for (size_t k = 0; k < n_sums; ++k)
            sums_of_codes_[k].sum_and_n += sums_of_codes_[n_sums + k].sum_and_n;
    }

    // The values of a column, by code or in the order of their first rows; false where there is
    // one alone.
    bool find_values(const Open& node, size_t j) {
        values_.clear();
        if (is_counted(j)) {
            const Both* const sums = &sums_of_codes_[first_sum_[j]];
            for (uint32_t code = 0; code < n_codes(j); ++code) {
                const Plain rows{sums[code].sum_and_n[0], sums[code].sum_and_n[1]};
                if (rows.n > 0) values_.push_back({code, rows, rows.sum / rows.n});
            }
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
        each_prefix(
            node, values_.size(), [&](size_t i) { return values_[i].rows; }, visit);
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

    std::vector<double> distance_;  // by row
    std::vector<double> share_;     // by cases on one side

  private:
    // A sum and the number of its cases, to be added to at once.
    struct Both {
        double sum_and_n [[gnu::vector_size(16)]];
    };
    struct CodesOf {
        const uint32_t* codes;  // by row
        Both* sums;             // by code
    };

    // Scratch.
    std::vector<double> inverse_, beyond_;
    std::vector<uint32_t> present_;
    std::vector<Plain> counters_;  // by code
    std::vector<uint32_t> counted_;
    std::vector<CodesOf> codes_of_;
    std::vector<Both> sums_of_codes_;
    std::vector<uint32_t> first_sum_;  // by column that is counted
};

}  // namespace branchwise
