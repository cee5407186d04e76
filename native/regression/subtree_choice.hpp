// The split of a node of a subtree, from plain sums, as in number_bounds.hpp.
//
// Distances are those from the mean, nearly: they add up to less than what a sum of them may be off
// by, so that the sum on one side of a split is that on the other side, turned round. Sums are
// made from the end that is nearer. So a sum of m of n distances, the squares of which are less
// than 1 when scaled, is off by at most m^1.5 2^-53 and m / n of what all are off by; its square,
// over m (n - m) / n with m at most n / 2, by less than 4 n 2^-53.

#pragma once

#include <iterator>

#include "core/draws.hpp"
#include "regression/plain_sums.hpp"
#include "regression/subtree_rows.hpp"

namespace branchwise {

template <typename Row, size_t most_rows>
class SubtreeChoice : public SubtreeRows<Row, most_rows> {
    using Base = SubtreeRows<Row, most_rows>;

  public:
    using Base::most;
    using typename Base::Open;
    using typename Base::Rows;

  protected:
    SubtreeChoice(const Problem& problem, const NumberScale& scale, const Rows& records)
        : Base(problem, scale, records), problem_(problem), draws_(problem) {
        branch_of_code_.resize(records.most_codes());
        counters_.resize(records.most_codes());
        inverse_.resize(most + 1);
        for (size_t n = 1; n <= most; ++n) inverse_[n] = 1.0 / double(n);
        share_.resize(most + 1);
    }

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

    using Base::alive_;
    using Base::branch_;
    using Base::has_list;
    using Base::in_order;
    using Base::in_order_of_numbers;
    using Base::is_counted;
    using Base::is_ordered;
    using Base::n_codes;
    using Base::number_;
    using Base::of_few;
    using Base::rank;
    using Base::records_;
    using Base::rows_;
    using Base::scale_;
    using Base::tied_;

    // Of a node of more than two rows; false where it is not certain. `moments` are those of the
    // node.
    bool choose(const Open& node, const double* moments, Chosen& chosen) {
        if (!set_distances(node, moments)) return false;
        set_shares(node.n());
        const uint32_t *begin = alive_.data() + node.alive_begin,
                       *end = alive_.data() + node.alive_end;
        if (draws_.any()) return choose_drawn(node, begin, end, chosen);
        varies_.clear();
        return choose_by_sums(node, begin, end, chosen);
    }

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

    const Problem& problem_;
    ColumnDraws draws_;
    std::vector<uint32_t> varies_;  // columns of the node
    std::vector<Value> values_;     // of the chosen category, by code
    std::vector<Row> branch_of_code_;

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

    // ---- sums ----------------------------------------------------------------------

    // As NodeMoments::find_scale does; false where plain numbers do not tell the scale.
    bool set_distances(const Open& node, const double* moments) {
        const auto n = double(node.n());
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
            const double distance = (number_[rows_[i]] - centre) - beyond;
            distances[rows_[i]] = distance;
            squares += distance * distance;
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

    // What the square of a sum is multiplied by, by rows on one side.
    void set_shares(size_t n) {
        for (size_t left = 1; left < n; ++left) share_[left] = inverse_[left] + inverse_[n - left];
    }

    // As NumberGrower::best_by_bounds does.
    bool choose_by_sums(const Open& node, const uint32_t* begin, const uint32_t* end,
                        Chosen& chosen) {
        // What is subtracted for many values may be off, too.
        const double off = off_ * (problem_.corrects_values ? 3 : 1);
        const double most_to_gain = this->most_to_gain(node) + off;
        double top = no_score, before = no_score;
        bool cut_short = false;
        scores_.clear();
        count(node, begin, end);
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
        const size_t n = node.n();
        if (!of_few || problem_.branching == Branching::values)
            return squares_ * (1 + (double(n) + 64) * 0x1p-52);
        return best_of_list(in_order_of_numbers(node), n) * factor_;
    }

    // ---- thresholds ----------------------------------------------------------------

    // The best of all thresholds between n rows in some order.
    double best_of_list(const Row* row, size_t n) const {
        const double* const distances = distance_.data();
        const double* const shares = share_.data();
        double left = 0, right = 0, top = 0;
        for (size_t m = 1; m <= n / 2; ++m) {
            left += distances[row[m - 1]];
            right += distances[row[n - m]];
            top = std::max(top, std::max(left * left, right * right) * shares[m]);
        }
        return top;
    }

    // The same if there is no threshold between equal ranks.
    double best_of_ranks(const Row* row, const uint32_t* ranks, size_t n) const {
        const double* const distances = distance_.data();
        const double* const shares = share_.data();
        double left = 0, right = 0, top = 0;
        for (size_t m = 1; m <= n / 2; ++m) {
            left += distances[row[m - 1]];
            right += distances[row[n - m]];
            const double on_left = ranks[row[m - 1]] != ranks[row[m]] ? left : 0;
            const double on_right = ranks[row[n - m]] != ranks[row[n - m - 1]] ? right : 0;
            top = std::max(top, std::max(on_left * on_left, on_right * on_right) * shares[m]);
        }
        return top;
    }

    double best_threshold(const Open& node, size_t j) {
        if (!has_list(j)) return best_code(node, j);
        const Row* const row = in_order(node, j);
        const uint32_t* const ranks = rank(j);
        if (ranks[row[0]] == ranks[row[node.n() - 1]]) return no_score;
        return factor_ *
               (tied_[j] ? best_of_ranks(row, ranks, node.n()) : best_of_list(row, node.n()));
    }

    // visit(score, low, high) for all thresholds of a column, in order; ranks are those beside it.
    template <typename Visit>
    void each_threshold(const Open& node, size_t j, const Visit& visit) {
        if (!has_list(j)) return each_code(node, j, visit);
        const size_t n = node.n();
        const Row* const row = in_order(node, j);
        const uint32_t* const ranks = rank(j);
        beyond_.resize(n);
        double sum = 0;
        for (size_t i = n; --i > n / 2;) beyond_[i] = sum += distance_[row[i]];
        sum = 0;
        for (size_t m = 1; m < n; ++m) {
            sum = m <= n / 2 ? sum + distance_[row[m - 1]] : beyond_[m];
            if (ranks[row[m - 1]] != ranks[row[m]])
                visit(sum * sum * share_[m], ranks[row[m - 1]], ranks[row[m]]);
        }
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
                sums[codes[row]].n += 1;
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
            counter.n += 1;
        }
        for (const uint32_t* code = present_.data(); code < next; ++code) {
            const Plain rows = counters_[*code];
            values_.push_back({*code, rows, rows.sum / rows.n});
            counters_[*code] = Plain();
        }
        return values_.size() > 1;
    }

    // visit(score, i) for the values up to each one, and all others.
    template <typename Visit>
    void each_prefix(const Open& node, const Visit& visit) {
        const size_t n = node.n(), n_values = values_.size();
        beyond_.resize(n_values);
        double sum = 0;
        for (size_t i = n_values; --i > 0;) beyond_[i] = sum += values_[i].rows.sum;
        Plain left;
        for (size_t i = 0; i + 1 < n_values; ++i) {
            left += values_[i].rows;
            const auto m = size_t(left.n);
            const double off_mean = 2 * m <= n ? left.sum : beyond_[i + 1];
            visit(off_mean * off_mean * share_[m], i);
        }
    }

    // Thresholds of a column of numbers that is counted.
    template <typename Visit>
    void each_code(const Open& node, size_t j, const Visit& visit) {
        if (!find_values(node, j)) return;
        each_prefix(node, [&](double score, size_t i) {
            visit(score, values_[i].code, values_[i + 1].code);
        });
    }
    double best_code(const Open& node, size_t j) {
        double top = no_score;
        each_code(node, j, [&](double score, uint32_t, uint32_t) { top = std::max(top, score); });
        return top == no_score ? no_score : top * factor_;
    }

    static constexpr auto by_mean = [](const Value& a, const Value& b) { return a.mean < b.mean; };
    static constexpr auto by_code = [](const Value& a, const Value& b) { return a.code < b.code; };

    double best_values(const Open& node, size_t j) {
        if (!find_values(node, j)) return no_score;
        if (problem_.branching == Branching::values) {
            double sum = 0;
            for (const Value& value : values_) sum += value.rows.square();
            return sum * factor_;
        }
        double top = no_score;
        sort_few(values_, by_mean);
        each_prefix(node, [&](double score, size_t) { top = std::max(top, score); });
        return top * factor_ -
               squares_ * corrected_share(problem_, values_.size(), double(node.n()));
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
        scores_.clear();
        each_prefix(node, [&](double score, size_t) {
            scores_.push_back(score * factor_);
            top = std::max(top, scores_.back());
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
        constexpr double equal = 0x1p-46, apart = 0x1p-40;
        const double factor = std::sqrt(factor_);
        const size_t n_values = values_.size();
        const double off = 4 * std::sqrt(double(node.n())) * double(n_values) * equal;
        for (size_t begin = 0, end; begin < n_values; begin = end) {
            double weight = values_[begin].rows.n, lightest = weight;
            for (end = begin + 1; end < n_values; ++end) {
                const double more = (values_[end].mean - values_[end - 1].mean) * factor;
                if (more >= apart) break;
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

    // Of the node.
    double factor_ = 0;             // what scores are multiplied by
    double squares_ = 0;            // the sum of squared distances, scaled
    double off_ = 0;                // how far scores may be off
    std::vector<double> distance_;  // by row
    std::vector<double> share_;     // by rows on one side

    // Scratch.
    std::vector<double> inverse_, scores_, beyond_;
    std::vector<uint32_t> still_, batch_, present_;
    std::vector<Plain> counters_;  // by code
    std::vector<uint32_t> counted_;
    std::vector<const uint32_t*> codes_of_;
    std::vector<Plain> sums_of_codes_;
};

}  // namespace branchwise
