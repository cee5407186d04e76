// What growers over records have in common, whatever is predicted: carrying out a split.
//
// W is uint32_t where every row counts as one, Times where rows are repeated, double where they
// have weights. Target is what sorted numbers take with them: a label, or the number that is
// predicted.

#pragma once

#include <iterator>

#include "core/grower.hpp"
#include "core/significance.hpp"
#include "records/surrogates.hpp"
#include "thresholds/list_sums.hpp"

namespace branchwise {

template <typename W, typename Target>
class RecordTree : public Grower {
  public:
    using Job = RecordJob;

    RecordTree(const RecordTree&) = delete;  // its parts refer to one another
    RecordTree& operator=(const RecordTree&) = delete;

    size_t work(const Job& job) const { return job.n * (job.alive->size() + 1); }

  protected:
    RecordTree(const Problem& problem, const Numbers& numbers, ThreadPool& pool, size_t width)
        : Grower(problem, pool, width),
          records_(problem, numbers),
          mover_(problem, records_, pool),
          surrogates_(problem, records_, pool),
          test_(problem.max_log_p),
          candidates_(problem.columns.size()),
          branch_of_code_(records_.most_codes()) {}

    // With room for as many nodes as a deep tree has, so that arrays need not grow and be copied.
    void add_root(size_t n_nodes) {
        constexpr size_t most_reserved = size_t(1) << 27;
        if (pool_.size() == 1) reserve_nodes(n_nodes, most_reserved);
        add_nodes(1);
        std::fill_n(weights_of(0), width_, 0.0);
    }

    // Have the columns that may split a node tried, in batches if they are drawn, until it is
    // split; try_columns(columns) tells whether it is. False if there is no split.
    template <typename Try>
    bool try_batches(const Job& job, const Try& try_columns) {
        std::fill(candidates_.begin(), candidates_.end(), Candidate());
        if (!draws_.any()) return try_columns(*job.alive);
        draws_.begin(job.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next()) {
            batch_.clear();
            std::set_intersection(drawn->begin(), drawn->end(), job.alive->begin(),
                                  job.alive->end(), std::back_inserter(batch_));
            if (batch_.empty()) continue;
            if (try_columns(batch_)) return true;
            for (uint32_t j : batch_) {
                const bool varies = candidates_[j].varies;
                candidates_[j] = Candidate();
                candidates_[j].varies = varies;
            }
        }
        return false;
    }

    // Branches of a threshold, or one of all known numbers.
    void add_sides(size_t j) {
        const bool divided = candidates_[j].has_threshold();
        made_.add(divided ? 0 : both_sides, width_);
        if (divided) made_.add(1, width_);
    }

    uint32_t side_of(size_t j, uint32_t rank) const {
        return candidates_[j].has_threshold() && rank > candidates_[j].low;
    }

    // The first entry of a list that is on the right of the threshold, if there is one.
    template <typename List>
    size_t first_on_right(const List& list, size_t j) const {
        if (!candidates_[j].has_threshold()) return list.size();
        return first_right(list, [&](uint32_t rank) { return rank <= candidates_[j].low; });
    }

    // Find the branch of every record of a node.
    void find_branches(const Job& job, size_t j) {
        if (records_.is_list(j)) {
            mover_.find_branches_of_list(job, j, made_,
                                         [&](const auto& list) { return first_on_right(list, j); });
        } else {
            branch_of_code_[records_.missing_code(j)] = mover_.branch_of_missing(made_);
            mover_.find_branches(job, j, made_, branch_of_code_);
        }
    }

    // The same where missing values follow surrogates, which are found first; visit(branch, record)
    // for the records that do.
    template <typename Visit>
    void find_branches_by_surrogates(const Job& job, size_t j, const Visit& visit) {
        const int32_t missing_to = made_.missing_to;
        made_.missing_to = stop_here;
        find_branches(job, j);
        made_.missing_to = missing_to;
        std::vector<Surrogate> found = surrogates_.find(job, j, mover_, made_.size);
        surrogates_.route(job, found, uint32_t(missing_to), mover_, visit);
        if (!found.empty()) grown_.surrogates.emplace_back(size_t(job.node), std::move(found));
    }

    void record_branches(const Job& job, size_t j, int64_t first) {
        Split split;
        split.column = int32_t(j);
        if (candidates_[j].has_threshold())
            split.threshold = threshold_between(records_.values(j), candidates_[j].low,
                                                candidates_[j].high, problem_.positions[j]);
        split.missing_to = made_.missing_to;
        split.unseen_to = unseen_route(problem_, made_.largest, made_.missing_to);
        record_split(job.node, split, first, made_.count());
        const auto at = size_t(first);
        std::copy(made_.weights.begin(), made_.weights.end(), &grown_.weights[at * width_]);
        for (size_t b = 0; b < made_.count(); ++b) {
            grown_.nodes[at + b].code = made_.code[b];
            grown_.nodes[at + b].cases =
                cases_are_added() ? made_.cases[b] : double(mover_.rows(b));
        }
    }

    // Whether records are not one case each.
    bool cases_are_added() const { return problem_.fractions || Records<W, Target>::repeated; }

    // ---- significance ----------------------------------------------------------

    // visit(branch, record) for the records that a split is tested with, its branches being in
    // made_: all but those that miss its column and follow other branches.
    template <typename Visit>
    void visit_tested(const Job& job, size_t j, const Visit& visit) {
        if (problem_.missing != Policy::branch && problem_.missing != Policy::learned)
            made_.missing_to = stop_here;
        find_branches(job, j);
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size())
            if (mover_.branch(i) < made_.count()) visit(mover_.branch(i), record);
    }

    // The logarithm of the number of candidates that the split in made_ is the best of.
    double log_tries(size_t j) const {
        size_t n_possible = 0;
        for (const Candidate& candidate : candidates_) n_possible += candidate.possible;
        const double log_columns = std::log(double(std::max<size_t>(n_possible, 1)));
        if (records_.is_numeric(j))
            return log_columns +
                   std::log(double(std::max<uint32_t>(candidates_[j].n_thresholds, 1)));
        if (problem_.branching == Branching::values || problem_.random_splits) return log_columns;
        size_t n_values = 0, n_groups = 0;
        for (int32_t code : made_.code) {
            if (code == no_code) continue;
            ++n_groups;
            n_values += code <= first_group ? grown_.group(code).size() : 1;
        }
        return log_columns + SignificanceTest::log_groupings(n_values, n_groups);
    }

    // Give the children that may be split their records; the others need none.
    template <typename IsOpen>
    void open_children(const Job& job, size_t j, int64_t first, const IsOpen& is_open,
                       std::vector<Job>& stack) {
        const size_t n_branches = made_.count();
        children_.resize(n_branches);
        size_t needed = 0;
        for (size_t b = 0; b < n_branches; ++b) {
            children_[b].node = first + int64_t(b);
            children_[b].arena.reset();  // of the last node, if its histograms were divided
            children_[b].n = is_open(children_[b].node, job.depth + 1) ? mover_.rows(b) : size_t(0);
            needed += children_[b].n;
        }
        if (!needed) return;
        Job place = records_.place_for_children(job, needed);
        const auto alive = still_alive(job, j);
        for (size_t b = n_branches; b-- > 0;) {
            Job& child = children_[b];
            if (!child.n) continue;
            child.depth = job.depth + 1;
            child.n_ranked.assign(records_.n_lists(), 0);
            child.alive = alive;
            child.subtree = job.subtree;
            if (draws_.uses_keys()) child.key = child_key(job.key, b);
            if (pool_.size() == 1)
                records_.put_on_top(child, place);
            else
                records_.put_in_range(child, place, needed);
        }
        records_.divide_lists(job, children_);
        mover_.move(job, children_);
        for (size_t b = n_branches; b-- > 0;)
            if (children_[b].n) stack.push_back(std::move(children_[b]));
    }

    // The columns that vary; a category is not tested twice.
    std::shared_ptr<const std::vector<uint32_t>> still_alive(const Job& job, size_t tested) const {
        std::vector<uint32_t> alive;
        alive.reserve(job.alive->size());
        for (uint32_t j : *job.alive)
            if (candidates_[j].varies && (j != tested || may_be_tested_again(j)))
                alive.push_back(j);
        return std::make_shared<const std::vector<uint32_t>>(std::move(alive));
    }

    bool may_be_tested_again(size_t j) const {
        return records_.is_numeric(j) || problem_.branching != Branching::values;
    }

    const Records<W, Target> records_;
    Mover<W, Target> mover_;
    SurrogateSearch<W, Target> surrogates_;

    const SignificanceTest test_;

    // Scratch, kept between nodes.
    std::vector<Candidate> candidates_;  // by column
    std::vector<uint32_t> batch_;        // columns that are drawn
    std::vector<Job> children_;
    Branches made_;
    std::vector<uint32_t> branch_of_code_;
};

}  // namespace branchwise
