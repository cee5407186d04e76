// The thresholds of one number at a node: weight goes from right to left in ascending order,
// and between two different numbers the threshold is scored.

#pragma once

#include "records/counts.hpp"

namespace branchwise {

// What the cases of a node come to on a column: known or missing.
template <typename W>
struct Sides {
    W known_total;
    W missing_total;
    double known_cases;
    double missing_cases;
    bool own_branch;
};

template <typename W>
class ThresholdSweep {
  public:
    ThresholdSweep(const Problem& problem, const Impurities& impurities)
        : problem_(problem),
          impurities_(impurities),
          classes_(size_t(problem.n_classes)),
          entropy_(problem.criterion != Criterion::gini),
          left_(classes_) {}

    // `known` are class weights, `whole` the impurity that the two sides share out.
    void begin(const std::vector<W>& known, const Sides<W>& sides, int64_t whole,
               const Scale& scale, const std::vector<double>& values) {
        sides_ = &sides;
        scale_ = &scale;
        values_ = &values;
        fewest_ = std::max(problem_.cases_in_leaf, problem_.cases_in_branch);
        if (problem_.quinlan)
            fewest_ =
                std::max(problem_.cases_in_leaf, fewest_on_a_side(sides.known_cases, problem_));
        n_thresholds_ = 0;
        std::fill(left_.begin(), left_.end(), W(0));
        right_ = known;
        left_total_ = 0;
        left_cases_ = 0;
        left_inner_ = right_inner_ = 0;
        if (entropy_)
            for (size_t c = 0; c < classes_; ++c) right_inner_ += impurities_.x_log2_x(right_[c]);
        whole_ = whole;
        information_ = 0;
        if (problem_.criterion == Criterion::gain_ratio)
            information_ =
                impurities_.x_log2_x(W(scale.total)) - impurities_.x_log2_x(sides.missing_total);
        thresholds_.clear();
    }

    void sweep_list(const Records<W>& records, const RecordJob& job, size_t slot) {
        const Ranked<uint32_t>* entry = records.ranked(job, slot);
        if constexpr (!weighted) {
            if (problem_.criterion == Criterion::gain && impurities_.has_table_for(job.n) &&
                fewest_ < 4e9 && !problem_.quinlan && problem_.weight_in_leaf <= 0)
                return sweep_list_of_ones(entry, job.n_ranked[slot]);
        }
        const uint8_t* base = records.first(job);
        for (size_t i = 0; i + 1 < job.n_ranked[slot]; ++i) {
            if constexpr (weighted) {
                const uint8_t* record = base + entry[i].position * records.size();
                to_left(entry[i].target, records.weight(record));
                left_cases_ += records.share(record);
            } else {
                to_left(entry[i].target, 1);
                left_cases_ += 1;
            }
            if (entry[i].rank != entry[i + 1].rank)
                score_threshold(entry[i].rank, entry[i + 1].rank);
        }
    }

    // The first `n` ranks present are known numbers, in order.
    void sweep_ranks(const ValueCounts<W>& counts, size_t n) {
        for (size_t i = 0; i + 1 < n; ++i) {
            const uint32_t rank = counts.present[i];
            const W* cell = counts.cell(rank);
            for (size_t c = 0; c < classes_; ++c)
                if (cell[c] > 0) to_left(c, cell[c]);
            left_cases_ += counts.cases(rank);
            score_threshold(rank, counts.present[i + 1]);
        }
    }

    // The first of the best thresholds, if there is one.
    void choose(Candidate& candidate) const {
        if (thresholds_.empty()) return;
        const double least = scale_->least(thresholds_.back().score);
        const auto best =
            std::find_if(thresholds_.begin(), thresholds_.end(),
                         [&](const Threshold& threshold) { return threshold.score >= least; });
        candidate.score = best->score;
        candidate.drop = best->drop;
        if (problem_.quinlan) {
            // What it takes to say which of the thresholds it is.
            candidate.drop -= impurities_.log2(double(n_thresholds_));
            if (candidate.drop <= impurities_.noise(scale_->total)) {
                candidate.drop = -1;
                candidate.score = no_score;
                return;
            }
            candidate.score = scale_->score(candidate.drop, best->information);
        }
        set_threshold(candidate, *values_, best->rank, best->next, problem_);
    }

  private:
    static constexpr bool weighted = Records<W>::weighted;

    struct Threshold {
        double score;
        int64_t drop;
        int64_t information;
        uint32_t rank;  // the last on the left
        uint32_t next;  // the first on the right
    };

    void to_left(size_t c, W w) {
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
        if (problem_.quinlan && !((*values_)[rank] + apart < (*values_)[next])) return;
        ++n_thresholds_;
        const W right_total = sides_->known_total - left_total_;
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
        const double score =
            problem_.quinlan ? scale_->gain(drop) : scale_->score(drop, information);
        if ((thresholds_.empty() || score > thresholds_.back().score) &&
            (problem_.quinlan || scale_->enough(drop)))
            thresholds_.push_back({score, drop, information, rank, next});
    }

    // The common case in a tight loop: rows that count as one, scored by gain.
    void sweep_list_of_ones(const Ranked<uint32_t>* entry, size_t n) {
        const int64_t* table = impurities_.table();
        W* left = left_.data();
        W* right = right_.data();
        const auto fewest = uint32_t(std::ceil(fewest_));
        int64_t inner = right_inner_;
        int64_t most = -1;
        for (uint32_t i = 0; i + 1 < n; ++i) {
            const uint32_t c = entry[i].target;
            inner += table[left[c] + 1] - table[left[c]] + table[right[c] - 1] - table[right[c]];
            ++left[c];
            --right[c];
            if (entry[i].rank == entry[i + 1].rank) continue;
            const auto n_left = i + 1;
            const auto n_right = uint32_t(n) - n_left;
            const int64_t drop =
                std::max<int64_t>(whole_ - (table[n_left] + table[n_right] - inner), 0);
            if (drop <= most || n_left < fewest || n_right < fewest) continue;
            most = drop;
            offer(drop, 0, entry[i].rank, entry[i + 1].rank);
        }
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const size_t classes_;
    const bool entropy_;
    const Sides<W>* sides_ = nullptr;
    const Scale* scale_ = nullptr;
    const std::vector<double>* values_ = nullptr;
    double fewest_ = 0;
    size_t n_thresholds_ = 0;
    std::vector<W> left_, right_;
    W left_total_ = 0;
    double left_cases_ = 0;
    int64_t left_inner_ = 0, right_inner_ = 0, whole_ = 0, information_ = 0;
    std::vector<Threshold> thresholds_;
};

}  // namespace branchwise
