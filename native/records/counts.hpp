// Counting one column of codes at a node: weights by value and class.

#pragma once

#include <utility>

#include "records/joint_counts.hpp"

namespace branchwise {

template <typename W>
class ValueCounts {
  public:
    using Weight = typename Records<W>::Weight;

    // `joint` has the columns of a node that were counted together.
    ValueCounts(const Problem& problem, const Records<W>& records, const JointCounts<W>& joint)
        : problem_(problem), records_(records), joint_(joint), classes_(size_t(problem.n_classes)) {
        const size_t most_codes = records.most_codes();
        cells_.assign(most_codes * classes_, Weight(0));
        sizes_.assign(most_codes, Weight(0));
        cell_.resize(classes_);
        cases_.assign(cases_are_sizes<W>(problem) ? 0 : most_codes, 0.0);
    }

    // visit(value, class weights, size, cases) for every value that some record has. Of
    // the cases of categories, only whether they are as many as a leaf must have. `classes`
    // are those of the node.
    template <typename Visit>
    void for_each_value(const RecordJob& job, size_t column, const std::vector<uint32_t>& classes,
                        const Visit& visit) {
        if (joint_.holds(column)) return joint_.for_each_value(column, cell_.data(), visit);
        fill_cells(job, column);
        for (uint32_t value : present) {
            Weight* cell = &cells_[value * classes_];
            Weight size = 0;
            for (uint32_t c : classes) size += cell[c];
            double cases = 1.0;
            if (cases_are_sizes<W>(problem_))
                cases = double(size);
            else if (counts_cases_)
                cases = std::exchange(cases_[value], 0.0);
            visit(value, static_cast<const Weight*>(cell), size, cases);
            for (uint32_t c : classes) cell[c] = Weight(0);
            sizes_[value] = 0;
        }
    }

    // The same, to be looked up value by value until forgotten.
    void count(const RecordJob& job, size_t column) {
        fill_cells(job, column);
        for (uint32_t value : present) {
            sizes_[value] = 0;
            for (size_t c = 0; c < classes_; ++c) sizes_[value] += cells_[value * classes_ + c];
        }
    }

    // The values that some record has.
    std::vector<uint32_t> present;

    const Weight* cell(uint32_t value) const { return &cells_[value * classes_]; }
    Weight size(uint32_t value) const { return sizes_[value]; }
    double cases(uint32_t value) const {
        if (cases_are_sizes<W>(problem_)) return double(sizes_[value]);
        return counts_cases_ ? cases_[value] : 1.0;
    }

    // To be called before the next count.
    void forget() {
        for (uint32_t value : present) {
            sizes_[value] = 0;
            for (size_t c = 0; c < classes_; ++c) cells_[value * classes_ + c] = Weight(0);
            if (counts_cases_) cases_[value] = 0;
        }
    }

  private:
    static constexpr bool weighted = Records<W>::weighted;
    static constexpr uint32_t most_few = 64;  // values, of which a word can note which were seen

    void fill_cells(const RecordJob& job, size_t column) {
        counts_cases_ = counts_cases<W>(problem_, problem_.columns[column]);
        present.clear();
        if (joint_.holds(column)) return copy_joint(column);
        switch (records_.layout().width[column]) {
            case 1:
                return fill<uint8_t>(job, column);
            case 2:
                return fill<uint16_t>(job, column);
            default:
                return fill<uint32_t>(job, column);
        }
    }

    void copy_joint(size_t column) {
        joint_.for_each_value(column, cell_.data(),
                              [&](uint32_t value, const Weight* cell, Weight, double cases) {
                                  present.push_back(value);
                                  std::copy_n(cell, classes_, &cells_[value * classes_]);
                                  if (counts_cases_) cases_[value] = cases;
                              });
    }

    template <typename Code>
    void fill(const RecordJob& job, size_t column) {
        const uint32_t n_codes = records_.missing_code(column) + 1;
        if (n_codes <= most_few)
            fill_few_codes<Code>(job, column);
        else if (n_codes > job.n)
            fill_few_records<Code>(job, column);
        else
            fill_many<Code>(job, column, n_codes);
        if (!counts_cases_) return;
        for_each_record<Code>(job, column, [&](size_t value, const uint8_t* record) {
            cases_[value] += records_.share(record);
        });
    }

    // visit(value, record) for every record.
    template <typename Code, typename Visit>
    void for_each_record(const RecordJob& job, size_t column, const Visit& visit) const {
        const uint8_t* record = records_.first(job);
        const size_t step = records_.size();
        const size_t code_at = records_.layout().code[column];
        for (size_t i = 0; i < job.n; ++i, record += step)
            visit(load<Code>(record + code_at), record);
    }

    void add(size_t value, const uint8_t* record) {
        cells_[value * classes_ + records_.label(record)] += records_.weight(record);
    }

    template <typename Code>
    void fill_few_codes(const RecordJob& job, size_t column) {
        uint64_t seen = 0;
        for_each_record<Code>(job, column, [&](size_t value, const uint8_t* record) {
            seen |= uint64_t(1) << value;
            add(value, record);
        });
        for (; seen; seen &= seen - 1) present.push_back(uint32_t(__builtin_ctzll(seen)));
    }

    template <typename Code>
    void fill_few_records(const RecordJob& job, size_t column) {
        for_each_record<Code>(job, column, [&](uint32_t value, const uint8_t* record) {
            if (sizes_[value] == 0) present.push_back(value);
            sizes_[value] = 1;  // seen
            add(value, record);
        });
    }

    template <typename Code>
    void fill_many(const RecordJob& job, size_t column, uint32_t n_codes) {
        for_each_record<Code>(job, column,
                              [&](size_t value, const uint8_t* record) { add(value, record); });
        for (uint32_t value = 0; value < n_codes; ++value) {
            const Weight* cell = &cells_[value * classes_];
            if (std::any_of(cell, cell + classes_, [](Weight w) { return w > 0; }))
                present.push_back(value);
        }
    }

    const Problem& problem_;
    const Records<W>& records_;
    const JointCounts<W>& joint_;
    const size_t classes_;
    bool counts_cases_ = false;
    std::vector<Weight> cells_, sizes_, cell_;
    std::vector<double> cases_;
};

}  // namespace branchwise
