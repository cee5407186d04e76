// Growth over records: serves weights, fractions, numbers and any number of values.
//
// W is uint32_t where every row counts as one, Times where rows are repeated, double where they
// have weights.

#pragma once

#include "small_records/fractional_subtrees.hpp"
#include "records/record_tree.hpp"
#include "records/scoring.hpp"
#include "small_records/small_node.hpp"

namespace branchwise {

template <typename W>
class RecordGrower : public RecordTree<W, uint32_t> {
    using Base = RecordTree<W, uint32_t>;
    using Weight = typename Records<W>::Weight;

  public:
    using Base::work;
    using typename Base::Job;

    RecordGrower(const Problem& problem, const Impurities& impurities, const Numbers& numbers,
                 ThreadPool& pool)
        : Base(problem, numbers, pool, size_t(problem.n_classes)),
          impurities_(impurities),
          joint_(problem, records_),
          small_node_(problem, records_),
          entropy_(impurities),
          may_be_thin_(problem.fractions || problem.cases_in_leaf > 1 ||
                       (problem.weights_are_cases && problem.weights)),
          estimates_(Records<W>::weighted && ImpurityBounds::serve(problem, impurities)),
          classes_(width_),
          sums_(records_, classes_) {
        for (unsigned member = 0; member < pool.size(); ++member)
            scorers_.emplace_back(problem, impurities, records_, joint_);
        totals_.resize(classes_);
        if constexpr (Records<W>::weighted)
            if (FractionalSubtrees::suits(problem, impurities))
                subtrees_ =
                    std::make_unique<FractionalSubtrees>(problem, impurities, records_, grown_);
    }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        add_root(problem_.n_rows);
        Job root = records_.make_root(pool_, [&](uint32_t row) { return problem_.labels[row]; });
        double cases = 0;
        for (uint32_t row : records_.rows()) {
            weights_of(0)[problem_.labels[row]] += records_.row_weight(row);
            cases += Records<W>::repeated ? records_.row_weight(row) : 1.0;
        }
        grown_.nodes[0].cases = cases;
        if (is_open(0, 0)) jobs.push_back(std::move(root));
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(Job& job, std::vector<Job>& stack) {
        if constexpr (Records<W>::weighted)
            if (subtrees_ && job.n <= FractionalSubtrees::most && subtrees_->grow(job)) return;
        // Depth first, such a subtree is grown before any other.
        if (pool_.size() == 1 && records_.may_have_lists(job) && is_deep_enough(job))
            records_.make_lists(job, lists_);
        try_batches(job, [&](const std::vector<uint32_t>& columns) {
            open_columns_ = columns;
            joint_.clear();
            return problem_.tests_splits ? split_if_significant(job, stack)
                                         : split_by_best(job, stack);
        });
    }

  private:
    using Base::add_nodes;
    using Base::add_root;
    using Base::add_sides;
    using Base::branch_of_code_;
    using Base::candidates_;
    using Base::find_branches;
    using Base::find_branches_by_surrogates;
    using Base::first_on_right;
    using Base::grown_;
    using Base::log_tries;
    using Base::made_;
    using Base::may_be_split;
    using Base::mover_;
    using Base::open_children;
    using Base::pool_;
    using Base::problem_;
    using Base::record_branches;
    using Base::records_;
    using Base::side_of;
    using Base::test_;
    using Base::try_batches;
    using Base::visit_tested;
    using Base::weights_of;
    using Base::width_;

    // Split a node by the best of the open columns, if there is one.
    bool split_by_best(const Job& job, std::vector<Job>& stack) {
        const bool small = job.n <= SmallNode<W>::most_records;
        const bool drops_thin = small && may_be_thin_;
        if (drops_thin) drop_thin_columns(job);
        if (open_columns_.empty()) return false;
        const Weighed<Weight> weighed = weigh(job);
        if (drops_thin && one_is_left()) {
            carry_out(weighed, open_columns_.front(), stack);
            return true;
        }
        const Scored<Weight> node = describe(weighed);
        double top = no_score;
        if (!small || !settle(node, top)) {
            count_columns(node);
            if (!estimates_ || !choose_roughly(node, top)) {
                score_columns(node, top);
                if (problem_.average_gain) drop_below_average(candidates_, node.scale, problem_);
            }
        }
        const int best = first_best_column(candidates_, node.scale);
        if (best >= 0) carry_out(node, size_t(best), stack);
        return best >= 0;
    }

    // Lists of a subtree are made where they will be divided several times.
    bool is_deep_enough(const Job& job) const {
        return problem_.max_depth < 0 || job.depth + 2 < problem_.max_depth;
    }

    bool is_open(int64_t node, int64_t depth) const {
        int present = 0;
        double total = 0;
        const double* weights = weights_of(node);
        for (size_t c = 0; c < classes_; ++c) {
            present += weights[c] > 0;
            total += weights[c];
        }
        return present > 1 &&
               may_be_split(cases_for_bars(problem_, total, grown_.nodes[size_t(node)].cases),
                            depth);
    }

    // The same where splits must be significant: all columns are candidates.
    bool split_if_significant(const Job& job, std::vector<Job>& stack) {
        const Scored<Weight> node = describe(weigh(job));
        count_columns(node);
        pool_.each(open_columns_.size(), work(job), [&](size_t i, unsigned member) {
            candidates_[open_columns_[i]] = scorers_[member].score(node, open_columns_[i]);
        });
        if (problem_.average_gain) drop_below_average(candidates_, node.scale, problem_);
        const int best = first_significant(
            candidates_, [&](double top) { return node.scale.least(top); },
            [&](size_t j) { return is_significant(node, j); });
        if (best >= 0) carry_out(node, size_t(best), stack);
        return best >= 0;
    }

    bool is_significant(const Weighed<Weight>& node, size_t j) {
        const size_t n_groups = grown_.n_groups();
        make_branches(node, j);
        std::vector<double> weights(made_.count() * classes_, 0.0);
        double cases = 0;
        visit_tested(node.job, j, [&](uint32_t branch, const uint8_t* record) {
            const auto weight = double(records_.weight(record));
            weights[branch * classes_ + records_.label(record)] += weight;
            cases += cases_for_bars(problem_, weight, records_.share(record));
        });
        const double tries = log_tries(j);
        grown_.keep_groups(n_groups);
        return test_.passes(weights, classes_, cases, tries);
    }

    // Leave those columns of a small node open that have two values, all with the cases of
    // a leaf; and those that it does not know.
    void drop_thin_columns(const Job& job) {
        small_node_.look_for_thin(job);
        const auto no_use = [&](uint32_t j) {
            if (!small_node_.knows(j)) return false;
            candidates_[j].varies = small_node_.varies(j);
            return !candidates_[j].varies || small_node_.is_thin(j);
        };
        open_columns_.erase(std::remove_if(open_columns_.begin(), open_columns_.end(), no_use),
                            open_columns_.end());
    }

    // Whether a single column may be tested, whatever its score.
    bool one_is_left() const {
        if (open_columns_.size() != 1 || !small_node_.knows(open_columns_.front())) return false;
        return !problem_.average_gain && problem_.min_gain <= 0 && problem_.weight_in_leaf <= 0 &&
               problem_.cases_in_branch <= problem_.cases_in_leaf;
    }

    Weighed<Weight> weigh(const Job& job) {
        const double* weights = weights_of(job.node);
        double total = 0;
        present_.clear();
        for (size_t c = 0; c < classes_; ++c) {
            total += weights[c];
            totals_[c] = Weight(weights[c]);
            if (weights[c] > 0) present_.push_back(uint32_t(c));
        }
        return {job, totals_, present_, total, grown_.nodes[size_t(job.node)].cases};
    }

    Scored<Weight> describe(const Weighed<Weight>& node) {
        const double total = node.total;
        if (estimates_) {
            const auto [size_impurity, impurity] = entropy_.of(total, totals_, present_);
            return {node, impurity, size_impurity,
                    Scale(total, Impurities::noise_of(size_impurity), impurities_, problem_)};
        }
        const int64_t impurity = impurities_.impurity(problem_.criterion, totals_.data(),
                                                      problem_.n_classes, Weight(total));
        const int64_t size_impurity =
            problem_.criterion == Criterion::gain_ratio ? impurities_.x_log2_x(Weight(total)) : 0;
        return {node, impurity, size_impurity, Scale(total, impurities_, problem_)};
    }

    // Go through the columns of a small node, for as far as it is cheap, and return
    // whether the best is found. If not, `top` is the best score, or more than any, of
    // those gone through; open_columns_ are left.
    bool settle(const Scored<Weight>& node, double& top) {
        // Parts of cases are rarely fractional by class.
        if (!problem_.takes_largest_gain() || problem_.fractions) return false;
        small_node_.look_for_mixed(node.job);
        const int64_t most_if_mixed = node.impurity - impurities_.bits(small_node_.least_weight());
        double top_if_mixed = no_score;
        size_t n_left = 0;
        for (uint32_t j : open_columns_) {
            if (small_node_.knows(j) && small_node_.is_mixed(j)) {
                top_if_mixed = node.scale.gain(most_if_mixed) + node.scale.resolution;
                open_columns_[n_left++] = j;
                continue;
            }
            candidates_[j] = scorers_[0].score(node, j);
            if (is_best(candidates_[j], node, std::max(top, top_if_mixed))) return true;
            top = std::max(top, candidates_[j].score);
        }
        open_columns_.resize(n_left);
        return false;
    }

    // The open columns of few values, into joint_.
    void count_columns(const Scored<Weight>& node) {
        const Job& job = node.job;
        joint_.begin(open_columns_, job.n, node.classes);
        if (joint_.empty()) return;
        const size_t n_pieces = pool_.pieces(work(job));
        if (n_pieces == 1) return joint_.add(records_.first(job), job.n);
        std::vector<JointCounts<W>> parts(pool_.size(), joint_);  // of each thread
        pool_.each(n_pieces, work(job), [&](size_t k, unsigned member) {
            const size_t start = job.n * k / n_pieces;
            const size_t end = job.n * (k + 1) / n_pieces;
            parts[member].add(records_.first(job) + start * records_.size(), end - start);
        });
        for (const auto& part : parts) joint_.add(part);
    }

    // The open columns, into candidates_; those of a large node are shared out. `top` is
    // the best score so far.
    void score_columns(const Scored<Weight>& node, double top) {
        if (pool_.shares(work(node.job))) {
            pool_.each(open_columns_.size(), work(node.job), [&](size_t i, unsigned member) {
                candidates_[open_columns_[i]] = scorers_[member].score(node, open_columns_[i]);
            });
            return;
        }
        for (uint32_t j : open_columns_) {
            candidates_[j] = scorers_[0].score(node, j, least_of_use(node, top));
            if (is_best(candidates_[j], node, top)) return;
            top = std::max(top, candidates_[j].score);
        }
    }

    // Scores below this are worse than `top` by more than ties can make up for, even if a
    // threshold ties with another that ties with the best.
    double least_of_use(const Scored<Weight>& node, double top) const {
        if (!problem_.takes_largest_score() || top == no_score) return no_score;
        return top - 3 * (top - node.scale.least(top));
    }

    // ScoreEstimate the open columns, and score only those that may be the best. Returns false if
    // all must be scored to tell which they are. `top` is the best score of other columns.
    bool choose_roughly(const Scored<Weight>& node, double top) {
        bounds_.assign(candidates_.size(), ScoreEstimate());
        sure_.assign(candidates_.size(), true);
        pool_.each(open_columns_.size(), work(node.job), [&](size_t i, unsigned member) {
            const uint32_t j = open_columns_[i];
            bounds_[j] = scorers_[member].estimate(node, j, candidates_[j], sure_[j]);
        });
        for (uint32_t j : open_columns_) candidates_[j].score = no_score;
        hopeful_ = open_columns_;
        if (problem_.average_gain && !keep_average(hopeful_, bounds_, problem_)) return false;
        keep_hopeful(hopeful_, bounds_, top, node.scale);
        if (hopeful_.size() == 1 && top == no_score && problem_.min_gain <= 0 &&
            sure_[hopeful_.front()]) {  // whose score no longer matters
            candidates_[hopeful_.front()].score = bounds_[hopeful_.front()].score.most;
            return true;
        }
        pool_.each(hopeful_.size(), work(node.job), [&](size_t i, unsigned member) {
            candidates_[hopeful_[i]] = scorers_[member].score(node, hopeful_[i]);
        });
        return true;
    }

    // Whether a column is the first of the best, whatever the columns after it: its
    // branches are all pure, so that none can drop more (but for noise, within which
    // the first wins), and those before it are worse by more than noise can change.
    bool is_best(const Candidate& candidate, const Scored<Weight>& node, double top_before) const {
        if (candidate.drop < node.impurity || !problem_.takes_largest_gain()) return false;
        if (candidate.score < node.scale.gain(node.impurity)) return false;  // corrected
        return top_before < node.scale.least(candidate.score) - node.scale.resolution;
    }

    // ---- carrying out ----------------------------------------------------------

    void carry_out(const Weighed<Weight>& node, size_t j, std::vector<Job>& stack) {
        const Job& job = node.job;
        make_branches(node, j);
        if (problem_.missing == Policy::surrogate)
            find_branches_by_surrogates(job, j, [&](uint32_t branch, const uint8_t* record) {
                made_.weights[branch * classes_ + records_.label(record)] +=
                    double(records_.weight(record));
                made_.cases[branch] += records_.share(record);
            });
        else
            find_branches(job, j);
        mover_.divide(job, made_);
        mover_.each_part(job, [&](size_t branch, const uint8_t* record, double weight) {
            made_.weights[branch * classes_ + records_.label(record)] += weight;
        });
        const int64_t first = add_nodes(made_.count());
        record_branches(job, j, first);
        const auto opens = [&](int64_t node, int64_t depth) { return is_open(node, depth); };
        open_children(job, j, first, opens, stack);
    }

    // Into made_; where codes lead is noted in branch_of_code_.
    void make_branches(const Weighed<Weight>& node, size_t j) {
        made_.clear();
        int32_t learned = candidates_[j].missing_to;
        if (records_.is_list(j))
            make_sides_of_list(node, j);
        else if (records_.is_numeric(j))
            make_sides(node.job, j);
        else if (problem_.branching == Branching::values)
            make_values(node.job, j);
        else
            learned = make_groups(node, j);
        route_missing(node, learned);
    }

    void add_to_branch(size_t branch, const Weight* weights, Weight size, double cases) {
        for (size_t c = 0; c < classes_; ++c)
            made_.weights[branch * classes_ + c] += double(weights[c]);
        made_.size[branch] += double(size);
        made_.cases[branch] += cases;
    }

    void make_sides_of_list(const Weighed<Weight>& node, size_t j) {
        add_sides(j);
        records_.with_list(node.job, j, [&](const auto& list) {
            const size_t right = first_on_right(list, j);
            const size_t ends[] = {0, right, list.size()};
            for (size_t side = 0; side < made_.count(); ++side) {
                sums_.add_up(list, ends[side], ends[side + 1], node.classes);
                for (size_t k = 0; k < node.classes.size(); ++k) {
                    const auto weight = double(records_.weight_of(sums_.steps[k]));
                    made_.weights[side * classes_ + node.classes[k]] = weight;
                    made_.size[side] += weight;
                }
                made_.cases[side] = sums_.cases;
            }
        });
    }

    void make_sides(const Job& job, size_t j) {
        add_sides(j);
        ValueCounts<W>& counts = scorers_[0].counts();
        counts.count(job, j);
        for (uint32_t rank : counts.present) {
            if (rank == records_.missing_code(j)) continue;
            branch_of_code_[rank] = side_of(j, rank);
            add_to_branch(branch_of_code_[rank], counts.cell(rank), counts.size(rank),
                          counts.cases(rank));
        }
        counts.forget();
    }

    // A branch for each value.
    void make_values(const Job& job, size_t j) {
        ValueCounts<W>& counts = scorers_[0].counts();
        counts.count(job, j);
        std::sort(counts.present.begin(), counts.present.end());
        for (uint32_t value : counts.present) {
            if (value == records_.missing_code(j)) continue;
            branch_of_code_[value] = uint32_t(made_.count());
            made_.add(int32_t(value), classes_);
            add_to_branch(branch_of_code_[value], counts.cell(value), counts.size(value),
                          counts.cases(value));
        }
        counts.forget();
    }

    // A branch for each group of values. Returns that of missing ones, if it is learned.
    int32_t make_groups(const Weighed<Weight>& node, size_t j) {
        const auto& groups = scorers_[0].group_values(describe(node), j);
        const Values<Weight>& values = groups.values;
        for (size_t g = 0; g < groups.count; ++g) made_.add(no_code, classes_);
        std::vector<std::vector<uint32_t>> codes(groups.count);
        for (size_t v = 0; v < values.count(); ++v) {
            const uint32_t g = groups.group[v];
            branch_of_code_[values.codes[v]] = g;
            codes[g].push_back(values.codes[v]);
            add_to_branch(g, &values.cells[v * classes_], values.sizes[v], values.cases[v]);
        }
        for (size_t g = 0; g < groups.count; ++g)
            made_.code[g] =
                codes[g].size() == 1 ? int32_t(codes[g][0]) : grown_.add_group(codes[g]);
        return groups.missing_to;
    }

    // What known branches have not got is missing: it has a branch of its own, goes to the
    // `learned` one, the largest, or to none, or is fractional later on.
    void route_missing(const Weighed<Weight>& node, int32_t learned) {
        const size_t n_known = made_.count();
        double missing_size = node.total;
        for (double size : made_.size) missing_size -= size;
        if (missing_size > 0 && learned != stop_here) {
            made_.missing_branch = learned;
            made_.size[size_t(learned)] += missing_size;
        }
        if (missing_size > 0 && problem_.missing == Policy::branch) {
            made_.missing_branch = int32_t(n_known);
            made_.add(no_code, classes_);
            made_.size.back() = missing_size;
        }
        made_.largest = largest_branch(made_.size);
        made_.missing_to = missing_route(problem_, made_.largest, made_.missing_branch);
        if (made_.missing_to < 0 || !(missing_size > 0)) return;
        if (problem_.missing == Policy::surrogate) return;  // record by record
        const auto to = size_t(made_.missing_to);
        for (size_t c = 0; c < classes_; ++c) {
            double missing = double(node.totals[c]);
            for (size_t b = 0; b < n_known; ++b) missing -= made_.weights[b * classes_ + c];
            made_.weights[to * classes_ + c] += missing;
        }
        double missing_cases = node.cases;
        for (size_t b = 0; b < n_known; ++b) missing_cases -= made_.cases[b];
        made_.cases[to] += missing_cases;
    }

    const Impurities& impurities_;
    JointCounts<W> joint_;  // of the node that is being split
    SmallNode<W> small_node_;
    std::unique_ptr<FractionalSubtrees> subtrees_;
    NodeEntropy entropy_;
    const bool may_be_thin_;  // a value of a column, of fewer cases than a leaf must have
    const bool estimates_;
    std::vector<ColumnScorer<W>> scorers_;  // one for each thread of the pool
    const size_t classes_;
    SubtreeLists lists_;  // of the subtree that is grown as a whole

    // Scratch, kept between nodes.
    ListSums<W> sums_;
    std::vector<Weight> totals_;          // class weights
    std::vector<uint32_t> present_;       // classes that have some
    std::vector<uint32_t> open_columns_;  // that are to be scored
    std::vector<uint32_t> hopeful_;       // of these
    std::vector<ScoreEstimate> bounds_;   // by column
    std::vector<char> sure_;              // by column: whether it has one threshold at most
};

}  // namespace branchwise
