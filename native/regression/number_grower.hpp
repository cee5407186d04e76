// Growth over records whose target is a number: variance and Poisson's criterion.
//
// W is uint32_t where rows count as one, double where they have weights. Weights of a node are its
// moments: squares are added up where rows stay, in leaves, and by add_up_squares above them. Parts
// of rows that go down every branch are rounded, so there every node adds up its own.

#pragma once

#include "records/record_tree.hpp"
#include "regression/number_bounds.hpp"
#include "regression/number_scoring.hpp"
#include "regression/small_subtrees.hpp"
#include "regression/tested_moments.hpp"

namespace branchwise {

template <typename W>
class NumberGrower : public RecordTree<W, double> {
    using Base = RecordTree<W, double>;

  public:
    using Base::work;
    using typename Base::Job;

    NumberGrower(const Problem& problem, const NumberScale& scale, const Numbers& numbers,
                 ThreadPool& pool)
        : Base(problem, numbers, pool, scale.width()),
          scale_(scale),
          moments_(scale, problem.series) {
        for (unsigned member = 0; member < pool.size(); ++member)
            scorers_.emplace_back(problem, scale, records_);
        if constexpr (!weighted) {
            plain_ = std::make_unique<PlainScorer>(problem, records_);
            if (!scale.poisson) histograms_ = std::make_unique<Histograms>(problem, records_);
            if (SmallSubtrees::suits(problem, scale))
                subtrees_ = std::make_unique<SmallSubtrees>(problem, scale, records_, grown_);
        }
        groups_.resize(pool.size());
    }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        add_root();
        Job root = records_.make_root(pool_, [&](uint32_t row) { return scale_.values[row]; });
        Values values;
        each_record(root, [&](size_t, const uint8_t* record) {
            add_sum(weights_of(0), record);
            values.add(records_.target(record));
        });
        grown_.nodes[0].cases = double(root.n);
        if (is_open(0, 0, values.several))
            jobs.push_back(std::move(root));
        else
            add_squares(root);
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(Job& job, std::vector<Job>& stack) {
        if (subtrees_ && job.n <= SmallSubtrees::most && subtrees_->grow(job, stack)) return;
        std::fill(candidates_.begin(), candidates_.end(), Candidate());
        if (problem_.fractions) add_squares(job);
        if (job.n == 2 && !problem_.tests_splits && split_pair(job, stack)) return;
        open_columns_ = *job.alive;
        centre_at(job);
        const NumberNode node{job, moments_, weights_of(job.node) + 1,
                              grown_.nodes[size_t(job.node)].cases};
        int best = -1;
        if constexpr (!weighted)
            if (!scale_.poisson && !problem_.tests_splits) best = best_by_sums(node);
        if (best < 0) {
            pool_.each(open_columns_.size(), work(job), [&](size_t i, unsigned member) {
                candidates_[open_columns_[i]] = scorers_[member].score(node, open_columns_[i]);
            });
            const double resolution = moments_.in_units(moments_.resolution());
            const auto least = [&](double top) { return least_of_equals(top, resolution); };
            const auto passes = [&](size_t j) { return is_significant(node, j); };
            best = problem_.tests_splits ? first_significant(candidates_, least, passes)
                                         : first_best_candidate(candidates_, least);
        }
        if (best < 0) return close(job);
        make_branches(node, size_t(best));
        carry_out(job, size_t(best), stack);
    }

  private:
    using Base::add_nodes;
    using Base::add_root;
    using Base::add_sides;
    using Base::branch_of_code_;
    using Base::candidates_;
    using Base::children_;
    using Base::find_branches;
    using Base::find_branches_by_surrogates;
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
    using Base::visit_tested;
    using Base::weights_of;
    using Base::width_;

    static constexpr bool weighted = NumberRecords<W>::weighted;

    // Whether there are several numbers.
    struct Values {
        double first = std::numeric_limits<double>::quiet_NaN();
        bool several = false;

        void add(double number) {
            if (std::isnan(first)) first = number;
            several = several || number != first;
        }
    };

    // visit(i, record) for the records of a node.
    template <typename Visit>
    void each_record(const Job& job, const Visit& visit) const {
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) visit(i, record);
    }

    // To the moments of a node: weight and number, or the square of it.
    void add_sum(double* moments, const uint8_t* record, double weight) const {
        moments[0] += weight;
        scale_.template add_number<weighted>(records_.target(record), weight, moments + 1);
    }
    void add_sum(double* moments, const uint8_t* record) const {
        add_sum(moments, record, double(records_.weight(record)));
    }
    void add_square(double* moments, const uint8_t* record, double weight) const {
        scale_.template add_square<weighted>(records_.target(record), weight,
                                             scale_.squares_of(moments));
    }
    void add_square(double* moments, const uint8_t* record) const {
        add_square(moments, record, double(records_.weight(record)));
    }

    // A node that is not split has its own squares.
    void close(const Job& job) {
        if (histograms_) histograms_->forget(job.node);
        if (!problem_.fractions) add_squares(job);
    }
    void add_squares(const Job& job) {
        each_record(
            job, [&](size_t, const uint8_t* record) { add_square(weights_of(job.node), record); });
    }

    // Whether depth and cases allow a node to be split, and its numbers differ.
    bool is_open(int64_t node, int64_t depth, bool differ) const {
        const double cases = grown_.nodes[size_t(node)].cases;
        return differ && may_be_split(cases_for_bars(problem_, weights_of(node)[0], cases), depth);
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
        moments_.find_scale(job.n, squares, [&] {
            std::vector<double> all(width_, 0.0);
            std::copy_n(moments, 1 + scale_.sums.size(), all.begin());
            each_record(job, [&](size_t, const uint8_t* record) { add_square(&all[0], record); });
            return variance_of(scale_, &all[0]);
        });
        if (weighted || scale_.poisson) return;
        squares_ = squares * moments_.factor() * moments_.factor();
        const double factor = moments_.factor();
        const double sum =
            sum_in_steps(job.n, 0.0, factor, [&](size_t i) { return distances_[i]; });
        node_ = PlainNode({sum, double(job.n)}, moments_, job.n);
        for (double& distance : distances_) distance *= factor;
    }

    // By the histograms of a large node; by the distances of its rows, if these leave it open.
    int best_by_sums(const NumberNode& node) {
        const Job& job = node.job;
        if (histograms_->suits(job.n)) {
            const PlainNode plain = node_;
            node_.off = off_by_histogram(job.n, node_.factor, histograms_->steps());
            if (node_.off < 1e-6) {  // otherwise it is of no use
                plain_->take(*histograms_, histograms_->at(job), open_columns_, node_);
                const int best = best_by_bounds(node);
                if (best >= 0) return best;
                open_columns_ = *job.alive;
            }
            node_ = plain;
        }
        plain_->count(job, open_columns_, distances_.data());
        return best_by_bounds(node);
    }

    // Leave the columns open that may be the best. Returns the first if it is certain to be so.
    int best_by_bounds(const NumberNode& node) {
        const Job& job = node.job;
        find_bounds(job);
        const bool cut_short = open_columns_.size() < job.alive->size();
        double top = no_score;
        for (const NumberBounds& bounds : bounds_) top = std::max(top, bounds.least);
        const double least = top > no_score ? top - surely_apart(top) : top;
        // What the columns after the first may do.
        double others = cut_short ? most_to_gain() : no_score;
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
        if (problem_.min_gain > 0 && cut_short) open_columns_ = *job.alive;
        if (!first || problem_.min_gain > 0) return -1;
        const uint32_t j = open_columns_.front();
        const auto is_best = [&](double own) {
            return own > no_score && (others == no_score || own >= others - surely_equal(others));
        };
        // The groups of a category are found when it is split.
        if (!records_.is_numeric(j) && is_best(first->least)) return int(j);
        if (is_best(score_first(node, j, *first))) return int(j);
        if (cut_short) open_columns_ = *job.alive;
        return -1;
    }

    // What a split without any impurity in its branches would gain, at most.
    double most_to_gain() const {
        return squares_ * (1 + (node_.all.n + 64) * 0x1p-52) - node_.all.square() + node_.off;
    }

    // Of all open columns, or up to one that leaves nothing to gain.
    void find_bounds(const Job& job) {
        bounds_.assign(open_columns_.size(), NumberBounds());
        if (pool_.shares(work(job))) {
            pool_.each(open_columns_.size(), work(job), [&](size_t i, unsigned member) {
                bounds_[i] = plain_->bounds(job, open_columns_[i], node_, groups_[member]);
            });
            return;
        }
        const double most = most_to_gain();
        double before = no_score;
        for (size_t i = 0; i < open_columns_.size(); ++i) {
            bounds_[i] = plain_->bounds(job, open_columns_[i], node_, groups_[0]);
            if (bounds_[i].least >= most - surely_equal(most) &&
                before < bounds_[i].least - surely_apart(most)) {
                open_columns_.resize(i + 1);
                bounds_.resize(i + 1);
                return;
            }
            before = std::max(before, bounds_[i].most);
        }
    }

    // What a column drops at least, its candidate being set; no score if that is not certain.
    double score_first(const NumberNode& node, uint32_t j, const NumberBounds& bounds) {
        const Job& job = node.job;
        Candidate& candidate = candidates_[j];
        if (!records_.is_numeric(j) || bounds.least == no_score) {
            candidate = scorers_[0].score(node, j);
            return candidate.score > no_score ? moments_.scaled(candidate.drop) : no_score;
        }
        const PlainScorer::Certain found = plain_->certain_threshold(job, j, bounds, node_);
        if (found.least == no_score) return no_score;
        set_threshold(candidate, records_.values(j), found.low, found.high, problem_);
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

    // Two rows are told apart by the first column in which they differ: all such splits are as
    // good as one another. False where they may not be, or where there is more to look at.
    bool split_pair(const Job& job, std::vector<Job>& stack) {
        if (weighted || scale_.poisson || problem_.min_gain > 0 ||
            std::max({problem_.cases_in_leaf, problem_.cases_in_branch, problem_.weight_in_leaf}) >
                1)
            return false;
        const uint8_t* record = records_.first(job);
        for (uint32_t j : *job.alive) {
            uint32_t low, high;
            if (records_.is_list(j)) {
                if (job.n_ranked[records_.slot(j)] != 2) return false;
                const Ranked<double>* entry = records_.ranked(job, records_.slot(j));
                low = entry[0].rank, high = entry[1].rank;
            } else {
                low = records_.code(record, j), high = records_.code(record + records_.size(), j);
                if (low > high) std::swap(low, high);
                if (high == records_.missing_code(j)) return false;
                branch_of_code_[low] = 0;
                branch_of_code_[high] = 1;
            }
            if (low == high) continue;
            made_.clear();
            if (records_.is_numeric(j)) {
                set_threshold(candidates_[j], records_.values(j), low, high, problem_);
                add_sides(j);
            } else {
                made_.add(int32_t(low), width_);
                made_.add(int32_t(high), width_);
            }
            made_.size.assign(2, 1.0);
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
        if constexpr (weighted) {
            const uint8_t* base = records_.first(job);
            for (size_t i = 0; i < n; ++i)
                made_.size[side_of(j, entry[i].rank)] +=
                    records_.weight(base + entry[i].position * records_.size());
        } else {
            const auto* right = std::partition_point(
                entry, entry + n, [&](const Ranked<double>& one) { return !side_of(j, one.rank); });
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

    // Weights and sums of the branches, into made_: those of the one with the most records are
    // what the others leave of the node's, unless some records go nowhere.
    void add_up_children(const Job& job) {
        const size_t n = made_.count();
        size_t most = 0;
        for (size_t b = 1; b < n; ++b)
            if (mover_.rows(b) > mover_.rows(most)) most = b;
        const bool all = mover_.rows(n) == 0;
        made_.weights.assign(n * width_, 0.0);
        differ_.assign(n, Values());
        each_record(job, [&](size_t i, const uint8_t* record) {
            const uint32_t branch = mover_.branch(i);
            if (branch == n) return keep(job, record);
            if (!differ_[branch].several) differ_[branch].add(records_.target(record));
            if (!all || branch != most) add_sum(&made_.weights[branch * width_], record);
            if (problem_.fractions) made_.cases[branch] += records_.share(record);
        });
        mover_.each_part(job, [&](size_t branch, const uint8_t* record, double weight) {
            differ_[branch].add(records_.target(record));
            add_sum(&made_.weights[branch * width_], record, weight);
        });
        if (!all) return;
        const double* whole = weights_of(job.node);
        for (size_t k = 0; k < 1 + scale_.sums.size(); ++k) {
            double left = whole[k];
            for (size_t b = 0; b < n; ++b) left -= made_.weights[b * width_ + k];
            made_.weights[most * width_ + k] = left;
        }
    }

    // A record that goes nowhere, or in parts.
    void keep(const Job& job, const uint8_t* record) {
        if (!problem_.fractions) add_square(weights_of(job.node), record);
    }

    // Children that are not open have their own squares, too.
    void close_children(const Job& job, int64_t first) {
        const size_t n = made_.count();
        each_record(job, [&](size_t i, const uint8_t* record) {
            const uint32_t branch = mover_.branch(i);
            if (branch < n && !children_[branch].n)
                add_square(weights_of(first + int64_t(branch)), record);
        });
        mover_.each_part(job, [&](size_t branch, const uint8_t* record, double weight) {
            if (!children_[branch].n)
                add_square(weights_of(first + int64_t(branch)), record, weight);
        });
    }

    const NumberScale& scale_;
    NodeMoments moments_;
    std::vector<NumberScorer<W>> scorers_;  // one for each thread of the pool
    std::unique_ptr<PlainScorer> plain_;
    std::unique_ptr<Histograms> histograms_;
    std::unique_ptr<SmallSubtrees> subtrees_;

    // Scratch, kept between nodes.
    std::vector<uint32_t> open_columns_;      // that are to be scored
    std::vector<double> distances_;           // of the node's rows, scaled
    PlainNode node_;                          // their number and sum
    double squares_ = 0;                      // the sum of their squares
    std::vector<NumberBounds> bounds_;        // of open columns
    std::vector<std::vector<Plain>> groups_;  // one list for each thread
    std::vector<Values> differ_;              // by branch
};

}  // namespace branchwise
