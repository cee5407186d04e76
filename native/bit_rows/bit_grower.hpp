// The fast representation: rows as one-hot bits, counted by positional popcount.
//
// It serves rows that count as one and have only categories (missing being one).
// Within a node, rows are sorted by class, so the label needs no space and the weight
// of (value, class) is the number of set bits in one position of one segment.
//
// Identities: the last value's count is the segment's size less the other counts;
// a child's class segments follow from the counts of the chosen column, so rows can
// be moved to their places in one pass; a column that is constant at a node is
// constant below it. A node owns [begin, begin + n) of one of two buffers, and its
// children the same range of the other (see rows.hpp).
//
// The impurity of a column's branches is the sum of f(size of a branch) less that of
// f(weight of a value and class), f(x) = x log2 x, as f(0) = 0. So it is a sum over
// counts, one line of them for each class and one for all classes together, whatever
// their order.

#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "bit_rows/bit_counts.hpp"
#include "bit_rows/bit_layout.hpp"
#include "bit_rows/bit_moves.hpp"
#include "bit_rows/bit_blocks.hpp"
#include "core/grower.hpp"

namespace branchwise {

class BitGrower : public Grower {
  public:
    static constexpr size_t most_columns = 256;
    static constexpr size_t most_values = Field::most_values;
    static constexpr size_t most_words = 64;
    static constexpr size_t most_classes = 64;

    // Whether the representation can hold the problem; `values` gets the number of
    // values of each column.
    static bool suits(const Problem& problem, std::vector<uint32_t>& values) {
        if (problem.weights || problem.fractions || problem.branching != Branching::values)
            return false;
        if (problem.columns.size() > most_columns || problem.n_classes > int(most_classes))
            return false;
        values.clear();
        size_t words = 0;
        size_t room = 0;
        for (const Column& column : problem.columns) {
            if (column.numeric || column.width != 1 || column.n_codes > most_values + 1) return false;
            if (column.has_missing && problem.missing != Policy::branch) return false;
            const uint32_t count = column.n_codes - (column.has_missing ? 0 : 1);
            if (count > most_values) return false;
            values.push_back(count);
            const size_t bits = count ? count - 1 : 0;
            if (bits > room) {
                ++words;
                room = 64;
            }
            room -= bits;
        }
        return words <= most_words;
    }

    // Rows, shared by all growers of a tree; each touches only those of its nodes.
    struct Buffers {
        Array<Pair> side[2];
    };

    BitGrower(const Problem& problem, const Impurities& impurities,
              const std::vector<uint32_t>& values, Buffers& buffers, ThreadPool& pool)
        : Grower(problem, pool, size_t(problem.n_classes)),
          impurities_(impurities),
          buffers_(buffers),
          classes_(width_),
          layout_(values),
          stride_(layout_.n_pairs() * 2),
          line_(stride_ * 64) {
        small_counts_.resize((classes_ + 1) * line_);
        large_counts_.resize((classes_ + 1) * line_);
        candidates_.resize(problem.columns.size());
        drops_.resize(problem.columns.size());
        size_t most = 1;
        for (const Field& field : layout_.fields()) most = std::max<size_t>(most, field.values);
        cells_.resize(most * classes_);
        sizes_.resize(most);
        branches_.resize(most);
        counts_of_class_.resize(classes_);
        reserve_nodes(std::min(problem.n_rows / 2, most_reserved), 2 * most_reserved);
    }

    // An open node: its rows and the columns still worth testing.
    struct Job {
        int64_t node = 0;
        int64_t depth = 0;
        size_t begin = 0;
        size_t n = 0;
        int side = 0;
        uint64_t alive[most_columns / 64] = {};
    };

    size_t work(const Job& job) const { return job.n * layout_.n_words(); }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        Job root = make_root();
        if (is_open(counts_of_class_.data(), root.n, 0)) jobs.push_back(root);
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(const Job& job, std::vector<Job>& stack) {
        const double* weights = weights_of(job.node);
        present_.clear();
        for (size_t c = 0; c < classes_; ++c) {
            counts_of_class_[c] = uint32_t(weights[c]);
            if (counts_of_class_[c]) present_.push_back(c);
        }
        const Scale scale(double(job.n), impurities_, problem_);
        const int64_t whole = impurities_.impurity(problem_.criterion, counts_of_class_.data(),
                                                   problem_.n_classes, uint32_t(job.n));
        const uint64_t* node_rows = rows(job.side) + job.begin * stride_;
        Job below = job;
        size_t best = pure_column(job, whole, scale, node_rows);
        const bool in_bytes = job.n < 256 && impurities_.has_table_for(job.n);
        pieces_.clear();
        if (best != none) {
            count_rows(node_rows, best);
        } else if (in_bytes) {
            count_bits(node_rows, small_counts_.data());
            best = search(job, whole, scale, small_counts_.data(), below);
        } else {
            if (pool_.shares(work(job)))
                count_pieces(job, node_rows);
            else
                count_bits(node_rows, large_counts_.data());
            best = search(job, whole, scale, large_counts_.data(), below);
        }
        if (best != none) carry_out(job, below, best, node_rows, stack);
    }

  private:
    static constexpr size_t none = ~size_t(0);
    static constexpr size_t small_node = 48;
    static constexpr size_t most_reserved = size_t(1) << 19;

    // Rows as bits, sorted by class.
    Job make_root() {
        for (auto& side : buffers_.side) side.resize(problem_.n_rows * stride_ / 2);
        counts_of_class_ = RootRows(problem_, layout_, pool_).make(rows(0));
        Job root;
        root.n = problem_.n_rows;
        for (size_t j = 0; j < layout_.n_columns(); ++j)
            if (layout_[j].values > 1) root.alive[j / 64] |= uint64_t(1) << (j % 64);
        add_nodes(1);
        grown_.nodes[0].cases = double(root.n);
        for (size_t c = 0; c < classes_; ++c) grown_.weights[c] = counts_of_class_[c];
        return root;
    }

    uint64_t* rows(int side) const {
        return reinterpret_cast<uint64_t*>(buffers_.side[side].data());
    }

    bool is_open(const uint32_t* counts, size_t n, int64_t depth) const {
        if (!may_be_split(double(n), depth)) return false;
        size_t present = 0;
        for (size_t c = 0; c < classes_; ++c) present += counts[c] > 0;
        return present > 1;
    }

    template <typename Visit>
    static void for_each_alive(const Job& job, size_t n_columns, Visit visit) {
        for (size_t base = 0; base < n_columns; base += 64)
            for (uint64_t left = job.alive[base / 64]; left; left &= left - 1)
                if (!visit(base + size_t(__builtin_ctzll(left)))) return;
    }

    // ---- small nodes -----------------------------------------------------------

    // The first column of a small node whose branches are all pure, if there is one:
    // nothing beats it, and a later column would lose the tie. (An impure branch costs a
    // unit of weight, which no tolerance covers in a small node; and gain ratio may
    // prefer an impure one.) Columns that are constant are not pure.
    size_t pure_column(const Job& job, int64_t whole, const Scale& scale,
                       const uint64_t* node_rows) const {
        if (job.n > small_node || problem_.criterion == Criterion::gain_ratio) return none;
        const double fewest =
            std::max({problem_.cases_in_leaf, problem_.cases_in_branch, problem_.weight_in_leaf});
        if (fewest > 1 || !scale.enough(whole)) return none;
        const auto* row = reinterpret_cast<const Pair*>(node_rows);
        for (size_t pair = 0; pair < layout_.n_pairs(); ++pair) {
            const Pair pure = pure_columns(row + pair, pair);
            for (int k = 0; k < 2; ++k)
                if (pure[k])
                    return layout_.column_of_bit(pair * 128 +
                                                 size_t(k * 64 + __builtin_ctzll(pure[k])));
        }
        return none;
    }

    // The highest bits of the columns without a value that rows of two classes share.
    Pair pure_columns(const Pair* row, size_t pair) const {
        const size_t step = stride_ / 2;
        const Pair highest = layout_.highest(pair);
        Pair seen = {}, shared = {};            // values, by their bits
        Pair seen_last = {}, shared_last = {};  // last values, by the highest bits
        for (size_t c = 0; c < classes_; ++c) {
            Pair values = {};
            Pair others = highest;  // columns of which no row has the last value
            for (uint32_t i = 0; i < counts_of_class_[c]; ++i, row += step) {
                values |= *row;
                others &= layout_.any_of_column(*row, pair);
            }
            shared |= seen & values;
            seen |= values;
            shared_last |= seen_last & ~others;
            seen_last |= ~others;
        }
        return highest & ~(layout_.any_of_column(shared, pair) | shared_last);
    }

    // ---- counting ------------------------------------------------------------

    // The best column of a node, or none; its cells are counted. Columns that are
    // constant are dropped from `below`.
    template <typename Count>
    size_t search(const Job& job, int64_t whole, const Scale& scale, const Count* counts,
                  Job& below) {
        double top = no_score;
        for_each_alive(job, layout_.n_columns(), [&](size_t j) {
            candidates_[j] = score(j, counts, whole, scale, below);
            top = std::max(top, candidates_[j]);
            return true;
        });
        if (problem_.quinlan) top = drop_below_average(job, scale);
        if (top == no_score) return none;
        const double least = scale.least(top);
        size_t best = none;
        for_each_alive(job, layout_.n_columns(), [&](size_t j) {
            best = j;
            return candidates_[j] < least;
        });
        cells_from_bits(best, counts);
        return best;
    }

    // Returns the best score that is left.
    double drop_below_average(const Job& job, const Scale& scale) {
        AverageGain average;
        for_each_alive(job, layout_.n_columns(), [&](size_t j) {
            if (candidates_[j] != no_score && problem_.few_values[j])
                average.add(scale.gain(drops_[j]));
            return true;
        });
        const double least = average.least();
        double top = no_score;
        for_each_alive(job, layout_.n_columns(), [&](size_t j) {
            if (scale.gain(drops_[j]) < least || !scale.enough(drops_[j]))
                candidates_[j] = no_score;
            top = std::max(top, candidates_[j]);
            return true;
        });
        return top;
    }

    // A line of counts for every class that the node has, and one for all classes.
    template <typename Count>
    void count_bits(const uint64_t* node_rows, Count* counts) const {
        const size_t stride = stride_;  // bytes may alias members, but not these
        const size_t line = line_;
        Count* all = counts + classes_ * line;
        std::fill_n(all, line, Count(0));
        for (size_t c : present_) {
            const size_t n = counts_of_class_[c];
            popcount::count_line(node_rows, stride, n, counts + c * line);
            popcount::add_line(counts + c * line, stride, all);
            node_rows += n * stride;
        }
    }

    // The same by all threads.
    void count_pieces(const Job& job, const uint64_t* node_rows) {
        const size_t most_rows = job.n / pool_.pieces(work(job)) + 1;
        pieces_.divide(node_rows, stride_, counts_of_class_, most_rows);
        pieces_.count(pool_, work(job), classes_, large_counts_.data());
    }

    // cells_[value][class] and sizes_[value] of one column.
    template <typename Count>
    void cells_from_bits(size_t j, const Count* counts) {
        const Field& field = layout_[j];
        const size_t last = field.values - 1;
        std::fill_n(sizes_.begin(), field.values, 0);
        if (present_.size() < classes_) std::fill_n(cells_.begin(), field.values * classes_, 0);
        for (size_t c : present_) {
            const Count* bit = counts + c * line_ + field.first_bit();
            uint32_t left = counts_of_class_[c];
            for (size_t v = 0; v < last; ++v) {
                cells_[v * classes_ + c] = bit[v];
                sizes_[v] += bit[v];
                left -= bit[v];
            }
            cells_[last * classes_ + c] = left;
            sizes_[last] += left;
        }
    }

    // The same from the rows themselves.
    void count_rows(const uint64_t* node_rows, size_t j) {
        const Field& field = layout_[j];
        std::fill_n(cells_.begin(), field.values * classes_, 0);
        std::fill_n(sizes_.begin(), field.values, 0);
        const uint64_t* row = node_rows;
        for (size_t c = 0; c < classes_; ++c)
            for (uint32_t i = 0; i < counts_of_class_[c]; ++i, row += stride_) {
                const uint32_t value = field.value(row);
                ++cells_[value * classes_ + c];
                ++sizes_[value];
            }
    }

    // ---- scoring -------------------------------------------------------------

    template <typename Count>
    double score(size_t j, const Count* counts, int64_t whole, const Scale& scale, Job& below) {
        const auto n = uint32_t(scale.total);
        const Field& field = layout_[j];
        const Count* line = counts + field.first_bit();
        const Count* sizes = line + classes_ * line_;
        int64_t in_branches = 0;
        int64_t of_sizes = 0;
        if (problem_.criterion == Criterion::gini) {
            in_branches = gini_of_branches(j, counts);
        } else {
            of_sizes = sum_of_impurities(sizes, field.values - 1, n);
            in_branches = of_sizes;
            for (size_t c : present_)
                in_branches -=
                    sum_of_impurities(line + c * line_, field.values - 1, counts_of_class_[c]);
        }
        if (in_branches == whole && popcount::is_constant(sizes, field.values - 1, n)) {
            below.alive[j / 64] &= ~(uint64_t(1) << (j % 64));
            return no_score;
        }
        const double fewest = std::max(problem_.cases_in_leaf, problem_.weight_in_leaf);
        if (fewest > 1 && double(popcount::fewest(sizes, field.values - 1, n)) < fewest)
            return no_score;
        if (problem_.cases_in_branch > 1 && !two_large(sizes, field.values - 1, n)) return no_score;
        const int64_t drop = std::max<int64_t>(whole - in_branches, 0);
        drops_[j] = drop;
        return problem_.quinlan || scale.enough(drop)
                   ? scale.score(drop, impurities_.x_log2_x(n) - of_sizes)
                   : no_score;
    }

    // Whether two branches have as many cases as two must have.
    template <typename Count>
    bool two_large(const Count* sizes, size_t last, uint32_t n) const {
        size_t large = 0;
        for (size_t v = 0; v < last; ++v) {
            large += double(sizes[v]) >= problem_.cases_in_branch;
            n -= sizes[v];
        }
        return large + (double(n) >= problem_.cases_in_branch) >= 2;
    }

    // Of a line of counts, which together with the last value's make up n.
    template <typename Count>
    int64_t sum_of_impurities(const Count* counts, size_t last, uint32_t n) const {
        int64_t sum = 0;
        for (size_t v = 0; v < last; ++v) {
            sum += impurity(counts[v]);
            n -= counts[v];
        }
        return sum + impurity(Count(n));
    }

    int64_t impurity(uint8_t count) const { return impurities_.table()[count]; }
    int64_t impurity(uint32_t count) const { return impurities_.x_log2_x(count); }

    template <typename Count>
    int64_t gini_of_branches(size_t j, const Count* counts) {
        cells_from_bits(j, counts);
        int64_t sum = 0;
        for (size_t v = 0; v < layout_[j].values; ++v)
            sum += impurities_.impurity(problem_.criterion, &cells_[v * classes_],
                                        problem_.n_classes, sizes_[v]);
        return sum;
    }

    // ---- moving --------------------------------------------------------------

    void carry_out(const Job& job, Job& below, size_t j, const uint64_t* node_rows,
                   std::vector<Job>& stack) {
        below.alive[j / 64] &= ~(uint64_t(1) << (j % 64));
        below.depth = job.depth + 1;
        below.side = 1 - job.side;
        find_branches(layout_[j].values);
        const int64_t first = add_nodes(n_branches_);
        record_split_on(job, j, first);

        size_t begin = job.begin;
        const size_t before = stack.size();
        for (size_t branch = 0; branch < n_branches_; ++branch) {
            const size_t v = branches_[branch];
            const int64_t node = first + int64_t(branch);
            record_child(node, j, v);
            if (is_open(&cells_[v * classes_], sizes_[v], below.depth)) {
                below.node = node;
                below.begin = begin;
                below.n = sizes_[v];
                stack.push_back(below);
            }
            begin += sizes_[v];
        }
        if (stack.size() == before) return;
        std::reverse(stack.begin() + std::ptrdiff_t(before), stack.end());
        uint64_t* children_rows = rows(below.side) + job.begin * stride_;
        if (!pieces_.empty())
            pieces_.move(pool_, work(job), layout_[j], sizes_, children_rows);
        else
            mover_.move(layout_[j], node_rows, children_rows, stride_, counts_of_class_, cells_,
                        sizes_);
    }

    // The values that have rows. Written without a branch: which do is anybody's guess.
    void find_branches(size_t values) {
        n_branches_ = 0;
        for (size_t v = 0; v < values; ++v) {
            branches_[n_branches_] = v;
            n_branches_ += sizes_[v] > 0;
        }
    }

    void record_split_on(const Job& job, size_t j, int64_t first) {
        const Column& column = problem_.columns[j];
        const bool own = layout_[j].values == column.n_codes && sizes_[column.missing_code()] > 0;
        const bool tested =
            problem_.missing == Policy::largest || problem_.unseen == Policy::largest;
        const int32_t largest = tested ? largest_of_branches() : stop_here;
        const int32_t missing_branch = own ? int32_t(n_branches_) - 1 : stop_here;
        Split split;
        split.column = int32_t(j);
        split.missing_to = missing_route(problem_, largest, missing_branch);
        split.unseen_to = unseen_route(problem_, largest, split.missing_to);
        record_split(job.node, split, first, n_branches_);
    }

    int32_t largest_of_branches() const {
        std::vector<double> sizes;
        for (size_t branch = 0; branch < n_branches_; ++branch)
            sizes.push_back(sizes_[branches_[branch]]);
        return largest_branch(sizes);
    }

    void record_child(int64_t at, size_t j, size_t v) {
        Node& node = grown_.nodes[size_t(at)];
        node.code = v == problem_.columns[j].missing_code() ? no_code : int32_t(v);
        node.cases = sizes_[v];
        double* weights = weights_of(at);
        for (size_t c = 0; c < classes_; ++c) weights[c] = cells_[v * classes_ + c];
    }

    const Impurities& impurities_;
    Buffers& buffers_;
    const size_t classes_;
    const BitLayout layout_;
    const size_t stride_;  // words of a row, an even number
    const size_t line_;    // counters for the bits of a row

    // Scratch, kept between nodes.
    std::vector<double> candidates_;  // scores of columns
    std::vector<int64_t> drops_;      // and the impurities they take away
    std::vector<uint8_t> small_counts_;
    std::vector<uint32_t> large_counts_, cells_, sizes_;
    std::vector<uint32_t> counts_of_class_;  // rows of each class at the node
    std::vector<size_t> present_;            // classes that have some
    std::vector<size_t> branches_;           // values that have rows
    size_t n_branches_ = 0;
    RowMover mover_;
    Pieces pieces_;  // of a node that is shared out
};

}  // namespace branchwise
