// The values of a column in two halves, for nodes of two classes and gini, as plain numbers.
//
// In the order of how many of their rows are of the last class, the best halves are a first part
// and the rest. Plain numbers tell which part it is, unless another is as good but for rounding. Of
// few rows, plain numbers are exact but for one division. So those of halves that are equally good
// are equal, and the first of these is taken, as by the tie rule.
//
// Missing rows that join either half are like a value more, but not a half of their own. So parts
// are tried with them on either side. Where they had better be a half of their own, the best that
// is left may have a single value against the rest, as in groups/learned_groups.hpp.
//
// Where a table has more classes, halves of a node of two are tried in another order
// (groups/two_groups.hpp), and not only parts of the order above. But the best of all are such
// parts: in any others, a value would do better on the other side. So only ties differ.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bit_rows/bit_members.hpp"
#include "groups/two_groups.hpp"

namespace branchwise {

// A column whose values are divided in two.
struct Halves {
    double drop = no_score;  // what that takes away, less the correction, in units of weight
    double less = 0;         // the correction
    bool plain = false;      // the drop is a plain number, and no bound
    uint64_t first = 0;      // the values of the first half, which has the first known value
    uint64_t second = 0;     // and those of the other
    bool sure = false;       // no halves before these are as good
};

// Shares of at most 64 rows, as whole numbers: shares that differ are 1 / 4032 apart, and so are on
// different steps of 2^-13, while equal ones are on the same. A division for every value would wait
// for the one before it.
class SmallShares {
  public:
    constexpr SmallShares() {
        for (uint32_t size = 1; size <= Members::most; ++size)
            for (uint32_t part = 0; part <= size; ++part)
                steps_[size][part] = uint16_t((part << 13) / size);
    }

    uint64_t of(uint32_t part, uint32_t size) const { return steps_[size][part]; }

  private:
    uint16_t steps_[Members::most + 1][Members::most + 1] = {};
};
inline constexpr SmallShares small_shares;

class ValueHalves {
  public:
    static constexpr double plain_error = 1e-12;
    // Shares of values are told apart in nodes of fewer rows.
    static constexpr size_t most_rows = size_t(1) << 22;

    explicit ValueHalves(const Problem& problem)
        : many_classes_(problem.n_classes > 2),
          fewest_(std::max(
              {problem.cases_in_leaf, problem.cases_in_branch, problem.weight_in_leaf, 1.0})) {}

    static bool serve(const Problem& problem) {
        return problem.takes_largest_gain() && problem.branching == Branching::two_way &&
               problem.criterion == Criterion::gini;
    }

    // Whether they serve a node.
    bool serves(double n, size_t n_classes, double noise) const {
        if (!many_classes_) return n < most_rows;
        return n_classes == 2 && fewest_ <= 1 && tells_groupings_apart(n, noise);
    }

    // Whether drops that are equally good are equal: fractions of whole numbers of up to n^4 / 16
    // and n^2 / 4, which are told apart if they differ.
    static bool tell_equals(double n) { return n <= 256; }

    // Whether two columns of a node are told to be equally good.
    static bool are_equal(const Halves& one, const Halves& other, double n) {
        return tell_equals(n) && one.plain && other.plain && one.drop == other.drop &&
               one.less == other.less;
    }

    // How far a drop may be below the best of all, and still be one of the best: as an equal of
    // an equal, and by what plain numbers are off. `noise`: of sums of impurities.
    static double tolerance(double n, double noise, double drop) {
        return 4 * (std::fabs(drop) * tie + noise) + plain_error * n;
    }

    // Take in the values of a column: all rows of each but the last, and those of the last class.
    // Returns how many values have rows. `joining`: the last value is that of missing rows, which
    // join a half and do not count as a value.
    template <typename Count>
    size_t read(const Field& field, bool joining, const Count* sizes, const Count* of_last,
                uint32_t n, uint32_t n_of_last) {
        begin();
        for (uint32_t v = 0; v + 1 < field.values; ++v) {
            add(v, sizes[v], of_last[v], key_of_share(of_last[v], sizes[v], v));
            n -= sizes[v];
            n_of_last -= of_last[v];
        }
        const uint32_t last = field.values - 1;
        add_last(last, joining, n, n_of_last, key_of_share(n_of_last, n, last));
        return n_values_;
    }

    // The same of a set of rows; `of_class` are the rows of the last class.
    size_t read(const Field& field, bool joining, const Members& members, uint64_t rows,
                uint64_t of_class) {
        begin();
        const auto key_of = [](uint32_t part, uint32_t size, uint32_t value) {
            return small_shares.of(part, size) * Field::most_values + value;
        };
        const uint64_t left = members.each_value(field, rows, [&](uint32_t value, uint64_t those) {
            const uint32_t size = size_of(those), of_last = size_of(those & of_class);
            add(value, size, of_last, key_of(of_last, size, value));
        });
        const uint32_t size = size_of(left), of_last = size_of(left & of_class);
        const uint32_t last = field.values - 1;
        add_last(last, joining, size, of_last, key_of(of_last, size, last));
        return n_values_;
    }

    // Whether every value has rows of one class only, and known ones have rows of both.
    bool is_pure() const {
        const uint64_t known = seen_ & ~missing_, known_of_last = of_last_ & ~missing_;
        return !mixed_ && known_of_last && known != known_of_last;
    }
    Halves pure() const {
        const bool last_first = of_last_ & (seen_ & (~seen_ + 1));
        Halves found;
        found.first = last_first ? of_last_ : seen_ & ~of_last_;
        found.second = seen_ & ~found.first;
        found.sure = true;
        return found;
    }

    // The best halves of what was read. L rows, l of which are of the last class, on the left of N
    // and n take away 2 (l N - n L)^2 / (L (N - L) N); `less` is subtracted.
    Halves best(double n, double of_last, double noise, double less) {
        sort();
        if (many_classes_)
            return missing_ ? find<true, true>(n, of_last, noise, less)
                            : find<true, false>(n, of_last, noise, less);
        return missing_ ? find<false, true>(n, of_last, noise, less)
                        : find<false, false>(n, of_last, noise, less);
    }

  private:
    static constexpr uint64_t value_mask = Field::most_values - 1;

    struct Value {
        double size, of_last;

        Value operator+(const Value& other) const {
            return {size + other.size, of_last + other.of_last};
        }
    };

    // `joined`: by missing rows.
    template <bool many_classes, bool joined>
    Halves find(double n, double of_last, double noise, double less) const {
        const bool tells_equals = tell_equals(n);
        const bool tells_first = !many_classes || n_values_ <= all_groupings;
        const uint64_t first_value = seen_ & (~seen_ + 1);
        double best = no_score, second = no_score;  // of those that are not equal, if that is told
        uint64_t best_left = 0;
        const auto score_of = [&](const Value& side) {
            const double apart = side.of_last * n - side.size * of_last;
            return apart * apart / (side.size * (n - side.size));
        };
        const auto consider = [&](uint64_t left, const Value& side) {
            if (std::min(side.size, n - side.size) < fewest_) return;
            const double score = score_of(side);
            const double lower = std::min(best, score);
            const bool equal = tells_equals && score == best;
            second = equal && tells_first ? second : std::max(second, lower);
            best_left = score > best ? left : best_left;
            best = std::max(best, score);
            if (many_classes && equal && number_of(left) < number_of(best_left)) best_left = left;
        };
        // Of equals, missing rows are on the larger side, or else with the first value.
        const auto consider_both = [&](uint64_t left, const Value& side) {
            const double others = n - of_missing_.size - side.size;
            const bool left_first =
                side.size > others || (side.size == others && (left & first_value));
            if (left_first) consider(left | missing_, side + of_missing_);
            consider(left, side);
            if (!left_first) consider(left | missing_, side + of_missing_);
        };
        uint64_t left = 0;
        Value side{0, 0};
        for (size_t i = 0; i + 1 < n_values_; ++i) {
            const uint64_t value = sorted_[i] & value_mask;
            side = side + values_[value];
            left |= uint64_t(1) << value;
            if constexpr (joined)
                consider_both(left, side);
            else
                consider(left, side);
        }
        const double of_apart = joined ? score_of(of_missing_) : no_score;
        const bool apart = of_apart > best;  // had better be missing rows
        if (joined && !many_classes && n_values_ > 2 && (apart || fewest_ > 1)) {
            // The first and the last value alone have been considered.
            const uint64_t ends = (uint64_t(1) << (sorted_[0] & value_mask)) |
                                  (uint64_t(1) << (sorted_[n_values_ - 1] & value_mask));
            for (uint64_t one = seen_ & ~missing_ & ~ends; one; one &= one - 1)
                consider_both(one & (~one + 1), values_[__builtin_ctzll(one)]);
        }
        // Of more classes, halves that are not in the order of shares are tried, too.
        const bool bounded = many_classes && apart;
        const double drop = 2 * (bounded ? of_apart : best) / n;
        Halves found;
        found.drop = drop - less;
        found.less = less;
        found.plain = !bounded;
        found.first = best_left & first_value ? best_left : seen_ & ~best_left;
        found.second = seen_ & ~found.first;
        found.sure = !bounded && 2 * second / n < drop - tolerance(n, noise, drop);
        if (many_classes && best <= 0) found.sure = false;  // any others are as good
        return found;
    }

    // The place of halves among all groupings, by the values on the left (many classes).
    uint64_t number_of(uint64_t left) const {
        const uint64_t known = seen_ & ~missing_;
        const uint64_t last = ~(~uint64_t(0) >> 1) >> __builtin_clzll(known);
        return left & last ? known & ~left : left & known;
    }

    static uint32_t size_of(uint64_t rows) { return uint32_t(__builtin_popcountll(rows)); }

    void begin() {
        n_values_ = 0;
        mixed_ = false;
        seen_ = of_last_ = missing_ = 0;
    }

    // Without a branch: which values have rows is anybody's guess.
    void add(uint32_t value, uint32_t size, uint32_t of_last, uint64_t key) {
        values_[value] = {double(size), double(of_last)};
        keys_[n_values_] = key;
        n_values_ += size > 0;
        mixed_ |= (of_last > 0) & (of_last < size);
        seen_ |= uint64_t(size > 0) << value;
        of_last_ |= uint64_t(of_last > 0) << value;
    }

    void add_last(uint32_t value, bool joining, uint32_t size, uint32_t of_last, uint64_t key) {
        if (!joining) return add(value, size, of_last, key);
        of_missing_ = {double(size), double(of_last)};
        missing_ = uint64_t(size > 0) << value;
        mixed_ |= (of_last > 0) & (of_last < size);
        seen_ |= missing_;
        of_last_ |= uint64_t(of_last > 0) << value;
    }

    // Shares that differ have keys in their order, and equal ones in that of their values: those
    // of less than 2^22 rows are more than 2^-44 apart, 46 bits of the fraction are left.
    static uint64_t key_of_share(uint32_t part, uint32_t size, uint64_t value) {
        const double share = double(part) / double(size);
        uint64_t bits;
        std::memcpy(&bits, &share, sizeof bits);
        return (bits & ~value_mask) | value;
    }

    // keys_ into sorted_. The place of a key is the number of smaller ones: what comparisons of a
    // sort lead to could not be predicted.
    void sort() {
        constexpr size_t few = 16;
        const size_t n = n_values_;
        if (n > few) {
            std::copy_n(keys_, n, sorted_);
            return std::sort(sorted_, sorted_ + n);
        }
        uint32_t place[few] = {};
        for (size_t i = 1; i < n; ++i) {
            uint32_t at = 0;
            for (size_t k = 0; k < i; ++k) {
                const uint32_t is_smaller = keys_[k] < keys_[i];
                at += is_smaller;
                place[k] += 1 - is_smaller;
            }
            place[i] = at;
        }
        for (size_t i = 0; i < n; ++i) sorted_[place[i]] = keys_[i];
    }

    const bool many_classes_;  // of the table
    const double fewest_;
    size_t n_values_ = 0;
    bool mixed_ = false;
    uint64_t seen_ = 0, of_last_ = 0;        // values that have rows, and rows of the last class
    uint64_t missing_ = 0;                   // that of rows which join a half, if there are any
    Value of_missing_{0, 0};                 // and those
    Value values_[Field::most_values];       // by value
    uint64_t keys_[Field::most_values + 1];  // of those with rows
    uint64_t sorted_[Field::most_values];
};

// The best of the columns of a small node whose values are halved. Which it is, is anybody's
// guess, so that there is no branch.
struct BestHalves {
    static constexpr size_t none = ~size_t(0);

    size_t column = none;
    double drop = no_score, less = 0;
    double second = no_score;  // of those that are not equal
    bool sure = false, plain = false, in_lanes = false;

    // Returns whether a column is the best so far: the first of equals is. They are told as
    // ValueHalves::are_equal tells them; rows are few.
    bool consider(size_t j, const Halves& found, double found_less, bool found_in_lanes) {
        const bool is_best = found.drop > drop;
        const bool is_equal = found.drop == drop && found_less == less && found.plain && plain;
        const double lower = std::min(drop, found.drop);
        second = is_equal ? second : std::max(second, lower);
        drop = is_best ? found.drop : drop;
        less = is_best ? found_less : less;
        sure = is_best ? found.sure : sure;
        plain = is_best ? found.plain : plain;
        in_lanes = is_best ? found_in_lanes : in_lanes;
        column = is_best ? j : column;
        return is_best;
    }

    bool is_sure(double tolerance) const {
        return column != none && sure && second < drop - tolerance;
    }
};

}  // namespace branchwise
