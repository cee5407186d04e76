// The rows of a subtree: numbered, and columns have lists of these numbers in their order, which
// are divided in place. Of nodes with very few rows, lists are not divided: few of their columns
// are looked at, and the rows are sorted for these.
//
// Row is the type of a number: two bytes for subtrees of some thousand rows, one for those of few.
// W is Times where rows are repeated, otherwise uint32_t.

#pragma once

#include <algorithm>
#include <vector>

#include "records/records.hpp"
#include "records/list_division.hpp"
#include "regression/moments.hpp"

namespace branchwise {

template <typename Value, typename Less>
void sort_few(std::vector<Value>& values, const Less& less) {
    constexpr size_t few = 24;
    if (values.size() > few) return std::sort(values.begin(), values.end(), less);
    for (size_t i = 1; i < values.size(); ++i) {
        const Value value = values[i];
        size_t at = i;
        for (; at > 0 && less(value, values[at - 1]); --at) values[at] = values[at - 1];
        values[at] = value;
    }
}

template <typename W, typename Row, size_t most_rows>
class SubtreeRows {
    template <typename, typename, size_t>
    friend class SubtreeRows;

  public:
    using Rows = Records<W, double>;
    static constexpr bool repeated = Rows::repeated;
    static constexpr size_t most = most_rows;
    static constexpr size_t most_cases = repeated ? 2 * most : most;  // repeated rows are several

    // A node: its rows in all lists, and its columns in alive_.
    struct Open {
        int64_t node, depth;
        uint32_t begin, end;
        uint32_t cases;
        uint32_t alive_begin, alive_end;
        uint64_t key;  // of its draws
        bool listed;   // whether it has lists

        size_t n() const { return end - begin; }
    };

    // The whole subtree of a node that is to be grown.
    Open load(const RecordJob& job) {
        const size_t n = job.n, n_limbs = scale_.sums.size();
        reserve(n);
        std::fill_n(limbs_.begin(), n * n_limbs, 0.0);
        const uint8_t* record = records_.first(job);
        uint32_t cases = 0;
        for (size_t i = 0; i < n; ++i, record += records_.size()) {
            number_[i] = records_.target(record);
            if constexpr (repeated) times_[i] = Times(records_.weight(record));
            scale_.template add_number<false>(number_[i], times(i), &limbs_[i * n_limbs]);
            cases += times(i);
            rows_[i] = Row(i);
            origin_[i] = uint32_t(i);
        }
        if (of_few) sort_rows(by_number_, rows_.data(), number_.data(), n);
        alive_.assign(job.alive->begin(), job.alive->end());
        for (uint32_t j : alive_) {
            if (records_.is_list(j)) {
                take_list(j, records_.ranked(job, records_.slot(j)), n);
                continue;
            }
            record = records_.first(job);
            for (size_t i = 0; i < n; ++i, record += records_.size())
                rank(j)[i] = records_.code(record, j);
            arrange(j, n);
        }
        return {job.node, job.depth, 0, uint32_t(n), cases, 0, uint32_t(alive_.size()),
                job.key,  true};
    }

    // That of a node of a larger subtree.
    template <typename Wide, size_t more>
    Open load(const SubtreeRows<W, Wide, more>& from,
              const typename SubtreeRows<W, Wide, more>::Open& node) {
        const size_t n = node.n(), n_limbs = scale_.sums.size();
        reserve(n);
        Row number_of[more];
        for (size_t i = 0; i < n; ++i) {
            const auto row = from.rows_[node.begin + i];
            number_of[row] = Row(i);
            number_[i] = from.number_[row];
            if constexpr (repeated) times_[i] = from.times_[row];
            origin_[i] = from.origin_[row];
            rows_[i] = Row(i);
            std::copy_n(&from.limbs_[row * n_limbs], n_limbs, &limbs_[i * n_limbs]);
        }
        if (of_few) sort_rows(by_number_, rows_.data(), number_.data(), n);
        alive_.assign(from.alive_.begin() + node.alive_begin, from.alive_.begin() + node.alive_end);
        for (uint32_t j : alive_) {
            const uint32_t* const ranks = from.rank(j);
            for (size_t i = 0; i < n; ++i) rank(j)[i] = ranks[from.rows_[node.begin + i]];
            if (!from.has_list(j)) {
                arrange(j, n);
                continue;
            }
            const auto* list = from.order(j) + node.begin;
            uint8_t tied = 0;
            for (size_t i = 0; i < n; ++i) {
                order(j)[i] = number_of[list[i]];
                tied |= i > 0 && ranks[list[i]] == ranks[list[i - 1]];
            }
            tied_[j] = tied;
        }
        return {node.node, node.depth, 0, uint32_t(n), node.cases, 0, uint32_t(alive_.size()),
                node.key,  true};
    }

    // A node that is not certain, as one with records and lists of its own.
    void hand_back(const RecordJob& from, const Open& node, std::vector<RecordJob>& stack) {
        RecordJob job;
        job.node = node.node;
        job.depth = node.depth;
        job.key = node.key;
        job.n = node.n();
        job.n_ranked.assign(records_.n_lists(), 0);
        records_.take_arena(job);
        const size_t size = records_.size();
        uint8_t* out = records_.first_to_write(job);
        for (size_t i = node.begin; i < node.end; ++i, out += size) {
            position_[rows_[i]] = uint32_t(i - node.begin);
            copy_record(records_.first(from) + origin_[rows_[i]] * size, out, size);
        }
        std::vector<uint32_t> alive(alive_.begin() + node.alive_begin,
                                    alive_.begin() + node.alive_end);
        for (uint32_t j : alive) {
            if (!records_.is_list(j)) continue;
            const size_t slot = records_.slot(j);
            job.n_ranked[slot] = uint32_t(job.n);
            Ranked* entry = records_.ranked(job, slot);
            const Row* const list = in_order(node, j);
            for (size_t i = 0; i < job.n; ++i) *entry++ = {rank(j)[list[i]], position_[list[i]]};
        }
        job.alive = std::make_shared<const std::vector<uint32_t>>(std::move(alive));
        stack.push_back(std::move(job));
    }

  protected:
    static constexpr bool of_few = most <= 32;

    SubtreeRows(const Problem& problem, const NumberScale& scale, const Rows& records)
        : scale_(scale),
          records_(records),
          has_list_(problem.columns.size()),
          tied_(problem.columns.size()) {
        for (size_t j = 0; j < has_list_.size(); ++j)
            has_list_[j] = records.is_numeric(j) && (of_few || n_codes(j) > most_counted);
    }

    // How often a row counts.
    uint32_t times(size_t row) const {
        if constexpr (repeated) return times_[row];
        return 1;
    }

    bool is_ordered(size_t j) const { return records_.is_numeric(j); }
    bool has_list(size_t j) const { return has_list_[j]; }

    // Columns of up to so many codes are counted rather than sorted, unless rows are few.
    static constexpr size_t most_counted = 64;
    bool is_counted(size_t j) const { return !of_few && n_codes(j) <= most_counted; }
    size_t n_codes(size_t j) const { return records_.missing_code(j); }

    Row* order(size_t j) { return &order_[j * room_]; }
    const Row* order(size_t j) const { return &order_[j * room_]; }
    uint32_t* rank(size_t j) { return &rank_[j * room_]; }
    const uint32_t* rank(size_t j) const { return &rank_[j * room_]; }

    template <typename Key>
    static void sort_rows(Row* order, const Row* rows, const Key* key, size_t n) {
        for (size_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            size_t at = i;
            for (; at > 0 && key[order[at - 1]] > key[row]; --at) order[at] = order[at - 1];
            order[at] = row;
        }
    }

    // The rows of a node in the order of a column that has lists.
    const Row* in_order(const Open& node, size_t j) {
        if (node.listed) return order(j) + node.begin;
        sort_rows(sorted_, rows_.data() + node.begin, rank(j), node.n());
        return sorted_;
    }

    const Row* in_order_of_numbers(const Open& node) {
        if (node.listed) return by_number_ + node.begin;
        sort_rows(sorted_, rows_.data() + node.begin, number_.data(), node.n());
        return sorted_;
    }

    // Rows in the order of their branches, otherwise as they were; `sizes`: rows of each branch.
    void divide(Row* list, const Open& node, const std::vector<double>& sizes) {
        Row* const others = others_.data();
        const Row* const branches = branch_.data();
        if (sizes.size() == 2) return divide_in_two(list + node.begin, node.n(), branches, others);
        next_.assign(1, 0);
        for (double size : sizes) next_.push_back(next_.back() + uint32_t(size));
        for (size_t i = node.begin; i < node.end; ++i) others[next_[branches[list[i]]]++] = list[i];
        std::copy_n(others, node.n(), list + node.begin);
    }

    const NumberScale& scale_;
    const Rows& records_;

    // By row.
    std::vector<double> number_, limbs_;  // of the row as often as it counts
    std::vector<Times> times_;            // how often, if rows are repeated
    std::vector<uint32_t> origin_;        // its record
    std::vector<Row> rows_;               // of nodes, in the order of their numbers
    // The same in the order of the target, of few rows.
    Row by_number_[of_few ? most + divided_together : 1] = {};
    std::vector<Row> branch_;
    // By column and row.
    size_t room_ = 0;  // of a column
    std::vector<Row> order_;
    std::vector<uint32_t> rank_;  // or code

    std::vector<uint8_t> has_list_;
    std::vector<uint8_t> tied_;    // whether rows of the subtree share a number of a list
    std::vector<uint32_t> alive_;  // columns of open nodes: siblings have the same

  private:
    void reserve(size_t n) {
        if (n <= room_) return;
        room_ = of_few ? most : std::min(most, n + n / 2);
        for (auto* by_row : {&rows_, &branch_, &others_}) by_row->resize(room_ + divided_together);
        for (auto* by_row : {&origin_, &position_}) by_row->resize(room_);
        number_.resize(room_);
        if constexpr (repeated) times_.resize(room_);
        limbs_.resize(room_ * scale_.sums.size());
        order_.resize(has_list_.size() * room_ + divided_together);
        rank_.resize(has_list_.size() * room_);
    }

    void take_list(size_t j, const Ranked* entry, size_t n) {
        uint8_t tied = 0;
        for (size_t i = 0; i < n; ++i) {
            order(j)[i] = Row(entry[i].place);
            rank(j)[entry[i].place] = entry[i].rank;
            tied |= i > 0 && entry[i].rank == entry[i - 1].rank;
        }
        tied_[j] = tied;
    }

    // Sort the rows by the codes of a column, if it has lists.
    void arrange(size_t j, size_t n) {
        if (!has_list(j)) return;
        tied_[j] = 1;
        if (of_few) return sort_rows(order(j), rows_.data(), rank(j), n);
        next_.assign(n_codes(j) + 1, 0);
        for (size_t i = 0; i < n; ++i) ++next_[rank(j)[i] + 1];
        for (size_t code = 1; code < next_.size(); ++code) next_[code] += next_[code - 1];
        for (size_t i = 0; i < n; ++i) order(j)[next_[rank(j)[i]]++] = Row(i);
    }

    std::vector<Row> others_;  // scratch
    Row sorted_[of_few ? most : 1] = {};
    std::vector<uint32_t> position_, next_;
};

}  // namespace branchwise
