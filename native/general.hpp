// Growth over records: serves weights, fractions, numbers and any number of values.
//
// W is uint32_t where every row counts as one, double where rows have weights.

#pragma once

#include "moving.hpp"
#include "scoring.hpp"

namespace branchwise {

template <typename W>
class GeneralGrower {
  public:
    using Job = RecordJob;

    GeneralGrower(const Problem& problem, const Masses& masses, const Numbers& numbers, Crew& crew)
        : problem_(problem),
          masses_(masses),
          crew_(crew),
          records_(problem, numbers),
          mover_(problem, records_, crew),
          classes_(static_cast<size_t>(problem.n_classes)) {
        for (unsigned member = 0; member < crew.size(); ++member) scorers_.emplace_back(problem, masses, records_);
        branch_of_code_.assign(records_.most_codes(), stop_here);
        candidates_.resize(problem.columns.size());
        totals_.resize(classes_);
    }
    GeneralGrower(const GeneralGrower&) = delete;  // its parts refer to one another
    GeneralGrower& operator=(const GeneralGrower&) = delete;

    size_t n_nodes() const { return grown_.nodes.size(); }
    size_t work(const Job& job) const { return job.n * (job.alive->size() + 1); }
    Grown take() { return std::move(grown_); }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        if (crew_.size() == 1) reserve_nodes();
        add_nodes(1);
        Job root = records_.make_root(grown_.weights.data(), crew_);
        grown_.nodes[0].cases = static_cast<double>(root.n);
        if (may_be_split(0, 0)) jobs.push_back(std::move(root));
    }

    // Make a root of one's own for an open node of another grower.
    int64_t adopt(const Job& job, const Grown& from) {
        const int64_t node = add_nodes(1);
        const auto there = static_cast<size_t>(job.node);
        const auto here = static_cast<size_t>(node);
        const int32_t code = from.nodes[there].code;
        grown_.nodes[here].code = code <= first_group ? grown_.add_group(from.group(code)) : code;
        grown_.nodes[here].cases = from.nodes[there].cases;
        std::copy_n(&from.weights[there * classes_], classes_, &grown_.weights[here * classes_]);
        return node;
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(Job& job, std::vector<Job>& stack) {
        const Scored<W> node = describe(job);
        score_columns(node);
        if (problem_.quinlan) drop_below_average(candidates_, node.scale, problem_);
        const int best = first_best_column(candidates_, node.scale);
        if (best < 0) return;
        carry_out(node, static_cast<size_t>(best), stack);
    }

  private:
    // About as many as a deep tree has, so that arrays need not grow and be copied. What
    // is not used is never touched.
    void reserve_nodes() {
        grown_.nodes.reserve(problem_.n_rows);
        grown_.weights.reserve(problem_.n_rows * classes_);
    }

    int64_t add_nodes(size_t count) {
        const auto first = static_cast<int64_t>(grown_.nodes.size());
        grown_.nodes.resize(grown_.nodes.size() + count);
        grown_.weights.resize(grown_.weights.size() + count * classes_, 0.0);
        return first;
    }

    bool may_be_split(int64_t node, int64_t depth) const {
        if (problem_.max_depth >= 0 && depth >= problem_.max_depth) return false;
        const auto at = static_cast<size_t>(node);
        int present = 0;
        for (size_t c = 0; c < classes_; ++c) present += grown_.weights[at * classes_ + c] > 0;
        return present > 1 && grown_.nodes[at].cases >= problem_.cases_to_split;
    }

    Scored<W> describe(const Job& job) {
        const auto node = static_cast<size_t>(job.node);
        const double* weights = &grown_.weights[node * classes_];
        double total = 0;
        for (size_t c = 0; c < classes_; ++c) total += weights[c];
        for (size_t c = 0; c < classes_; ++c) totals_[c] = static_cast<W>(weights[c]);
        const int64_t mass =
            masses_.impurity(problem_.criterion, totals_.data(), problem_.n_classes, static_cast<W>(total));
        const int64_t size_mass =
            problem_.criterion == Criterion::gain_ratio ? masses_.x_log2_x(static_cast<W>(total)) : 0;
        return {job, totals_, grown_.nodes[node].cases, mass, size_mass, Scale(total, masses_, problem_)};
    }

    // Into candidates_, by column; a large node's columns are shared out.
    void score_columns(const Scored<W>& node) {
        const std::vector<uint32_t>& alive = *node.job.alive;
        std::fill(candidates_.begin(), candidates_.end(), Candidate());
        if (crew_.shares(work(node.job))) {
            crew_.each(alive.size(), work(node.job), [&](size_t i, unsigned member) {
                candidates_[alive[i]] = scorers_[member].score(node, alive[i]);
            });
            return;
        }
        double top = no_score;
        for (uint32_t j : alive) {
            candidates_[j] = scorers_[0].score(node, j);
            if (is_best(candidates_[j], node, top)) return;
            top = std::max(top, candidates_[j].score);
        }
    }

    // Whether a column is the first of the best, whatever the columns after it: its
    // branches are all pure, so that none can drop more (but for noise, within which
    // the first wins), and those before it are worse by more than noise can change.
    bool is_best(const Candidate& candidate, const Scored<W>& node, double top_before) const {
        if (candidate.drop < node.mass || problem_.criterion == Criterion::gain_ratio) return false;
        return top_before < node.scale.least(candidate.score) - node.scale.resolution;
    }

    // ---- carrying out ----------------------------------------------------------

    Branches make_branches(const Scored<W>& node, size_t j) {
        Branches made;
        double missing_size;
        if (records_.is_numeric(j)) missing_size = make_sides(node.job, j, node.scale.total, made);
        else if (problem_.branching == Branching::values) missing_size = make_values(node.job, j, made);
        else missing_size = make_groups(node, j, made);
        if (missing_size > 0 && problem_.missing == Policy::branch) {
            made.missing_branch = static_cast<int32_t>(made.code.size());
            made.code.push_back(no_code);
            made.size.push_back(missing_size);
        }
        return made;
    }

    // Branches of a cut, or one of all known numbers; returns the weight of the others.
    double make_sides(const Job& job, size_t j, double total, Branches& made) {
        double side[2] = {0, 0};
        const auto add = [&](uint32_t rank, W w) { side[side_of(j, rank)] += static_cast<double>(w); };
        if (records_.is_list(j)) {
            const Ranked* entry = records_.ranked(job, records_.slot(j));
            const uint8_t* base = records_.first(job);
            for (size_t i = 0; i < job.n_ranked[records_.slot(j)]; ++i)
                add(entry[i].rank, records_.weight(base + entry[i].position * records_.size()));
        } else {
            ValueCounts<W>& counts = scorers_[0].counts();
            counts.count(job, j);
            for (uint32_t rank : counts.present)
                if (rank != records_.missing_code(j)) add(rank, counts.size(rank));
            counts.forget();
        }
        const bool uncut = std::isnan(candidates_[j].cut);
        made.code = uncut ? std::vector<int32_t>{both_sides} : std::vector<int32_t>{0, 1};
        made.size.assign(side, side + made.code.size());
        return total - side[0] - side[1];
    }

    int32_t side_of(size_t j, uint32_t rank) const {
        return !std::isnan(candidates_[j].cut) && rank > candidates_[j].boundary;
    }

    // A branch for each value, noted in branch_of_code_; returns the weight of missing ones.
    double make_values(const Job& job, size_t j, Branches& made) {
        ValueCounts<W>& counts = scorers_[0].counts();
        counts.count(job, j);
        std::sort(counts.present.begin(), counts.present.end());
        double missing_size = 0;
        for (uint32_t value : counts.present) {
            if (value == records_.missing_code(j)) {
                missing_size = static_cast<double>(counts.size(value));
            } else {
                branch_of_code_[value] = static_cast<int32_t>(made.code.size());
                made.code.push_back(static_cast<int32_t>(value));
                made.size.push_back(static_cast<double>(counts.size(value)));
            }
        }
        counts.forget();
        return missing_size;
    }

    // A branch for each group of values, likewise.
    double make_groups(const Scored<W>& node, size_t j, Branches& made) {
        const auto& groups = scorers_[0].group_values(node, j);
        std::vector<std::vector<uint32_t>> codes(groups.count);
        made.size.assign(groups.count, 0.0);
        for (size_t v = 0; v < groups.values.count(); ++v) {
            const uint32_t g = groups.group[v];
            branch_of_code_[groups.values.codes[v]] = static_cast<int32_t>(g);
            codes[g].push_back(groups.values.codes[v]);
            made.size[g] += static_cast<double>(groups.values.sizes[v]);
        }
        for (auto& group : codes)
            made.code.push_back(group.size() == 1 ? static_cast<int32_t>(group[0]) : grown_.add_group(std::move(group)));
        return static_cast<double>(groups.missing_size);
    }

    void carry_out(const Scored<W>& node, size_t j, std::vector<Job>& stack) {
        const Job& job = node.job;
        Branches made = make_branches(node, j);
        const size_t n_branches = made.code.size();
        const int64_t first = add_nodes(n_branches);
        record_split(job, j, made, first);
        if (records_.is_numeric(j))
            mover_.find_branches(job, j, made, [&](uint32_t rank) { return side_of(j, rank); });
        else
            mover_.find_branches(job, j, made, [&](uint32_t value) { return branch_of_code_[value]; });
        const auto at = static_cast<size_t>(first);
        mover_.count_children(job, made, &grown_.weights[at * classes_], &grown_.nodes[at]);
        open_children(job, j, first, n_branches, stack);
    }

    void record_split(const Job& job, size_t j, Branches& made, int64_t first) {
        const int32_t largest = largest_branch(made.size);
        made.missing_to = missing_route(problem_, largest, made.missing_branch);
        Node& node = grown_.nodes[static_cast<size_t>(job.node)];
        node.column = static_cast<int32_t>(j);
        node.cut = candidates_[j].cut;
        node.n_children = static_cast<int32_t>(made.code.size());
        node.first_child = static_cast<uint32_t>(first);
        node.missing_to = made.missing_to;
        node.unseen_to = unseen_route(problem_, largest, made.missing_to);
        for (size_t b = 0; b < made.code.size(); ++b)
            grown_.nodes[static_cast<size_t>(first) + b].code = made.code[b];
    }

    // Give the children that may be split their records; the others need none.
    void open_children(const Job& job, size_t j, int64_t first, size_t n_branches, std::vector<Job>& stack) {
        children_.clear();
        children_.resize(n_branches);
        size_t needed = 0;
        for (size_t b = 0; b < n_branches; ++b) {
            children_[b].node = first + static_cast<int64_t>(b);
            if (may_be_split(children_[b].node, job.depth + 1)) children_[b].n = mover_.rows(b);
            needed += children_[b].n;
        }
        if (!needed) return;
        Job place = place_for(job, needed);
        const size_t spare = place.room - needed;
        const auto alive = still_alive(job, j);
        for (Job& child : children_) {
            if (!child.n) continue;
            child.depth = job.depth + 1;
            child.arena = place.arena;
            child.side = place.side;
            child.begin = place.begin;
            child.room = child.n + spare * child.n / needed;
            child.n_ranked.assign(records_.n_lists(), 0);
            child.alive = alive;
            place.begin += child.room;
        }
        mover_.move(job, children_);
        for (size_t b = n_branches; b-- > 0;)
            if (children_[b].n) stack.push_back(std::move(children_[b]));
    }

    // Where the children of a node go: its own range, on the other side, if there is room.
    Job place_for(const Job& job, size_t needed) const {
        Job place;
        if (needed > job.room) {
            place.n = needed;
            records_.take_arena(place);
            return place;
        }
        place.arena = job.arena;
        place.side = 1 - job.side;
        place.begin = job.begin;
        place.room = job.room;
        return place;
    }

    // The columns that vary; a category is not asked twice.
    std::shared_ptr<const std::vector<uint32_t>> still_alive(const Job& job, size_t asked) const {
        std::vector<uint32_t> alive;
        alive.reserve(job.alive->size());
        for (uint32_t j : *job.alive)
            if (candidates_[j].varies && (j != asked || may_be_asked_again(j))) alive.push_back(j);
        return std::make_shared<const std::vector<uint32_t>>(std::move(alive));
    }

    bool may_be_asked_again(size_t j) const {
        return records_.is_numeric(j) || problem_.branching != Branching::values;
    }

    const Problem& problem_;
    const Masses& masses_;
    Crew& crew_;
    const Records<W> records_;
    std::vector<ColumnScorer<W>> scorers_;  // one for each thread of the crew
    Mover<W> mover_;
    const size_t classes_;
    Grown grown_;

    // Scratch, kept between nodes.
    std::vector<W> totals_;
    std::vector<Candidate> candidates_;
    std::vector<Job> children_;
    std::vector<int32_t> branch_of_code_;
};

}  // namespace branchwise
