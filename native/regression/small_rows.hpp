// The rows of a small subtree: numbered, and every column has a list of these numbers in its order,
// a byte each, which is divided in place. So has the target. Of nodes with very few rows, lists are
// not divided: few of their columns are looked at, and the rows are sorted for these.

#pragma once

#include <algorithm>
#include <vector>

#include "records/records.hpp"
#include "regression/moments.hpp"

namespace branchwise {

template <typename Value, typename Less>
void sort_few(std::vector<Value>& values, const Less& less) {
    for (size_t i = 1; i < values.size(); ++i) {
        const Value value = values[i];
        size_t at = i;
        for (; at > 0 && less(value, values[at - 1]); --at) values[at] = values[at - 1];
        values[at] = value;
    }
}

class SmallRows {
  public:
    using Rows = Records<uint32_t, double>;
    static constexpr size_t most = 32;

  protected:
    SmallRows(const Problem& problem, const NumberScale& scale, const Rows& records)
        : scale_(scale),
          records_(records),
          limbs_(most * scale.sums.size()),
          order_(problem.columns.size() * most),
          rank_(problem.columns.size() * most) {}

    // A node: its rows in all lists, and its columns in alive_.
    struct Open {
        int64_t node, depth;
        uint32_t begin, end;
        uint32_t alive_begin, alive_end;
        uint64_t key;  // of its draws
        bool listed;   // whether it has lists

        size_t n() const { return end - begin; }
    };

    bool is_ordered(size_t j) const { return records_.is_numeric(j); }
    uint8_t* order(size_t j) { return &order_[j * most]; }
    uint32_t* rank(size_t j) { return &rank_[j * most]; }

    void load(const RecordJob& job) {
        const size_t n = job.n, n_limbs = scale_.sums.size();
        std::fill(limbs_.begin(), limbs_.end(), 0.0);
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < n; ++i, record += records_.size()) {
            number_[i] = records_.target(record);
            scale_.add_number<false>(number_[i], 1.0, &limbs_[i * n_limbs]);
            rows_[i] = uint8_t(i);
        }
        sort_rows(by_number_, rows_, number_, n);
        alive_.assign(job.alive->begin(), job.alive->end());
        for (uint32_t j : alive_) {
            if (records_.is_list(j)) {
                const Ranked* entry = records_.ranked(job, records_.slot(j));
                for (size_t i = 0; i < n; ++i) {
                    order(j)[i] = uint8_t(entry[i].place);
                    rank(j)[entry[i].place] = entry[i].rank;
                }
                continue;
            }
            record = records_.first(job);
            for (size_t i = 0; i < n; ++i, record += records_.size())
                rank(j)[i] = records_.code(record, j);
            if (is_ordered(j)) sort_rows(order(j), rows_, rank(j), n);
        }
    }

    template <typename Key>
    static void sort_rows(uint8_t* order, const uint8_t* rows, const Key* key, size_t n) {
        for (size_t i = 0; i < n; ++i) {
            const uint8_t row = rows[i];
            size_t at = i;
            for (; at > 0 && key[order[at - 1]] > key[row]; --at) order[at] = order[at - 1];
            order[at] = row;
        }
    }

    // The rows of a node in the order of a column; or of the target.
    const uint8_t* in_order(const Open& node, size_t j) {
        if (node.listed) return order(j) + node.begin;
        sort_rows(sorted_, rows_ + node.begin, rank(j), node.n());
        return sorted_;
    }
    const uint8_t* in_order_of_numbers(const Open& node) {
        if (node.listed) return by_number_ + node.begin;
        sort_rows(sorted_, rows_ + node.begin, number_, node.n());
        return sorted_;
    }

    // Rows in the order of their branches, otherwise as they were.
    void divide(uint8_t* list, const Open& node, size_t n_branches) {
        uint8_t others[most];
        if (n_branches == 2) {
            uint8_t* left = list + node.begin;
            size_t n_right = 0;
            for (size_t i = node.begin; i < node.end; ++i) {
                const uint8_t row = list[i], branch = branch_[row];
                *left = row;
                others[n_right] = row;
                left += 1 - branch;
                n_right += branch;
            }
            std::copy_n(others, n_right, left);
            return;
        }
        size_t at = 0;
        for (size_t b = 0; b < n_branches; ++b)
            for (size_t i = node.begin; i < node.end; ++i)
                if (branch_[list[i]] == b) others[at++] = list[i];
        std::copy_n(others, at, list + node.begin);
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
        uint32_t position[most];
        for (size_t i = node.begin; i < node.end; ++i, out += size) {
            position[rows_[i]] = uint32_t(i - node.begin);
            copy_record(records_.first(from) + rows_[i] * size, out, size);
        }
        std::vector<uint32_t> alive(alive_.begin() + node.alive_begin,
                                    alive_.begin() + node.alive_end);
        for (uint32_t j : alive) {
            if (!records_.is_list(j)) continue;
            const size_t slot = records_.slot(j);
            job.n_ranked[slot] = uint32_t(job.n);
            Ranked* entry = records_.ranked(job, slot);
            const uint8_t* const list = in_order(node, j);
            for (size_t i = 0; i < job.n; ++i) {
                const uint8_t row = list[i];
                *entry++ = {rank(j)[row], position[row]};
            }
        }
        job.alive = std::make_shared<const std::vector<uint32_t>>(std::move(alive));
        stack.push_back(std::move(job));
    }

    const NumberScale& scale_;
    const Rows& records_;

    // By row.
    double number_[most] = {};
    uint8_t rows_[most] = {}, by_number_[most] = {}, branch_[most] = {};
    uint8_t sorted_[most] = {};  // scratch
    std::vector<double> limbs_;
    // By column and row.
    std::vector<uint8_t> order_;  // the rows, in the order of the column
    std::vector<uint32_t> rank_;  // or code

    std::vector<uint32_t> alive_;  // columns of open nodes: siblings have the same
};

}  // namespace branchwise
