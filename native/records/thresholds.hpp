// The thresholds of one number at a node: weight goes from right to left in ascending order,
// and between two different numbers the threshold is scored.

#pragma once

#include "core/random_splits.hpp"
#include "records/counts.hpp"
#include "thresholds/threshold_search.hpp"

namespace branchwise {

// What the cases of a node come to on a column: known or missing.
template <typename Weight>
struct Sides {
    Weight known_total;
    Weight missing_total;
    double known_cases;
    double missing_cases;
    bool own_branch;
};

// List is what the sorted lists of a node are read as.
template <typename W, typename List>
class ThresholdSweep {
  public:
    using Weight = typename Records<W>::Weight;

    ThresholdSweep(const Problem& problem, const Impurities& impurities, const Records<W>& records)
        : problem_(problem),
          impurities_(impurities),
          classes_(size_t(problem.n_classes)),
          entropy_(problem.criterion != Criterion::gini),
          left_(classes_),
          sums_(records, classes_),
          search_(problem, impurities) {}

    // `known` are class weights, `whole` the impurity that the two sides share out.
    void begin(const std::vector<Weight>& known, const Sides<Weight>& sides, int64_t whole,
               const Scale& scale, const DistinctNumbers& values) {
        sides_ = &sides;
        scale_ = &scale;
        values_ = &values;
        fewest_ = std::max(problem_.cases_in_leaf, problem_.cases_in_branch);
        if (problem_.quinlan_thresholds)
            fewest_ =
                std::max(problem_.cases_in_leaf, fewest_on_a_side(sides.known_cases, problem_));
        known_ = &known;
        whole_ = whole;
        information_ = 0;
        if (problem_.criterion == Criterion::gain_ratio)
            information_ = impurities_.x_log2_x(Weight(scale.total)) -
                           impurities_.x_log2_x(sides.missing_total);
        thresholds_.clear();
        start_over();
    }

    // A list, without the thresholds that cannot be the best. `least` is the least score that is
    // of any use; `classes` are those of the node.
    void sweep_list(const Records<W>& records, const List& list, size_t column,
                    const std::vector<uint32_t>& classes, double least) {
        if (!searches()) return sweep_whole_list(records, list, all);
        if (!search_list(records, list, column, classes, least)) return;
        n_thresholds_ = search_.n_thresholds();
        for (size_t k = 0; k < search_.contenders().size(); ++k) {
            set_left(records, classes, search_.left(k));
            const size_t at = search_.contenders()[k].index;
            score_sides(list.rank(at), list.rank(at + 1));
        }
        find_first([&] { sweep_whole_list(records, list, 1); });
    }

    // A list, roughly: returns whether it has a threshold that may be chosen. If it is sure which
    // one, `candidate` gets it; `unsure` tells whether it may be none.
    bool estimate_list(const Records<W>& records, const List& list, size_t column,
                       const std::vector<uint32_t>& classes, ScoreEstimate& estimate,
                       Candidate& candidate, bool& unsure) {
        if (!search_list(records, list, column, classes, no_score)) return false;
        const LogBounds& logs = LogBounds::shared();
        const double information = double(information_) * scale_->unit;
        // What it takes to say which of the thresholds it is.
        const double choice =
            problem_.quinlan_thresholds
                ? double(impurities_.log2(double(search_.n_thresholds()))) * scale_->unit
                : 0.0;
        const double noise = double(impurities_.noise(scale_->total)) * scale_->unit;
        bool any = false;
        for (size_t k = 0; k < search_.contenders().size(); ++k) {
            double left = 0;
            for (size_t c = 0; c < classes.size(); ++c)
                left += double(records.weight_of(search_.left(k)[c]));
            const double right = double(sides_->known_total) - left;
            const double drop = search_.contenders()[k].drop - choice;
            const double off = search_.off() + 4 * LogBounds::slack * scale_->total;
            if (problem_.quinlan_thresholds && drop - off <= noise) unsure = true;
            any = any || !problem_.quinlan_thresholds || drop + off > noise;
            estimate.add(ScoreEstimate::rough(
                drop, information - logs.x_log2_x(left) - logs.x_log2_x(right), off, *scale_));
        }
        if (!any) {  // none takes away enough, for sure
            unsure = false;
            estimate = ScoreEstimate();
            return true;
        }
        if (search_.contenders().size() == 1) {
            const size_t at = search_.contenders()[0].index;
            candidate.set_threshold(list.rank(at), list.rank(at + 1));
        }
        return true;
    }
    bool sure_which() const { return search_.contenders().size() == 1; }
    bool searches() const { return search_.serves(scale_->total); }

    // Whether there was a threshold that may be chosen, if not the best.
    bool any() const { return n_thresholds_ > 0; }
    size_t n_thresholds() const { return n_thresholds_; }

    // Put the entries of a list up to the drawn threshold on the left; returns how many.
    size_t take_left_of_list(const Records<W>& records, const List& list,
                             const std::vector<uint32_t>& classes, const DrawnThreshold& drawn) {
        const size_t n_left = first_right(list, [&](uint32_t rank) { return drawn.is_left(rank); });
        sums_.add_up(list, 0, n_left, classes);
        set_left(records, classes, sums_.steps.data());
        left_cases_ = sums_.cases;
        return n_left;
    }

    // The same of ranks that are present.
    const uint32_t* take_left_of_ranks(const ValueCounts<W>& counts, const DrawnThreshold& drawn) {
        const uint32_t* rank = counts.present.data();
        for (; drawn.is_left(*rank); ++rank) {
            const Weight* cell = counts.cell(*rank);
            for (size_t c = 0; c < classes_; ++c) {
                left_[c] += cell[c];
                right_[c] -= cell[c];
            }
            left_total_ += counts.size(*rank);
            left_cases_ += counts.cases(*rank);
        }
        count_inner();
        return rank;
    }

    // The threshold between two ranks, if it has enough on both sides.
    void score_at(uint32_t rank, uint32_t next) { score_threshold(rank, next); }

    // The first `n` ranks present are known numbers, in order.
    void sweep_ranks(const ValueCounts<W>& counts, size_t n) {
        count_inner();
        for (size_t i = 0; i + 1 < n; ++i) {
            const uint32_t rank = counts.present[i];
            const Weight* cell = counts.cell(rank);
            for (size_t c = 0; c < classes_; ++c)
                if (cell[c] > 0) to_left(c, cell[c]);
            left_cases_ += counts.cases(rank);
            score_threshold(rank, counts.present[i + 1]);
        }
    }

    // The first of the best thresholds, if there is one.
    void choose(Candidate& candidate) const {
        if (thresholds_.empty()) {
            if (counts_first()) candidate.drop = first_drop_;
            return;
        }
        const double least = scale_->least(thresholds_.back().score);
        const auto best =
            std::find_if(thresholds_.begin(), thresholds_.end(),
                         [&](const Threshold& threshold) { return threshold.score >= least; });
        candidate.score = best->score;
        candidate.drop = best->drop;
        candidate.missing_to = best->missing_to;
        if (problem_.quinlan_thresholds) {
            // What it takes to say which of the thresholds it is.
            candidate.drop -= impurities_.log2(double(n_thresholds_));
            if (candidate.drop <= impurities_.noise(scale_->total)) {
                candidate.drop = -1;
                candidate.score = no_score;
                return;
            }
            candidate.possible = true;
            candidate.score = scale_->score(candidate.drop, best->information);
            if (!problem_.average_gain && !scale_->enough(candidate.drop))
                candidate.score = no_score;
        }
        candidate.set_threshold(best->rank, best->next);
    }

  protected:
    using Steps = typename Records<W>::Steps;

    struct Threshold {
        double score;
        int64_t drop;
        int64_t information;
        uint32_t rank;  // the last on the left
        uint32_t next;  // the first on the right
        int32_t missing_to;
    };

    void to_left(size_t c, Weight w) {
        if (entropy_) {
            left_inner_ -= impurities_.x_log2_x(left_[c]);
            right_inner_ -= impurities_.x_log2_x(right_[c]);
        }
        left_[c] += w;
        right_[c] -= w;
        if (entropy_) {
            left_inner_ += impurities_.x_log2_x(left_[c]);
            right_inner_ += impurities_.x_log2_x(right_[c]);
        }
        left_total_ += w;
    }

    void score_threshold(uint32_t rank, uint32_t next) {
        const double left_cases = cases_for_bars(problem_, left_total_, left_cases_);
        if (std::min(left_cases, sides_->known_cases - left_cases) < fewest_) return;
        const auto lighter = std::min(left_total_, sides_->known_total - left_total_);
        if (double(lighter) < problem_.weight_in_leaf) return;
        if (problem_.quinlan_thresholds && !((*values_)[rank] + apart < (*values_)[next])) return;
        ++n_thresholds_;
        score_sides(rank, next);
    }

    void score_sides(uint32_t rank, uint32_t next) {
        const Weight right_total = sides_->known_total - left_total_;
        int64_t in_branches;
        if (entropy_) {
            in_branches = (impurities_.x_log2_x(left_total_) - left_inner_) +
                          (impurities_.x_log2_x(right_total) - right_inner_);
        } else {
            in_branches = impurities_.impurity(problem_.criterion, left_.data(), problem_.n_classes,
                                               left_total_) +
                          impurities_.impurity(problem_.criterion, right_.data(),
                                               problem_.n_classes, right_total);
        }
        const int64_t drop = std::max<int64_t>(whole_ - in_branches, 0);
        int64_t information = 0;
        if (problem_.criterion == Criterion::gain_ratio)
            information = information_ - impurities_.x_log2_x(left_total_) -
                          impurities_.x_log2_x(right_total);
        offer(drop, information, rank, next);
    }

    // Keep a threshold that is better than all before it: the first of the best is one of these.
    void offer(int64_t drop, int64_t information, uint32_t rank, uint32_t next) {
        // C4.5 chooses among thresholds by gain, and only then between columns by ratio.
        if (first_drop_ < 0) first_drop_ = drop;
        const double score =
            problem_.quinlan_thresholds ? scale_->gain(drop) : scale_->score(drop, information);
        if ((thresholds_.empty() || score > thresholds_.back().score) &&
            (problem_.quinlan_thresholds || scale_->enough(drop)))
            thresholds_.push_back({score, drop, information, rank, next, missing_to_});
    }

    // Where no threshold gains enough, the first of them counts for the average gain. `sweep`
    // scores no more than that.
    template <typename Sweep>
    void find_first(const Sweep& sweep) {
        if (!counts_first() || !thresholds_.empty()) return;
        const size_t n_thresholds = n_thresholds_;
        start_over();
        sweep();
        n_thresholds_ = n_thresholds;
    }
    bool counts_first() const {
        return problem_.average_gain && !problem_.quinlan_thresholds && problem_.min_gain > 0;
    }

    // All weight is on the right.
    void start_over() {
        n_thresholds_ = 0;
        first_drop_ = -1;
        std::fill(left_.begin(), left_.end(), Weight(0));
        right_ = *known_;
        left_total_ = 0;
        left_cases_ = 0;
        left_inner_ = right_inner_ = 0;
    }

    void count_inner() {
        left_inner_ = right_inner_ = 0;
        if (!entropy_) return;
        for (size_t c = 0; c < classes_; ++c) {
            left_inner_ += impurities_.x_log2_x(left_[c]);
            right_inner_ += impurities_.x_log2_x(right_[c]);
        }
    }

    // `left` are the weights of these classes.
    void set_left(const Records<W>& records, const std::vector<uint32_t>& classes,
                  const typename Records<W>::Steps* left) {
        left_total_ = 0;
        for (size_t k = 0; k < classes.size(); ++k) {
            const size_t c = classes[k];
            left_[c] = records.weight_of(left[k]);
            right_[c] = (*known_)[c] - left_[c];
            left_total_ += left_[c];
        }
        count_inner();
    }

    static constexpr size_t all = ~size_t(0);

    // Up to so many thresholds.
    void sweep_whole_list(const Records<W>& records, const List& list, size_t most) {
        count_inner();
        for (size_t i = 0; i + 1 < list.size() && n_thresholds_ < most; ++i) {
            to_left(list.label(i), records.weight_of(list.steps(i)));
            left_cases_ += records.share_of(list.share_steps(records, i));
            if (list.differs(i)) score_threshold(list.rank(i), list.rank(i + 1));
        }
    }

    // Missing cases that are on a side of every threshold.
    struct Joined {
        const std::vector<Steps>* on_left = nullptr;  // their weights by class
        double left_weight = 0, left_cases = 0, right_weight = 0, right_cases = 0;
    };

    // The thresholds of a list that may be the best, into search_. Returns whether there is any
    // threshold with enough on both sides.
    bool search_list(const Records<W>& records, const List& list, size_t column,
                     const std::vector<uint32_t>& classes, double least,
                     const Joined& joined = {}) {
        const size_t n = list.size();
        // Entries from either end until they are enough for a side.
        const auto enough_after = [&](auto at, double more_weight, double more_cases) {
            typename Records<W>::Steps weight = 0, cases = 0;
            for (size_t i = 0; i < n; ++i) {
                weight += list.steps(at(i));
                cases += list.share_steps(records, at(i));
                const double size = double(records.weight_of(weight)) + more_weight;
                if (cases_for_bars(problem_, size, records.share_of(cases) + more_cases) >=
                        fewest_ &&
                    size >= problem_.weight_in_leaf)
                    return i + 1;
            }
            return n;
        };
        const size_t on_left =
            enough_after([](size_t i) { return i; }, joined.left_weight, joined.left_cases);
        const size_t on_right = enough_after([&](size_t i) { return n - 1 - i; },
                                             joined.right_weight, joined.right_cases);
        if (on_left + on_right > n) return false;
        steps_.resize(classes_);
        for (uint32_t c : classes) steps_[c] = records.steps_of_weight((*known_)[c]);
        const bool close = problem_.quinlan_thresholds && !records.all_apart(column);
        search_.search(list, steps_, classes, on_left - 1, n - on_right - 1,
                       {double(whole_) * scale_->unit, double(information_) * scale_->unit},
                       *scale_, close ? values_ : nullptr, least, joined.on_left);
        return search_.n_thresholds() > 0;
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const size_t classes_;
    const bool entropy_;
    const Sides<Weight>* sides_ = nullptr;
    const Scale* scale_ = nullptr;
    const DistinctNumbers* values_ = nullptr;
    double fewest_ = 0;
    size_t n_thresholds_ = 0;
    const std::vector<Weight>* known_ = nullptr;
    std::vector<Weight> left_, right_;
    std::vector<typename Records<W>::Steps> steps_;  // of known weights, by class
    ListSums<W> sums_;
    ThresholdSearch<W, List> search_;
    Weight left_total_ = 0;
    double left_cases_ = 0;
    int64_t left_inner_ = 0, right_inner_ = 0, whole_ = 0, information_ = 0;
    int64_t first_drop_ = -1;         // of the first threshold
    int32_t missing_to_ = stop_here;  // of the threshold that is being scored
    std::vector<Threshold> thresholds_;
};

}  // namespace branchwise
