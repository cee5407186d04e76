// The fast representation: rows as one-hot bits, counted by positional popcount.
//
// It serves rows that count as one and have only categories, missing being one: rows that lack a
// value are a branch, or join that which is learned.
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

#include "bit_rows/bit_blocks.hpp"
#include "bit_rows/bit_counts.hpp"
#include "bit_rows/bit_groups.hpp"
#include "bit_rows/bit_halves.hpp"
#include "bit_rows/bit_impurity.hpp"
#include "bit_rows/bit_layout.hpp"
#include "bit_rows/bit_members.hpp"
#include "bit_rows/bit_moves.hpp"
#include "bit_rows/bit_values.hpp"
#include "bit_rows/pure_columns.hpp"
#include "core/grower.hpp"

namespace branchwise {

class BitGrower : public Grower {
  public:
    static constexpr size_t most_columns = ColumnSet::most;
    static constexpr size_t most_values = Field::most_values;
    static constexpr size_t most_words = 64;
    static constexpr size_t most_classes = 64;

    // Whether the representation can hold the problem; `values` gets the number of
    // values of each column.
    static bool suits(const Problem& problem, std::vector<uint32_t>& values) {
        if (problem.weights || problem.fractions || problem.tests_splits) return false;
        if (problem.missing == Policy::surrogate) return false;
        if (problem.random_splits && problem.branching != Branching::values) return false;
        if (problem.columns.size() > most_columns || problem.n_classes > int(most_classes))
            return false;
        values.clear();
        size_t words = 0;
        size_t room = 0;
        for (const Column& column : problem.columns) {
            if (column.numeric || column.width != 1 || column.n_codes > most_values + 1)
                return false;
            if (column.has_missing && problem.missing != Policy::branch &&
                problem.missing != Policy::learned)
                return false;
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

    BitGrower(const BitGrower&) = delete;  // its parts refer to one another
    BitGrower& operator=(const BitGrower&) = delete;

    BitGrower(const Problem& problem, const Impurities& impurities,
              const std::vector<uint32_t>& values, Buffers& buffers, ThreadPool& pool)
        : Grower(problem, pool, size_t(problem.n_classes)),
          impurities_(impurities),
          buffers_(buffers),
          classes_(width_),
          grouped_(problem.branching != Branching::values),
          learned_(problem.missing == Policy::learned),
          layout_(values),
          stride_(layout_.n_pairs() * 2),
          line_(stride_ * 64),
          pure_columns_(problem, layout_),
          values_(problem, impurities, layout_),
          groups_(problem, impurities, layout_),
          halves_serve_(ValueHalves::serve(problem) && problem.min_gain <= 0),
          halver_(problem),
          members_(layout_, classes_),
          table_(layout_, classes_) {
        small_counts_.resize((classes_ + 1) * line_);
        large_counts_.resize((classes_ + 1) * line_);
        branches_.resize(table_.sizes.size());
        counts_of_class_.resize(classes_);
        reserve_nodes(std::min(problem.n_rows, most_reserved), 2 * most_reserved);
    }

    // An open node: its rows and the columns still worth testing.
    struct Job {
        int64_t node = 0;
        int64_t depth = 0;
        size_t begin = 0;
        size_t n = 0;
        int side = 0;
        uint64_t key = 0;      // of its draws
        uint64_t members = 0;  // of a small node, whose rows are not moved
        ColumnSet alive;
    };

    size_t work(const Job& job) const { return job.n * layout_.n_words(); }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        Job root = make_root();
        if (is_open(counts_of_class_.data(), root.n, 0)) jobs.push_back(root);
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs. Of a small
    // node the whole subtree is grown, where few of its columns are drawn.
    void split(const Job& job, std::vector<Job>& stack) {
        if (!draws_.any() || job.n > Members::most || !impurities_.has_table_for(job.n))
            return split_node(job, stack);
        small_.push_back(job);
        small_.back().members =
            members_.read(rows(job.side) + job.begin * stride_, job.n, weights_of(job.node));
        while (!small_.empty()) {
            const Job next = small_.back();
            small_.pop_back();
            if (!halves_serve_ || !split_in_halves(next, small_)) split_node(next, small_);
        }
    }

  private:
    static constexpr size_t none = ~size_t(0);
    static constexpr size_t most_reserved = size_t(1) << 19;

    void split_node(const Job& job, std::vector<Job>& stack) {
        const double* weights = weights_of(job.node);
        present_.clear();
        for (size_t c = 0; c < classes_; ++c) {
            counts_of_class_[c] = uint32_t(weights[c]);
            if (counts_of_class_[c]) present_.push_back(c);
        }
        const BitNode node{uint32_t(job.n), counts_of_class_, present_,
                           impurities_.impurity(problem_.criterion, counts_of_class_.data(),
                                                problem_.n_classes, uint32_t(job.n)),
                           Scale(double(job.n), impurities_, problem_)};
        const uint64_t* node_rows = rows(job.side) + job.begin * stride_;
        Job below = job;
        pieces_.clear();
        size_t best;
        if (job.members)
            best = best_of_members(job, node, below);
        else if (draws_.any())
            best = best_drawn(job, node, node_rows, below);
        else if ((best = pure_columns_.first(node_rows, node)) != none)
            count_pure(node, best, node_rows);
        else
            best = best_counted(job, node, node_rows, false, job.alive, below);
        if (best != none) carry_out(job, below, best, node_rows, stack);
    }

    // Rows as bits, sorted by class.
    Job make_root() {
        for (auto& side : buffers_.side) side.resize(problem_.n_rows * stride_ / 2);
        counts_of_class_ = RootRows(problem_, layout_, pool_).make(rows(0));
        Job root;
        root.n = problem_.n_rows;
        for (size_t j = 0; j < layout_.n_columns(); ++j)
            if (layout_[j].values > 1) root.alive.add(j);
        root.key = problem_.draw_key;
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

    // ---- counting ------------------------------------------------------------

    // The best column of the first batch that has a split, or none; its values are counted.
    size_t best_drawn(const Job& job, const BitNode& node, const uint64_t* node_rows, Job& below) {
        const ColumnSet pure = pure_columns_.all(node_rows, node);
        bool counted = false;
        draws_.begin(job.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next()) {
            ColumnSet open;
            bool any = false;
            for (uint32_t j : *drawn) {
                if (pure.has(j)) {
                    count_pure(node, j, node_rows);
                    return j;
                }
                if (!below.alive.has(j)) continue;
                open.add(j);
                any = true;
            }
            if (!any) continue;
            const size_t best = best_counted(job, node, node_rows, counted, open, below);
            if (best != none) return best;
            counted = true;
        }
        return none;
    }

    // The same of a small node: columns are counted when they are drawn.
    size_t best_of_members(const Job& job, const BitNode& node, Job& below) {
        uint8_t* counts = small_counts_.data();
        draws_.begin(job.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next()) {
            ColumnSet open;
            bool any = false;
            for (uint32_t j : *drawn) {
                if (!below.alive.has(j)) continue;
                members_.count(layout_[j], job.members, present_, line_, counts);
                if (pure_columns_.is_pure(j, node, counts)) {
                    table_.read(layout_[j], node, counts, line_);
                    if (grouped_) groups_.group_pure(node, j, table_);
                    return j;
                }
                open.add(j);
                any = true;
            }
            if (!any) continue;
            const size_t best = search(open, node, counts, below);
            if (best != none) return best;
        }
        return none;
    }

    // Split a small node in two by the first batch, if plain numbers are sure how; returns whether
    // they are.
    bool split_in_halves(const Job& job, std::vector<Job>& stack) {
        const double* weights = weights_of(job.node);
        size_t n_classes = 0, last_class = 0;
        for (size_t c = 0; c < classes_; ++c) {
            n_classes += weights[c] > 0;
            last_class = weights[c] > 0 ? c : last_class;
        }
        const double n = double(job.n), of_last = weights[last_class];
        const double noise = double(impurities_.noise(n)) * impurities_.unit();
        if (!halver_.serves(n, n_classes, noise)) return false;
        Job below = job;
        Halves best;
        size_t column = none;
        double second = no_score;
        draws_.begin(job.key);
        for (uint32_t j : draws_.next()) {
            if (!below.alive.has(j)) continue;
            const bool joining = tells_missing(j);
            if (joining && !learned_) return false;  // which may have a third branch
            const size_t n_values = halver_.read(layout_[j], joining, members_, job.members,
                                                 members_.of_class(last_class));
            if (n_values < 2) {
                below.alive.drop(j);
                continue;
            }
            const double less = corrected_share(problem_, n_values, n);
            if (less == 0 && halver_.is_pure() && pure_columns_.serves(job.n)) {
                carry_out_halves(job, below, j, halver_.pure(), stack);
                return true;
            }
            const Halves found =
                halver_.best(n, of_last, noise, less > 0 ? less * impurity_of(n, of_last) : 0);
            if (ValueHalves::are_equal(best, found, n)) continue;  // the first is taken
            second = std::max(second, std::min(best.drop, found.drop));
            if (found.drop <= best.drop) continue;
            best = found;
            column = j;
        }
        const double least = best.drop - ValueHalves::tolerance(n, noise, best.drop);
        if (column == none || !best.sure || second >= least) return false;
        carry_out_halves(job, below, column, best, stack);
        return true;
    }

    // Of n rows of two classes.
    double impurity_of(double n, double of_last) const {
        const uint32_t counts[2] = {uint32_t(n - of_last), uint32_t(of_last)};
        return double(impurities_.impurity(problem_.criterion, counts, 2, uint32_t(n))) *
               impurities_.unit();
    }

    void carry_out_halves(const Job& job, Job& below, size_t j, const Halves& halves,
                          std::vector<Job>& stack) {
        const uint64_t right = members_.with_values(layout_[j], job.members, halves.second);
        const uint64_t rows[2] = {job.members & ~right, right};
        const uint64_t missing = tells_missing(j) ? layout_[j].last : 0;
        values_of_branch_[0] = halves.first & ~missing;
        values_of_branch_[1] = halves.second & ~missing;
        n_branches_ = 2;
        for (size_t b = 0; b < 2; ++b) {
            branches_[b] = b;
            members_of_branch_[b] = rows[b];
            table_.sizes[b] = uint32_t(__builtin_popcountll(rows[b]));
            for (size_t c = 0; c < classes_; ++c)
                table_.cells[b * classes_ + c] =
                    uint32_t(__builtin_popcountll(rows[b] & members_.of_class(c)));
        }
        below.depth = job.depth + 1;
        const int64_t first = add_nodes(n_branches_);
        const int32_t missing_to = halves.first & missing    ? 0
                                   : halves.second & missing ? 1
                                                             : stop_here;
        record_split_on(job, j, missing_to, first);
        record_children(job, below, first, false, stack);
    }

    void count_pure(const BitNode& node, size_t j, const uint64_t* node_rows) {
        table_.count(layout_[j], node, node_rows, stride_);
        if (grouped_) groups_.group_pure(node, j, table_);
    }

    // The best of the columns that are open, from counts; these may have been `counted`.
    size_t best_counted(const Job& job, const BitNode& node, const uint64_t* node_rows,
                        bool counted, const ColumnSet& open, Job& below) {
        if (job.n < 256 && impurities_.has_table_for(job.n)) {
            if (!counted) count_bits(node_rows, small_counts_.data());
            return search(open, node, small_counts_.data(), below);
        }
        if (!counted && pool_.shares(work(job)))
            count_pieces(job, node_rows);
        else if (!counted)
            count_bits(node_rows, large_counts_.data());
        return search(open, node, large_counts_.data(), below);
    }

    // The best column of a node, or none; its values are counted. Columns that are constant are
    // dropped from `below`.
    template <typename Count>
    size_t search(const ColumnSet& open, const BitNode& node, const Count* counts, Job& below) {
        const size_t best = grouped_ ? best_of_groups(open, node, counts, below)
                                     : values_.best_column(node, open, counts, below.alive);
        if (best != none) table_.read(layout_[best], node, counts, line_);
        return best;
    }

    template <typename Count>
    size_t best_of_groups(const ColumnSet& open, const BitNode& node, const Count* counts,
                          Job& below) {
        columns_.clear();
        open.each(layout_.n_columns(), [&](size_t j) {
            const Field& field = layout_[j];
            const Count* sizes = counts + classes_ * line_ + field.first_bit();
            if (is_constant(j, sizes, node.n))
                below.alive.drop(j);
            else
                columns_.push_back(uint32_t(j));
            return true;
        });
        return groups_.best_column(node, columns_, counts);
    }

    // Whether a column can tell no rows apart, at a node and below. Missing rows that join others
    // are not told from these.
    template <typename Count>
    bool is_constant(size_t j, const Count* sizes, uint32_t n) const {
        const size_t last = layout_[j].values - 1;
        if (!learned_ || !tells_missing(j)) return popcount::is_constant(sizes, last, n);
        return std::count_if(sizes, sizes + last, [](Count size) { return size > 0; }) < 2;
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

    // ---- moving --------------------------------------------------------------

    void carry_out(const Job& job, Job& below, size_t j, const uint64_t* node_rows,
                   std::vector<Job>& stack) {
        if (!grouped_) below.alive.drop(j);
        below.depth = job.depth + 1;
        below.side = 1 - job.side;
        const size_t missing = problem_.columns[j].missing_code();
        const bool some_missing = tells_missing(j) && table_.sizes[missing] > 0;
        const bool own = some_missing && !learned_;
        find_branches(layout_[j].values);
        if (grouped_) gather_branches(j);
        const int64_t first = add_nodes(n_branches_);
        const int32_t missing_branch = own            ? int32_t(n_branches_) - 1
                                       : some_missing ? groups_.branch_of()[missing]
                                                      : stop_here;
        record_split_on(job, j, missing_branch, first);
        const BranchOfRow branch_of_row{layout_[j], grouped_ ? groups_.branch_of() : nullptr};
        if (job.members) members_.divide(branch_of_row, job.members, members_of_branch_);

        const size_t before = stack.size();
        record_children(job, below, first, own, stack);
        if (stack.size() > before && !job.members)
            move_rows(job, branch_of_row, node_rows, stack.data() + before, stack.size() - before);
    }

    // Those that are open are added to the stack, so that the first is split first.
    void record_children(const Job& job, Job& below, int64_t first, bool own,
                         std::vector<Job>& stack) {
        size_t begin = job.begin;
        const size_t before = stack.size();
        for (size_t branch = 0; branch < n_branches_; ++branch) {
            const size_t at = branches_[branch];
            const int64_t node = first + int64_t(branch);
            record_child(node, at, own && branch + 1 == n_branches_);
            if (is_open(&table_.cells[at * classes_], table_.sizes[at], below.depth)) {
                below.node = node;
                below.begin = begin;
                below.n = table_.sizes[at];
                if (job.members) below.members = members_of_branch_[at];
                if (draws_.any()) below.key = child_key(job.key, branch);
                stack.push_back(below);
            }
            begin += table_.sizes[at];
        }
        std::reverse(stack.begin() + std::ptrdiff_t(before), stack.end());
    }

    // To the children that are open.
    void move_rows(const Job& job, const BranchOfRow& branch, const uint64_t* node_rows,
                   const Job* open, size_t n_open) {
        const size_t n_places = grouped_ ? n_branches_ : branch.field.values;
        uint64_t* children_rows = rows(1 - job.side) + job.begin * stride_;
        if (!pieces_.empty()) {
            pieces_.move(pool_, work(job), branch, n_places, table_.sizes, children_rows);
        } else if (grouped_ && n_branches_ == 2) {
            const bool left = open[n_open - 1].begin == job.begin;
            const bool is_open[] = {left, n_open == 2 || !left};
            two_way_mover_.move(branch, node_rows, job.n, children_rows, stride_, table_.sizes[0],
                                is_open);
        } else {
            mover_.move(branch, n_places, node_rows, children_rows, stride_, counts_of_class_,
                        table_.cells, table_.sizes);
        }
    }

    bool tells_missing(size_t j) const { return layout_[j].values == problem_.columns[j].n_codes; }

    // The values that have rows. Written without a branch: which do is anybody's guess.
    void find_branches(size_t values) {
        n_branches_ = 0;
        for (size_t v = 0; v < values; ++v) {
            branches_[n_branches_] = v;
            n_branches_ += table_.sizes[v] > 0;
        }
    }

    // The groups of these, in the order of their first values.
    void gather_branches(size_t j) {
        const uint8_t* branch_of = groups_.branch_of();
        std::fill_n(values_of_branch_, n_branches_, 0);
        for (size_t i = 0; i < n_branches_; ++i)
            values_of_branch_[branch_of[branches_[i]]] |= uint64_t(1) << branches_[i];
        if (learned_ && tells_missing(j))  // in a branch of others
            for (size_t i = 0; i < n_branches_; ++i) values_of_branch_[i] &= layout_[j].mask;
        n_branches_ = groups_.gather(layout_[j], table_);
        for (size_t branch = 0; branch < n_branches_; ++branch) branches_[branch] = branch;
    }

    void record_split_on(const Job& job, size_t j, int32_t missing_branch, int64_t first) {
        const bool tested = problem_.missing == Policy::largest ||
                            problem_.missing == Policy::learned ||
                            problem_.unseen == Policy::largest;
        const int32_t largest = tested ? largest_of_branches() : stop_here;
        Split split;
        split.column = int32_t(j);
        split.missing_to = missing_route(problem_, largest, missing_branch);
        split.unseen_to = unseen_route(problem_, largest, split.missing_to);
        record_split(job.node, split, first, n_branches_);
    }

    int32_t largest_of_branches() {
        sizes_.clear();
        for (size_t branch = 0; branch < n_branches_; ++branch)
            sizes_.push_back(table_.sizes[branches_[branch]]);
        return largest_branch(sizes_);
    }

    // Of values that share a branch.
    int32_t code_of(uint64_t values) {
        uint32_t codes[Field::most_values];
        size_t n = 0;
        for (; values; values &= values - 1) codes[n++] = uint32_t(__builtin_ctzll(values));
        return n == 1 ? int32_t(codes[0]) : grown_.add_group(Span<const uint32_t>(codes, n));
    }

    // `at`: where the table has its rows.
    void record_child(int64_t child, size_t at, bool missing) {
        Node& node = grown_.nodes[size_t(child)];
        if (missing)
            node.code = no_code;
        else
            node.code = grouped_ ? code_of(values_of_branch_[at]) : int32_t(at);
        node.cases = table_.sizes[at];
        double* weights = weights_of(child);
        for (size_t c = 0; c < classes_; ++c) weights[c] = table_.cells[at * classes_ + c];
    }

    const Impurities& impurities_;
    Buffers& buffers_;
    const size_t classes_;
    const bool grouped_;  // values may share a branch
    const bool learned_;  // and missing rows one of these
    const BitLayout layout_;
    const size_t stride_;  // words of a row, an even number
    const size_t line_;    // counters for the bits of a row
    const PureColumns pure_columns_;
    BitValues values_;
    BitGroups groups_;
    const bool halves_serve_;  // for small nodes
    ValueHalves halver_;
    Members members_;  // of the small node whose subtree is grown

    // Scratch, kept between nodes.
    std::vector<uint8_t> small_counts_;
    std::vector<uint32_t> large_counts_;
    ValueTable table_;                       // of the chosen column, by value and then by branch
    std::vector<uint32_t> columns_;          // that vary
    std::vector<uint32_t> counts_of_class_;  // rows of each class at the node
    std::vector<size_t> present_;            // classes that have some
    std::vector<size_t> branches_;           // where the table has those with rows
    std::vector<double> sizes_;              // of branches
    size_t n_branches_ = 0;
    std::vector<Job> small_;  // nodes below a small one that are open
    uint64_t members_of_branch_[Field::most_values] = {};
    uint64_t values_of_branch_[Field::most_values] = {};
    RowMover mover_;
    TwoWayMover two_way_mover_;
    Pieces pieces_;  // of a node that is shared out
};

}  // namespace branchwise
