// Growth over records whose target is a number: variance and Poisson's criterion.
//
// W is uint32_t where rows count as one, Times where they are repeated, double where they have
// weights.

#pragma once

#include "regression/number_bounds.hpp"
#include "regression/number_scoring.hpp"
#include "regression/number_tree.hpp"
#include "regression/small_subtrees.hpp"
#include "regression/tested_moments.hpp"

namespace branchwise {

template <typename W>
class NumberGrower : public NumberTree<W> {
    using Base = NumberTree<W>;

  public:
    using Base::work;
    using typename Base::Job;

    NumberGrower(const Problem& problem, const NumberScale& scale, const Numbers& numbers,
                 ThreadPool& pool)
        : Base(problem, scale, numbers, pool), moments_(scale, problem.series) {
        for (unsigned member = 0; member < pool.size(); ++member)
            scorers_.emplace_back(problem, scale, records_);
        if (scale.poisson)
            rates_ = std::make_unique<Rates>(problem, records_);
        else
            plain_ = std::make_unique<Variances>(problem, records_);
        if constexpr (!weighted) {
            if (!scale.poisson && !Base::draws_.any())
                histograms_ = std::make_unique<Histograms<W>>(problem, records_);
            if (suits_subtrees(problem, scale))
                subtrees_ = std::make_unique<Subtrees>(problem, scale, records_, grown_);
        }
    }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        add_root(2 * problem_.n_rows);
        depth_first_ = pool_.size() == 1 && records_.lists_in_place();
        Job root = records_.make_root(pool_, [&](uint32_t row) { return scale_.values[row]; });
        Values values;
        each_record(root, [&](size_t, const uint8_t* record) {
            add_sum(weights_of(0), record);
            grown_.nodes[0].cases += records_.share(record);
            values.add(records_.target(record));
        });
        if (is_open(0, 0, values.several))
            jobs.push_back(std::move(root));
        else
            add_squares(root);
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(Job& job, std::vector<Job>& stack) {
        if (depth_first_) records_.give_back_free(job);
        if (subtrees_ && subtrees_->takes(job.n, size_t(weights_of(job.node)[0])) &&
            subtrees_->grow(job, stack))
            return;
        if (problem_.fractions) add_squares(job);
        const bool pair = job.n == 2 && !problem_.tests_splits && !problem_.average_gain;
        const bool is_split = try_batches(job, [&](const std::vector<uint32_t>& columns) {
            tested_ = &columns;
            return (pair && split_pair(job, stack)) || split_by_best(job, stack);
        });
        if (!is_split) close(job);
        give_back_scratch(distances_, job.n);
    }

  private:
    using Base::add_nodes;
    using Base::add_root;
    using Base::add_sides;
    using Base::add_square;
    using Base::add_squares;
    using Base::add_sum;
    using Base::add_up_children;
    using Base::branch_of_code_;
    using Base::candidates_;
    using Base::children_;
    using Base::close_children;
    using Base::differ_;
    using Base::each_record;
    using Base::find_branches;
    using Base::find_branches_by_surrogates;
    using Base::grown_;
    using Base::is_open;
    using Base::log_tries;
    using Base::made_;
    using Base::may_be_split;
    using Base::mover_;
    using Base::open_children;
    using Base::pool_;
    using Base::problem_;
    using Base::record_branches;
    using Base::records_;
    using Base::scale_;
    using Base::side_of;
    using Base::test_;
    using Base::try_batches;
    using Base::visit_tested;
    using Base::weighted;
    using Base::weights_of;
    using Base::width_;
    using typename Base::Values;

    static constexpr bool repeated = Records<W, double>::repeated;
    using Counted = std::conditional_t<weighted, uint32_t, W>;
    using Subtrees = SmallSubtrees<Counted>;

    bool split_by_best(const Job& job, std::vector<Job>& stack) {
        open_columns_ = *tested_;
        centre_at(job);
        const NumberNode node{job, moments_, weights_of(job.node) + 1,
                              grown_.nodes[size_t(job.node)].cases, variance_};
        int best = -1;
        if (!problem_.tests_splits && !problem_.average_gain)
            best = plain_ ? best_by_sums(node, *plain_) : best_by_sums(node, *rates_);
        if (best < 0) {
            find_variance(job);
            pool_.each(open_columns_.size(), work(job), [&](size_t i, unsigned member) {
                candidates_[open_columns_[i]] = scorers_[member].score(node, open_columns_[i]);
            });
            const double resolution = moments_.in_units(moments_.resolution());
            if (problem_.average_gain) drop_low_gains(resolution);
            const auto least = [&](double top) { return least_of_equals(top, resolution); };
            const auto passes = [&](size_t j) { return is_significant(node, j); };
            best = problem_.tests_splits ? first_significant(candidates_, least, passes)
                                         : first_best_candidate(candidates_, least);
        }
        if (best < 0) return false;
        make_branches(node, size_t(best));
        carry_out(job, size_t(best), stack);
        return true;
    }

    // Leave the columns that gain about as much as columns do on average, and enough.
    void drop_low_gains(double resolution) {
        const auto gain_of = [&](int64_t drop) { return moments_.in_units(moments_.gain(drop)); };
        drop_below_average(candidates_, problem_, gain_of, [&](int64_t drop) {
            return problem_.min_gain <= 0 || gain_of(drop) >= problem_.min_gain - resolution;
        });
    }

    using Variances = PlainScorer<W, false>;
    using Rates = PlainScorer<W, true>;

    // A node that is not split has its own squares.
    void close(const Job& job) {
        if (histograms_) histograms_->forget(job.node);
        if (!problem_.fractions) add_squares(job);
    }

    double exact_variance(const Job& job) {
        std::vector<double> all(width_, 0.0);
        std::copy_n(weights_of(job.node), 1 + scale_.sums.size(), all.begin());
        each_record(job, [&](size_t, const uint8_t* record) { add_square(&all[0], record); });
        return variance_of(scale_, &all[0]);
    }

    // For scores of categories that are corrected, before they are found.
    void find_variance(const Job& job) {
        if (has_variance_ || !problem_.corrects_values) return;
        variance_ = exact_variance(job);
        has_variance_ = true;
    }

    void centre_at(const Job& job) {
        const double* moments = weights_of(job.node);
        moments_.find_mean(moments);
        distances_.resize(job.n);
        const double centre = moments_.centre();
        double squares = 0;
        each_record(job, [&](size_t i, const uint8_t* record) {
            const double distance = records_.target(record) - centre;
            distances_[i] = distance;
            squares += double(records_.weight(record)) * (distance * distance);
        });
        moments_.find_scale(job.n, squares, [&] { return exact_variance(job); });
        has_variance_ = false;
        const double factor = moments_.factor();
        squares_ = squares * factor * factor;
        each_record(job, [&](size_t i, const uint8_t* record) {
            distances_[i] *= factor;
            if constexpr (weighted || repeated) distances_[i] *= records_.weight(record);
        });
    }

    // By the histograms of a large node; by the distances of its rows, if these leave it open.
    template <typename Scorer>
    int best_by_sums(const NumberNode& node, Scorer& scorer) {
        const Job& job = node.job;
        auto plain = scorer.add_up(job, moments_, distances_.data(), scale_.sums.size() == 1);
        if constexpr (Scorer::counted) {
            const double off =
                histograms_ ? off_by_histogram(job.n, plain.factor, histograms_->steps()) : 1;
            if (off < 1e-6 && histograms_->suits(job.n)) {  // otherwise it is of no use
                const double off_rows = plain.off;
                plain.off = off;
                scorer.take(*histograms_, histograms_->at(job), open_columns_, plain);
                const int best = best_by_bounds(node, scorer, plain);
                if (best >= 0) return best;
                open_columns_ = *tested_;
                plain.off = off_rows;
            }
        }
        if (!plain.certain) return -1;
        scorer.count(job, open_columns_, distances_.data());
        return best_by_bounds(node, scorer, plain);
    }

    // Leave the columns open that may be the best. Returns the first if it is certain to be so.
    template <typename Scorer>
    int best_by_bounds(const NumberNode& node, const Scorer& scorer,
                       const typename Scorer::Node& plain) {
        const Job& job = node.job;
        const double most = most_to_gain<Scorer>(job, plain);
        find_bounds(job, scorer, plain, most);
        const bool cut_short = open_columns_.size() < tested_->size();
        double top = no_score;
        for (const NumberBounds& bounds : bounds_) top = std::max(top, bounds.least);
        const double least = top > no_score ? top - surely_apart(top, Scorer::noise) : top;
        // What the columns after the first may do.
        double others = cut_short ? most : no_score;
        size_t n_left = 0;
        const NumberBounds* first = nullptr;
        for (size_t i = 0; i < bounds_.size(); ++i) {
            const uint32_t j = open_columns_[i];
            candidates_[j].varies = bounds_[i].varies;
            if (bounds_[i].most == no_score || bounds_[i].most < least) continue;
            if (first)
                others = std::max(others, bounds_[i].most);
            else
                first = &bounds_[i];
            open_columns_[n_left++] = j;
        }
        open_columns_.resize(n_left);
        if (problem_.min_gain > 0 && cut_short) open_columns_ = *tested_;
        if (!first || problem_.min_gain > 0) return -1;
        const uint32_t j = open_columns_.front();
        const auto is_best = [&](double own) {
            return own > no_score &&
                   (others == no_score || own >= others - surely_equal(others, Scorer::noise));
        };
        // The groups of a category are found when it is split.
        if (!records_.is_numeric(j) && is_best(first->least)) return int(j);
        if (is_best(score_first(node, j, *first, scorer, plain))) return int(j);
        if (cut_short) open_columns_ = *tested_;
        return -1;
    }

    // What a split without any impurity in its branches would gain, at most.
    template <typename Scorer>
    double most_to_gain(const Job& job, const typename Scorer::Node& plain) const {
        if (scale_.poisson) return std::numeric_limits<double>::infinity();
        return squares_ * (1 + (double(job.n) + 64) * 0x1p-52) - value_of<false>(plain.all) +
               plain.off;
    }

    // Of all open columns, or up to one that leaves nothing to gain.
    template <typename Scorer>
    void find_bounds(const Job& job, const Scorer& scorer, const typename Scorer::Node& plain,
                     double most) {
        bounds_.assign(open_columns_.size(), NumberBounds());
        if (pool_.shares(work(job))) {
            std::vector<std::vector<typename Scorer::Sums>> groups(pool_.size());
            pool_.each(open_columns_.size(), work(job), [&](size_t i, unsigned member) {
                bounds_[i] = scorer.bounds(job, open_columns_[i], plain, groups[member]);
                correct(bounds_[i], job, plain);
            });
            return;
        }
        std::vector<typename Scorer::Sums> groups;
        double before = no_score;
        for (size_t i = 0; i < open_columns_.size(); ++i) {
            bounds_[i] = scorer.bounds(job, open_columns_[i], plain, groups);
            correct(bounds_[i], job, plain);
            if (bounds_[i].least >= most - surely_equal(most) &&
                before < bounds_[i].least - surely_apart(most)) {
                open_columns_.resize(i + 1);
                bounds_.resize(i + 1);
                return;
            }
            before = std::max(before, bounds_[i].most);
        }
    }

    // Subtract what scores of groups of values are corrected by.
    template <typename Plain>
    void correct(NumberBounds& bounds, const Job& job, const Plain& plain) const {
        const double share =
            corrected_share(problem_, bounds.n_grouped, grown_.nodes[size_t(job.node)].cases);
        if (share == 0 || bounds.most == no_score) return;
        const double less = share * (squares_ - value_of<false>(plain.all));
        const double off = share * (squares_ * (double(job.n) + 64) * 0x1p-51 + plain.off);
        bounds.most -= less - off;
        if (bounds.least > no_score) bounds.least -= less + off;
    }

    // What a column drops at least, its candidate being set; no score if that is not certain.
    template <typename Scorer>
    double score_first(const NumberNode& node, uint32_t j, const NumberBounds& bounds,
                       const Scorer& scorer, const typename Scorer::Node& plain) {
        Candidate& candidate = candidates_[j];
        if (!records_.is_numeric(j) || bounds.least == no_score) {
            find_variance(node.job);
            candidate = scorers_[0].score(node, j);
            return candidate.score > no_score ? moments_.scaled_score(candidate.score) : no_score;
        }
        const typename Scorer::Certain found = scorer.certain_threshold(node.job, j, bounds, plain);
        if (found.least == no_score) return no_score;
        candidate.set_threshold(found.low, found.high);
        candidate.missing_to = found.missing_to;
        return found.least;
    }

    bool is_significant(const NumberNode& node, size_t j) {
        const size_t n_groups = grown_.n_groups();
        make_branches(node, j);
        TestedMoments moments(scale_, made_.count());
        double cases = 0;
        visit_tested(node.job, j, [&](uint32_t branch, const uint8_t* record) {
            const auto weight = double(records_.weight(record));
            moments.add<weighted>(branch, records_.target(record), weight);
            cases += cases_for_bars(problem_, weight, records_.share(record));
        });
        const double tries = log_tries(j);
        grown_.keep_groups(n_groups);
        return test_.passes(moments.whole(), moments.within(), made_.count(), cases, tries);
    }

    // Next to a far larger number another may be rounded to 0.
    bool both_are_events(const uint8_t* const pair[2]) const {
        const double one = records_.target(pair[0]) * records_.weight(pair[0]);
        const double other = records_.target(pair[1]) * records_.weight(pair[1]);
        return std::min(one, other) > 0x1p-30 * std::max(one, other);
    }

    // Two rows are told apart by the first column in which they differ: all such splits are as
    // good as one another. False where they may not be, or where there is more to look at.
    bool split_pair(const Job& job, std::vector<Job>& stack) {
        const uint8_t* const pair[2] = {records_.first(job), records_.first(job) + records_.size()};
        const double lighter = std::min<double>(records_.weight(pair[0]), records_.weight(pair[1]));
        if (problem_.fractions || problem_.weights_are_cases || problem_.min_gain > 0 ||
            std::max(problem_.cases_in_leaf, problem_.cases_in_branch) > 1 ||
            problem_.weight_in_leaf > lighter || (scale_.poisson && !both_are_events(pair)))
            return false;
        for (uint32_t j : *tested_) {
            uint32_t ranks[2];  // by record
            if (records_.is_list(j)) {
                if (job.n_ranked[records_.slot(j)] != 2) return false;
                const auto* entry = records_.ranked(job, records_.slot(j));
                for (size_t i : {0, 1}) ranks[entry[i].place] = entry[i].rank;
            } else {
                for (size_t i : {0, 1}) ranks[i] = records_.code(pair[i], j);
                if (std::max(ranks[0], ranks[1]) == records_.missing_code(j)) return false;
            }
            if (ranks[0] == ranks[1]) continue;
            const bool turned = ranks[0] > ranks[1];
            const uint32_t low = ranks[turned], high = ranks[!turned];
            if (!records_.is_list(j)) {
                branch_of_code_[low] = 0;
                branch_of_code_[high] = 1;
            }
            made_.clear();
            if (records_.is_numeric(j)) {
                candidates_[j].set_threshold(low, high);
                add_sides(j);
            } else {
                made_.add(int32_t(low), width_);
                made_.add(int32_t(high), width_);
            }
            made_.size[0] = records_.weight(pair[turned]);
            made_.size[1] = records_.weight(pair[!turned]);
            route_missing(job);
            carry_out(job, j, stack);
            return true;
        }
        return false;
    }

    // The branches are in made_.
    void carry_out(const Job& job, size_t j, std::vector<Job>& stack) {
        if (problem_.missing == Policy::surrogate)
            find_branches_by_surrogates(job, j, [](uint32_t, const uint8_t*) {});
        else
            find_branches(job, j);
        mover_.divide(job, made_);
        add_up_children(job);
        const int64_t first = add_nodes(made_.count());
        record_branches(job, j, first);
        const auto opens = [&](int64_t child, int64_t depth) {
            return is_open(child, depth, differ_[size_t(child - first)].several);
        };
        open_children(job, j, first, opens, stack);
        close_children(job, first);
        if (histograms_) divide_histogram(job, stack);
    }

    // Open children are on the stack, the first of them last.
    void divide_histogram(const Job& job, const std::vector<Job>& stack) {
        if (!histograms_->has(job.node)) return;
        size_t at = stack.size();
        for (Job& child : children_)
            if (child.n) child = stack[--at];
        histograms_->divide(job, children_, [&](size_t i) { return mover_.branch(i); });
    }

    // Into made_; where codes lead is noted in branch_of_code_.
    void make_branches(const NumberNode& node, size_t j) {
        made_.clear();
        if (records_.is_list(j)) {
            add_sides(j);
            weigh_sides(node.job, j);
        } else {
            make_groups(node, j);
            if (!records_.is_numeric(j)) candidates_[j].missing_to = scorers_[0].missing_to();
        }
        route_missing(node.job, candidates_[j].missing_to);
    }

    // What known branches have not got is missing.
    void route_missing(const Job& job, int32_t learned = stop_here) {
        double missing = weights_of(job.node)[0];
        for (double size : made_.size) missing -= size;
        if (missing > 0 && learned != stop_here) {
            made_.missing_branch = learned;
            made_.size[size_t(learned)] += missing;
        }
        if (missing > 0 && problem_.missing == Policy::branch) {
            made_.missing_branch = int32_t(made_.count());
            made_.add(no_code, width_);
            made_.size.back() = missing;
        }
        made_.largest = largest_branch(made_.size);
        made_.missing_to = missing_route(problem_, made_.largest, made_.missing_branch);
    }

    void weigh_sides(const Job& job, size_t j) {
        const auto* entry = records_.ranked(job, records_.slot(j));
        const size_t n = job.n_ranked[records_.slot(j)];
        if constexpr (weighted || repeated) {
            const uint8_t* const base = records_.first(job);
            for (size_t i = 0; i < n; ++i)
                made_.size[side_of(j, entry[i].rank)] += records_.weight(entry[i], base);
        } else {
            const auto* right = std::partition_point(
                entry, entry + n, [&](const Ranked& one) { return !side_of(j, one.rank); });
            made_.size[0] = double(right - entry);
            if (made_.count() > 1) made_.size[1] = double(entry + n - right);
        }
    }

    void make_groups(const NumberNode& node, size_t j) {
        const std::vector<Group>& groups = scorers_[0].group_values(node, j);
        if (records_.is_numeric(j)) {
            add_sides(j);
            for (const Group& group : groups) {
                branch_of_code_[group.code] = side_of(j, group.code);
                made_.size[branch_of_code_[group.code]] += group.distance.weight;
            }
            return;
        }
        const std::vector<uint32_t>& branches = scorers_[0].branches();
        std::vector<std::vector<uint32_t>> codes(scorers_[0].n_branches());
        for (size_t b = 0; b < codes.size(); ++b) made_.add(no_code, width_);
        for (size_t g = 0; g < groups.size(); ++g) {
            branch_of_code_[groups[g].code] = branches[g];
            codes[branches[g]].push_back(groups[g].code);
            made_.size[branches[g]] += groups[g].distance.weight;
        }
        for (size_t b = 0; b < codes.size(); ++b)
            made_.code[b] =
                codes[b].size() == 1 ? int32_t(codes[b][0]) : grown_.add_group(codes[b]);
    }

    NodeMoments moments_;
    std::vector<NumberScorer<W>> scorers_;  // one for each thread of the pool
    std::unique_ptr<Variances> plain_;      // or
    std::unique_ptr<Rates> rates_;
    std::unique_ptr<Histograms<Counted>> histograms_;
    std::unique_ptr<Subtrees> subtrees_;

    // Scratch, kept between nodes.
    bool depth_first_ = false;  // the node that is split lies on top of all other open ones
    const std::vector<uint32_t>* tested_ = nullptr;  // columns that may split the node
    std::vector<uint32_t> open_columns_;             // of these, that are to be scored
    Scratch<double> distances_;  // of the node's rows, scaled, times their weights
    double squares_ = 0;         // the sum of their squares
    double variance_ = 0;        // of the numbers, where scores need it
    bool has_variance_ = false;
    std::vector<NumberBounds> bounds_;  // of open columns
};

}  // namespace branchwise
