// Moving the records and sorted numbers of a node to its children.

#pragma once

#include "records.hpp"

namespace branchwise {

// Branches of the chosen split: the code that leads there and the known weight.
struct Branches {
    std::vector<int32_t> code;
    std::vector<double> size;
    int32_t missing_branch = stop_here;
    int32_t missing_to = stop_here;
};

template <typename W>
class Mover {
  public:
    Mover(const Problem& problem, const Records<W>& records, Crew& crew)
        : problem_(problem), records_(records), crew_(crew), classes_(static_cast<size_t>(problem.n_classes)) {}

    // Find the branch of every record: missing ones go where the split sends them, the
    // others where branch_of(code or rank) says.
    template <typename BranchOf>
    void find_branches(const RecordJob& job, size_t j, const Branches& made, const BranchOf& branch_of) {
        branch_.assign(job.n, made.missing_to);
        if (records_.is_list(j)) {
            const Ranked* entry = records_.ranked(job, records_.slot(j));
            for (size_t i = 0; i < job.n_ranked[records_.slot(j)]; ++i)
                branch_[entry[i].position] = branch_of(entry[i].rank);
            return;
        }
        const uint32_t missing = records_.missing_code(j);
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            const uint32_t value = records_.code(record, j);
            if (value != missing) branch_[i] = branch_of(value);
        }
    }

    // Class weights and cases of the children, to be added to.
    void count_children(const RecordJob& job, const Branches& made, double* weights, Node* children) {
        const size_t n_branches = made.code.size();
        rows_.assign(n_branches, 0);
        parts_.clear();
        set_fractions(made);
        const auto add = [&](size_t branch, uint32_t c, double w, double share) {
            weights[branch * classes_ + c] += w;
            children[branch].cases += share;
            ++rows_[branch];
        };
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            const uint32_t c = records_.label(record);
            const auto w = static_cast<double>(records_.weight(record));
            if (branch_[i] >= 0) {
                add(static_cast<size_t>(branch_[i]), c, w, records_.share(record));
            } else if (branch_[i] == every_branch) {
                for (size_t b = 0; b < n_branches; ++b) {
                    const Part part = part_of(record, b);
                    parts_.push_back(part);
                    if (part.weight > 0) add(b, c, part.weight, part.share);
                }
            }
        }
    }

    size_t rows(size_t branch) const { return rows_[branch]; }

    // Move records to the children that are open (those with an arena).
    void move(const RecordJob& job, std::vector<RecordJob>& children) {
        move_records(job, children);
        const size_t work = job.n * job.alive->size();
        crew_.each(job.alive->size(), work, [&](size_t i, unsigned) {
            if (records_.is_list((*job.alive)[i])) move_ranked(job, records_.slot((*job.alive)[i]), children);
        });
    }

  private:
    // What a record that goes down every branch gives to one of them.
    struct Part {
        double weight;
        double share;
    };

    // Where a record went: the branch in the upper half, the new position in the lower.
    // Sorted lists look this up in random order, so it is one number.
    static constexpr uint64_t nowhere = ~uint64_t(0);
    static constexpr uint64_t in_parts = uint64_t(1) << 63;  // the lower half: where they are listed

    static uint64_t place(size_t branch, size_t position) { return uint64_t(branch) << 32 | uint64_t(position); }

    void set_fractions(const Branches& made) {
        double known = 0;
        for (double size : made.size) known += size;
        fractions_.clear();
        for (double size : made.size) fractions_.push_back(size / known);
    }

    static double on_grid(double amount, double step) { return std::rint(amount / step) * step; }

    Part part_of(const uint8_t* record, size_t branch) const {
        return {on_grid(static_cast<double>(records_.weight(record)) * fractions_[branch], problem_.weight_step),
                on_grid(records_.share(record) * fractions_[branch], problem_.case_step)};
    }

    void move_records(const RecordJob& job, std::vector<RecordJob>& children) {
        const size_t n_branches = children.size();
        const bool lists = records_.n_lists() > 0;
        const Part* part = parts_.data();
        next_.assign(n_branches, 0);
        part_places_.clear();
        if (lists) places_.assign(job.n, nowhere);
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            if (branch_[i] >= 0) {
                const auto branch = static_cast<size_t>(branch_[i]);
                if (!children[branch].arena) continue;
                if (lists) places_[i] = place(branch, next_[branch]);
                copy_record(record, children[branch], branch);
            } else if (branch_[i] == every_branch) {
                if (lists) places_[i] = in_parts | part_places_.size();
                for (size_t b = 0; b < n_branches; ++b, ++part) {
                    const bool goes = part->weight > 0 && children[b].arena;
                    if (lists) part_places_.push_back(goes ? place(b, next_[b]) : nowhere);
                    if (!goes) continue;
                    uint8_t* copy = copy_record(record, children[b], b);
                    store<double>(copy + records_.layout().weight, part->weight);
                    store<double>(copy + records_.layout().share, part->share);
                }
            }
        }
    }

    uint8_t* copy_record(const uint8_t* record, const RecordJob& child, size_t b) {
        uint8_t* out = records_.first_to_write(child) + next_[b]++ * records_.size();
        std::memcpy(out, record, records_.size());
        return out;
    }

    void move_ranked(const RecordJob& job, size_t slot, std::vector<RecordJob>& children) const {
        std::vector<Ranked*> out(children.size(), nullptr);
        for (size_t b = 0; b < children.size(); ++b)
            if (children[b].arena) out[b] = records_.ranked(children[b], slot);
        const std::vector<Ranked*> begin = out;
        const Ranked* entry = records_.ranked(job, slot);
        const auto put = [&](uint64_t to, const Ranked& from) {
            *out[to >> 32]++ = {from.rank, static_cast<uint32_t>(to), from.label};
        };
        for (const Ranked* last = entry + job.n_ranked[slot]; entry < last; ++entry) {
            const uint64_t to = places_[entry->position];
            if (to == nowhere) continue;
            if (!(to & in_parts)) {
                put(to, *entry);
                continue;
            }
            const uint64_t* part = &part_places_[to & ~in_parts];
            for (size_t b = 0; b < children.size(); ++b)
                if (part[b] != nowhere) put(part[b], *entry);
        }
        for (size_t b = 0; b < children.size(); ++b)
            if (children[b].arena) children[b].n_ranked[slot] = static_cast<uint32_t>(out[b] - begin[b]);
    }

    const Problem& problem_;
    const Records<W>& records_;
    Crew& crew_;
    const size_t classes_;

    // Scratch, kept between nodes.
    std::vector<int32_t> branch_;             // of every record
    std::vector<double> fractions_;           // of every branch, for cases that go down all
    std::vector<Part> parts_;                 // of such cases, branch by branch
    std::vector<size_t> rows_, next_;         // of every branch
    std::vector<uint64_t> places_, part_places_;  // where records, and parts of them, went
};

}  // namespace branchwise
