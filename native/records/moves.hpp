// Moving the records and sorted numbers of a node to its children.

#pragma once

#include "records/records.hpp"

namespace branchwise {

// Branches of the chosen split: the code that leads there, the known weight, and what
// the child gets: class weights (weights[branch * classes + c]) and, if cases are
// fractional, cases.
struct Branches {
    std::vector<int32_t> code;
    std::vector<double> size;
    std::vector<double> weights;
    std::vector<double> cases;
    int32_t largest = stop_here;
    int32_t missing_branch = stop_here;
    int32_t missing_to = stop_here;

    size_t count() const { return code.size(); }

    void clear() {
        code.clear();
        size.clear();
        weights.clear();
        cases.clear();
        largest = missing_branch = missing_to = stop_here;
    }

    void add(int32_t leads_there, size_t classes) {
        code.push_back(leads_there);
        size.push_back(0);
        weights.resize(weights.size() + classes, 0.0);
        cases.push_back(0);
    }
};

template <typename W, typename Target = uint32_t>
class Mover {
  public:
    Mover(const Problem& problem, const Records<W, Target>& records, ThreadPool& pool)
        : problem_(problem),
          records_(records),
          pool_(pool),
          steps_are_enough_(!problem.weights && problem.weight_step > 1e-250 &&
                            problem.weight_step < 1e250),
          nobodys_(records.size()),
          beside_(pool.size()) {}

    // Find the branch of every record of a column that records hold: where the table
    // says, by code.
    void find_branches(const RecordJob& job, size_t j, const Branches& made,
                       const std::vector<uint32_t>& branch_of) {
        branch_.resize(job.n);
        switch (records_.layout().width[j]) {
            case 1:
                look_up_branches<uint8_t>(job, j, branch_of.data());
                break;
            case 2:
                look_up_branches<uint16_t>(job, j, branch_of.data());
                break;
            default:
                look_up_branches<uint32_t>(job, j, branch_of.data());
        }
        count_records(made);
    }

    // The same for a sorted list: its records go to the first branch, those from the entry on that
    // first_on_right(list) says to the second, and those that are not in it where missing ones go.
    template <typename FirstOnRight>
    void find_branches_of_list(const RecordJob& job, size_t j, const Branches& made,
                               const FirstOnRight& first_on_right) {
        branch_.assign(job.n, branch_of_missing(made));
        records_.with_list(job, j, [&](const auto& list) {
            const size_t right = first_on_right(list);
            for (size_t i = 0; i < right; ++i) branch_[list.position(i)] = 0;
            for (size_t i = right; i < list.size(); ++i) branch_[list.position(i)] = 1;
        });
        count_records(made);
    }

    // The number after the last branch stands for none of them, or all.
    static uint32_t branch_of_missing(const Branches& made) {
        return uint32_t(made.missing_to >= 0 ? size_t(made.missing_to) : made.count());
    }

    // Records that go down every branch: the cases that they give to each are added to it.
    void divide(const RecordJob& job, Branches& made) {
        const size_t n_branches = made.count();
        parts_.resize(fractional_.size() * n_branches);
        if (fractional_.empty()) return;
        set_fractions(made);
        Part* part = parts_.data();
        double* const cases = made.cases.data();
        size_t* const rows = rows_.data();
        for (uint32_t i : fractional_) {
            const uint8_t* record = records_.first(job) + i * records_.size();
            for (size_t b = 0; b < n_branches; ++b, ++part) {
                *part = part_of(record, b);
                if (!(part->weight > 0)) continue;
                cases[b] += double(part->share) * problem_.case_step;
                ++rows[b];
            }
        }
    }

    // visit(branch, record, weight) for these parts of records.
    template <typename Visit>
    void each_part(const RecordJob& job, const Visit& visit) const {
        const Part* part = parts_.data();
        for (uint32_t i : fractional_)
            for (size_t b = 0; b < fractions_.size(); ++b, ++part)
                if (part->weight > 0)
                    visit(b, records_.first(job) + i * records_.size(),
                          double(part->weight) * problem_.weight_step);
    }

    // The branch of a record; the number after the last one: none of them, or all.
    uint32_t branch(size_t record) const { return branch_[record]; }

    // Send a record to another branch.
    void send(size_t record, uint32_t branch) {
        --rows_[branch_[record]];
        branch_[record] = branch;
        ++rows_[branch];
    }

    // Records of a branch.
    size_t rows(size_t branch) const { return rows_[branch]; }

    // Move records to the children that are open (those with an arena).
    void move(const RecordJob& job, std::vector<RecordJob>& children) {
        if (job.subtree) return move_in_subtree(job, children);
        if (records_.n_lists() > 0) note_places(job, children);
        move_records(job, children);
        const size_t work = job.n * job.alive->size();
        pool_.each(job.alive->size(), work, [&](size_t i, unsigned member) {
            if (records_.is_list((*job.alive)[i]))
                move_ranked(job, records_.slot((*job.alive)[i]), children, beside_[member]);
        });
        for (Scratch<Ranked>& beside : beside_) give_back_scratch(beside, job.n);
    }

  private:
    // What a record that goes down every branch gives to one of them, in steps.
    struct Part {
        int64_t weight;
        int64_t share;
    };

    // Where the next record of a branch goes. Those of leaves go nowhere, all to the
    // same place: which children are leaves is anybody's guess, so there is no branch.
    struct Destination {
        uint8_t* next;
        size_t step;
    };

    // Where a record went: the branch in the upper half, the new position in the lower.
    // Sorted lists look this up in random order, so it is one number.
    static constexpr uint64_t in_parts = uint64_t(1)
                                         << 63;  // the lower half: where they are listed

    static uint64_t place(size_t branch, size_t position) {
        return uint64_t(branch) << 32 | uint64_t(position);
    }

    template <typename Code>
    void look_up_branches(const RecordJob& job, size_t j, const uint32_t* branch_of) {
        const uint8_t* at = records_.first(job) + records_.layout().code[j];
        const size_t step = records_.size();
        uint32_t* out = branch_.data();
        for (size_t i = 0; i < job.n; ++i) out[i] = branch_of[load<Code>(at + i * step)];
    }

    void count_records(const Branches& made) {
        count_branches(made.count() + 1);
        fractional_.clear();
        if (made.missing_to != every_branch || !rows_.back()) return;
        // Which records are missing is anybody's guess: all are written down, one over the
        // other, until one counts.
        fractional_.resize(rows_.back() + 1);
        const uint32_t* const branch = branch_.data();
        const auto every = uint32_t(made.count());
        uint32_t* next = fractional_.data();
        for (size_t i = 0, n = branch_.size(); i < n; ++i) {
            *next = uint32_t(i);
            next += branch[i] == every;
        }
        fractional_.pop_back();
    }

    // Two records at a time, so that few increments wait for the one before.
    void count_branches(size_t n_branches) {
        rows_.assign(n_branches, 0);
        other_rows_.assign(n_branches, 0);
        const uint32_t* const branch = branch_.data();
        const size_t n = branch_.size();
        for (size_t i = 0; i + 1 < n; i += 2) {
            ++rows_[branch[i]];
            ++other_rows_[branch[i + 1]];
        }
        if (n % 2) ++rows_[branch[n - 1]];
        for (size_t b = 0; b < n_branches; ++b) rows_[b] += other_rows_[b];
    }

    void set_fractions(const Branches& made) {
        double known = 0;
        for (double size : made.size) known += size;
        fractions_.clear();
        for (double size : made.size) fractions_.push_back(size / known);
    }

    // Steps are a power of two: a fraction of so many is the same as if they were scaled first.
    Part part_of(const uint8_t* record, size_t branch) const {
        if (steps_are_enough_) {
            const auto steps = double(records_.steps(record));
            const auto part = int64_t(std::rint(steps * fractions_[branch]));
            return {part, part};
        }
        const auto whole = double(records_.weight(record));
        const int64_t weight = steps_of(whole * fractions_[branch], problem_.weight_step);
        if (!problem_.weights) return {weight, weight};
        return {weight, steps_of(records_.share(record) * fractions_[branch], problem_.case_step)};
    }

    // Whole records first, then parts of others.
    void move_records(const RecordJob& job, const std::vector<RecordJob>& children) {
        destinations_.assign(children.size() + 1, {nobodys_.data(), 0});
        for (size_t b = 0; b < children.size(); ++b)
            if (children[b].arena)
                destinations_[b] = {records_.first_to_write(children[b]), records_.size()};
        const size_t size = records_.size();
        constexpr size_t unit = RecordLayout::unit;
        switch (size / unit) {  // a copy whose size is known takes no loop
            case 2:
                move_whole<2 * unit>(job);
                break;
            case 3:
                move_whole<3 * unit>(job);
                break;
            case 4:
                move_whole<4 * unit>(job);
                break;
            case 5:
                move_whole<5 * unit>(job);
                break;
            default:
                move_whole<0>(job);
        }
        const Part* part = parts_.data();
        for (uint32_t i : fractional_) {
            const uint8_t* const record = records_.first(job) + i * size;
            for (size_t b = 0; b < children.size(); ++b, ++part) {
                if (!(part->weight > 0) || !children[b].arena) continue;
                uint8_t* const out = destinations_[b].next;
                destinations_[b].next = out + size;
                copy_record(record, out, size);
                store<int64_t>(out + records_.layout().weight, part->weight);
                store<int64_t>(out + records_.layout().share, part->share);
            }
        }
    }

    // Records of so many bytes, or of any size: 0.
    template <size_t known_size>
    void move_whole(const RecordJob& job) {
        const size_t size = known_size ? known_size : records_.size();
        const uint8_t* record = records_.first(job);
        const uint32_t* branch = branch_.data();
        Destination* const destinations = destinations_.data();
        for (const uint32_t* last = branch + job.n; branch < last; ++branch, record += size) {
            Destination& destination = destinations[*branch];
            uint8_t* const out = destination.next;
            destination.next = out + destination.step;
            copy_record(record, out, size);
        }
    }

    // The same order as in move_records.
    void note_places(const RecordJob& job, const std::vector<RecordJob>& children) {
        const uint64_t nowhere = place(children.size(), 0);
        next_.assign(children.size() + 1, 0);
        all_in_two_ = children.size() == 2 && rows_.back() == 0;
        if (all_in_two_) return note_sides(job);
        places_.resize(job.n);
        for (size_t i = 0; i < job.n; ++i) places_[i] = place(branch_[i], next_[branch_[i]]++);
        part_places_.clear();
        const Part* part = parts_.data();
        for (uint32_t i : fractional_) {
            places_[i] = in_parts | part_places_.size();
            for (size_t b = 0; b < children.size(); ++b, ++part) {
                const bool goes = part->weight > 0 && children[b].arena;
                part_places_.push_back(goes ? place(b, next_[b]++) : nowhere);
            }
        }
    }

    // The same in half the memory where all go to two branches, as most do: sorted lists look it
    // up in random order. The highest bit is the branch.
    static constexpr uint32_t second_side = uint32_t(1) << 31;
    void note_sides(const RecordJob& job) {
        part_places_.clear();
        sides_.resize(job.n);
        uint32_t next[2] = {0, second_side};
        for (size_t i = 0; i < job.n; ++i) sides_[i] = next[branch_[i]]++;
    }

    // The same in a subtree that has lists of its own.
    void move_in_subtree(const RecordJob& job, std::vector<RecordJob>& children) {
        SubtreeLists& lists = *job.subtree;
        next_.assign(children.size() + 1, 0);
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            const uint32_t row = records_.row(record);
            lists.branches[row] = SubtreeLists::Row(branch_[i]);
            lists.positions[row] = SubtreeLists::Row(next_[branch_[i]]++);
        }
        move_records(job, children);
        const bool in_two = children.size() == 2 && rows_.back() == 0;
        for (uint32_t j : *job.alive) {
            if (!records_.is_list(j)) continue;
            const size_t slot = records_.slot(j);
            if (in_two)
                part_list(lists, job, slot, children);
            else
                sort_list(lists, job, slot, children);
        }
    }

    static void part_list(SubtreeLists& lists, const RecordJob& job, size_t slot,
                          std::vector<RecordJob>& children) {
        auto* const all = lists.rows(slot);
        const size_t n = job.n_ranked[slot];
        const size_t n_second = lists.part(all + job.lists, n, all + children[1].lists);
        if (children[0].arena) children[0].n_ranked[slot] = uint32_t(n - n_second);
        if (children[1].arena) children[1].n_ranked[slot] = uint32_t(n_second);
    }

    void sort_list(SubtreeLists& lists, const RecordJob& job, size_t slot,
                   std::vector<RecordJob>& children) {
        auto* const all = lists.rows(slot);
        next_.assign(1, 0);
        for (size_t rows : rows_) next_.push_back(next_.back() + rows);
        const auto* const sorted = lists.sort(all + job.lists, job.n_ranked[slot], next_);
        size_t begin = 0;
        for (size_t b = 0; b < children.size(); begin += rows_[b++]) {
            if (!children[b].arena) continue;
            std::copy(sorted + begin, sorted + next_[b], all + children[b].lists);
            children[b].n_ranked[slot] = uint32_t(next_[b] - begin);
        }
    }

    // Where the next entry of a branch goes; those of leaves all to the same place.
    struct ListDestination {
        Ranked* next;
        size_t step;
    };

    // In place, the first of the open children is written over what has been read, and the others
    // beside the list until all has been.
    void move_ranked(const RecordJob& job, size_t slot, std::vector<RecordJob>& children,
                     Scratch<Ranked>& beside) const {
        Ranked nobodys;
        std::vector<ListDestination> out(children.size() + 1, {&nobodys, 0});
        const bool in_place = records_.lists_in_place();
        if (in_place && beside.size() < job.n) Scratch<Ranked>(job.n).swap(beside);
        const auto first_written = [&](const RecordJob& child) {
            return in_place && child.lists > job.lists ? beside.data() + (child.lists - job.lists)
                                                       : records_.ranked(child, slot);
        };
        for (size_t b = 0; b < children.size(); ++b)
            if (children[b].arena) out[b] = {first_written(children[b]), 1};
        const Ranked* entry = records_.ranked(job, slot);
        const Ranked* const last = entry + job.n_ranked[slot];
        if (!part_places_.empty())
            move_parts(entry, last, children.size(), out.data());
        else if (all_in_two_)
            move_to_two(entry, last, out.data());
        else
            move_to_any(entry, last, out.data());
        for (size_t b = 0; b < children.size(); ++b) {
            if (!children[b].arena) continue;
            const Ranked* const begin = first_written(children[b]);
            children[b].n_ranked[slot] = uint32_t(out[b].next - begin);
            if (begin != records_.ranked(children[b], slot))
                std::copy_n(begin, children[b].n_ranked[slot], records_.ranked(children[b], slot));
        }
    }

    static void put(uint64_t to, const Ranked& from, const Places<W, Target>& packed,
                    ListDestination* out) {
        ListDestination& destination = out[to >> 32];
        Ranked* const written = destination.next;
        *written = packed.moved_to(from, uint32_t(to));
        destination.next = written + destination.step;
    }

    // What entries ahead look up is fetched meanwhile: nothing predicts where it is.
    template <typename Place, typename Move>
    static void move_each(const Ranked* entry, const Ranked* last, const Place* places,
                          const Places<W, Target>& packed, const Move& move) {
        constexpr std::ptrdiff_t ahead = 24;
        for (; last - entry > ahead; ++entry) {
            __builtin_prefetch(&places[packed.position(entry[ahead])]);
            move(*entry, places[packed.position(*entry)]);
        }
        for (; entry < last; ++entry) move(*entry, places[packed.position(*entry)]);
    }

    void move_to_any(const Ranked* entry, const Ranked* last, ListDestination* out) const {
        const Places<W, Target> packed = records_.places();
        move_each(entry, last, places_.data(), packed,
                  [&](const Ranked& one, uint64_t to) { put(to, one, packed, out); });
    }

    // Two destinations in registers: in memory, one entry would wait for the one before it. Which
    // of them an entry goes to cannot be predicted, so it is chosen by a mask: compilers make a
    // jump of a condition.
    void move_to_two(const Ranked* entry, const Ranked* last, ListDestination* out) const {
        auto first = reinterpret_cast<uintptr_t>(out[0].next);
        auto second = reinterpret_cast<uintptr_t>(out[1].next);
        const uintptr_t steps[2] = {out[0].step * sizeof(Ranked), out[1].step * sizeof(Ranked)};
        const Places<W, Target> packed = records_.places();
        move_each(entry, last, sides_.data(), packed, [&](const Ranked& one, uint32_t to) {
            const uintptr_t is_second = -uintptr_t(to / second_side);
            const uintptr_t written = first ^ ((first ^ second) & is_second);
            *reinterpret_cast<Ranked*>(written) = packed.moved_to(one, to & ~second_side);
            first += steps[0] & ~is_second;
            second += steps[1] & is_second;
        });
        out[0].next = reinterpret_cast<Ranked*>(first);
        out[1].next = reinterpret_cast<Ranked*>(second);
    }

    void move_parts(const Ranked* entry, const Ranked* last, size_t n_branches,
                    ListDestination* out) const {
        const Places<W, Target> packed = records_.places();
        for (; entry < last; ++entry) {
            const uint64_t to = places_[packed.position(*entry)];
            if (!(to & in_parts)) {
                put(to, *entry, packed, out);
                continue;
            }
            const size_t first = to & ~in_parts;
            for (size_t b = 0; b < n_branches; ++b)
                put(part_places_[first + b], *entry, packed, out);
        }
    }

    const Problem& problem_;
    const Records<W, Target>& records_;
    ThreadPool& pool_;
    const bool steps_are_enough_;  // scaling is exact, and weights are parts of cases

    std::vector<uint8_t> nobodys_;         // where records of leaves go
    std::vector<Scratch<Ranked>> beside_;  // one for each thread

    // Scratch, kept between nodes.
    Scratch<uint32_t> branch_;          // of every record
    std::vector<uint32_t> fractional_;  // records that go down every branch
    std::vector<double> fractions_;     // of every branch, for these
    Scratch<Part> parts_;               // of these, branch by branch
    std::vector<size_t> rows_, next_;   // of every branch
    std::vector<size_t> other_rows_;    // of every branch, of every second record
    std::vector<Destination> destinations_;
    std::vector<uint64_t> places_, part_places_;  // where records, and parts of them, went
    bool all_in_two_ = false;
    std::vector<uint32_t> sides_;  // where they went, if so
};

}  // namespace branchwise
