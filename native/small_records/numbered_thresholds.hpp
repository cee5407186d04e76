// The thresholds of a number at a node of numbered records, where cases are fractional.

#pragma once

#include "small_records/numbered_records.hpp"
#include "thresholds/threshold_search.hpp"

namespace branchwise {

// The known numbers of a node in ascending order, as ThresholdSearch reads them.
struct NumberedList {
    static constexpr size_t most = NumberedOrder::most;

    const uint32_t* ranks = nullptr;
    const uint8_t* labels = nullptr;
    const int64_t* weights = nullptr;

    uint32_t rank(size_t i) const { return ranks[i]; }
    uint32_t label(size_t i) const { return labels[i]; }
    int64_t steps(size_t i) const { return weights[i]; }
    bool differs(size_t i) const { return ranks[i] != ranks[i + 1]; }
    bool is_from(size_t i, uint32_t lowest) const { return labels[i] >= lowest; }
    static constexpr bool counts = false;
};

// A node of a subtree; classes have local numbers.
struct NumberedNode {
    const Scale& scale;
    const std::vector<uint32_t>& classes;  // that it has
    const std::vector<int64_t>& totals;    // their weights in steps
    int64_t impurity;
    int64_t size_impurity;
};

class NumberedThresholds {
    using Bits = NumberedOrder::Bits;

  public:
    NumberedThresholds(const Problem& problem, const Impurities& impurities)
        : problem_(problem),
          impurities_(impurities),
          search_(problem, impurities),
          known_(size_t(problem.n_classes)),
          left_(size_t(problem.n_classes)),
          right_(size_t(problem.n_classes)) {
        for (size_t n = 1; n < NumberedList::most; ++n)
            choice_[n] = problem.quinlan_thresholds ? impurities.log2(double(n)) : 0;
    }

    // Put the rows of a node that have a number in its order; false if they have the same. What
    // rows weigh is in `steps`, their classes in `class_of`.
    bool load(const NumberedOrder& ordered, Bits rows, const int64_t* steps,
              const uint8_t* class_of) {
        n_ = 0;
        for (Bits places = ordered.in_order(rows); places; places &= places - 1) {
            const auto place = size_t(__builtin_ctzll(places));
            const uint8_t row = ordered.row[place];
            ranks_[n_] = ordered.rank[place];
            labels_[n_] = class_of[row];
            steps_[n_++] = steps[row];
        }
        return n_ > 1 && ranks_[0] != ranks_[n_ - 1];
    }

    // The score of the numbers that were loaded, roughly. `missing` are rows without one, `values`
    // the numbers of the column if some are too close for a threshold. False if they must be
    // scored exactly; `sure` tells whether it is known which threshold it is.
    bool estimate(const NumberedNode& node, Bits missing, const int64_t* steps,
                  const uint8_t* class_of, const DistinctNumbers* values, ScoreEstimate& estimate,
                  Candidate& candidate, uint8_t& sure) {
        sure = true;
        if (!search(node, missing, steps, class_of, values)) return true;
        const Scale& scale = node.scale;
        const bool ratio = problem_.criterion == Criterion::gain_ratio;
        const double information = information_of(node);
        const double choice = double(choice_[search_.n_thresholds()]) * scale.unit;
        const double noise = double(Impurities::noise_of(node.size_impurity)) * scale.unit;
        const double off = search_.off() + 4 * LogBounds::slack * scale.total;
        bool any = false, unsure = false;
        for (size_t k = 0; k < search_.contenders().size(); ++k) {
            const double left = set_left(node, k);
            const double drop = search_.contenders()[k].drop - choice;
            unsure = unsure || (problem_.quinlan_thresholds && drop - off <= noise);
            any = any || !problem_.quinlan_thresholds || drop + off > noise;
            estimate.add(ScoreEstimate::rough(
                drop,
                ratio ? information - logs_.x_log2_x(left) - logs_.x_log2_x(known_total_ - left)
                      : 0.0,
                off, scale));
        }
        if (!any) {  // none takes away enough, for sure
            estimate = ScoreEstimate();
            return true;
        }
        set_threshold(candidate, 0);
        sure = search_.contenders().size() == 1;
        return !unsure;
    }

    // The same exactly.
    Candidate score(const NumberedNode& node, Bits missing, const int64_t* steps,
                    const uint8_t* class_of, const DistinctNumbers* values) {
        Candidate candidate;
        if (!search(node, missing, steps, class_of, values)) return candidate;
        if (search_.contenders().empty()) return candidate;
        const size_t n = node.totals.size();
        const Scale& scale = node.scale;
        std::fill(right_.begin(), right_.end(), 0.0);
        std::fill(left_.begin(), left_.end(), 0.0);
        for (uint32_t c : node.classes) right_[c] = weight_of(known_[c]);
        const int64_t whole = impurity(right_, n, known_total_);
        scored_.clear();
        double top = no_score;
        for (size_t k = 0; k < search_.contenders().size(); ++k) {
            const double left = set_left(node, k), right = known_total_ - left;
            for (uint32_t c : node.classes) right_[c] = weight_of(known_[c]) - left_[c];
            const int64_t drop =
                std::max<int64_t>(whole - impurity(left_, n, left) - impurity(right_, n, right), 0);
            const double score = problem_.thresholds_by_ratio()
                                     ? scale.score(drop, exact_information(node, left))
                                     : scale.gain(drop);
            scored_.push_back({score, drop, left});
            top = std::max(top, score);
        }
        size_t best = 0;
        while (scored_[best].score < scale.least(top)) ++best;
        candidate.drop = scored_[best].drop - choice_[search_.n_thresholds()];
        if (problem_.quinlan_thresholds &&
            candidate.drop <= Impurities::noise_of(node.size_impurity)) {
            candidate.drop = -1;
            return candidate;
        }
        candidate.score = scale.score(candidate.drop, exact_information(node, scored_[best].left));
        set_threshold(candidate, best);
        return candidate;
    }

  private:
    // A threshold: what it is chosen by, what it takes away, and the weight on its left.
    struct Scored {
        double score;
        int64_t drop;
        double left;
    };

    double weight_of(int64_t steps) const { return double(steps) * problem_.weight_step; }

    int64_t impurity(const std::vector<double>& weights, size_t n, double total) const {
        return impurities_.impurity(problem_.criterion, weights.data(), int(n), total);
    }

    // Split information of a threshold with so much on its left.
    int64_t exact_information(const NumberedNode& node, double left) const {
        if (problem_.criterion != Criterion::gain_ratio) return 0;
        return node.size_impurity - impurities_.x_log2_x(missing_total_) -
               impurities_.x_log2_x(left) - impurities_.x_log2_x(known_total_ - left);
    }

    // The same roughly, without the terms of both sides.
    double information_of(const NumberedNode& node) const {
        if (problem_.criterion != Criterion::gain_ratio) return 0;
        return double(node.size_impurity) * node.scale.unit - logs_.x_log2_x(missing_total_);
    }

    void set_threshold(Candidate& candidate, size_t contender) const {
        const size_t at = search_.contenders()[contender].index;
        candidate.set_threshold(ranks_[at], ranks_[at + 1]);
    }

    // What is on the left of a threshold, by class; returns all of it.
    double set_left(const NumberedNode& node, size_t contender) {
        const int64_t* const steps = search_.left(contender);
        double total = 0;
        for (size_t k = 0; k < node.classes.size(); ++k) {
            left_[node.classes[k]] = weight_of(steps[k]);
            total += left_[node.classes[k]];
        }
        return total;
    }

    // The thresholds that may be the best, into search_; false if there is none at all.
    bool search(const NumberedNode& node, Bits missing, const int64_t* steps,
                const uint8_t* class_of, const DistinctNumbers* values) {
        known_ = node.totals;
        for (; missing; missing &= missing - 1) {
            const auto row = size_t(__builtin_ctzll(missing));
            known_[class_of[row]] -= steps[row];
        }
        known_total_ = 0;
        for (uint32_t c : node.classes) known_total_ += weight_of(known_[c]);
        missing_total_ = node.scale.total - known_total_;
        double fewest = std::max(problem_.cases_in_leaf, problem_.cases_in_branch);
        if (problem_.quinlan_thresholds)
            fewest = std::max(problem_.cases_in_leaf, fewest_on_a_side(known_total_, problem_));
        const size_t on_left = enough_from(fewest, [](size_t i) { return i; });
        const size_t on_right = enough_from(fewest, [&](size_t i) { return n_ - 1 - i; });
        if (on_left + on_right > n_) return false;
        search_.search({ranks_, labels_, steps_}, known_, node.classes, on_left - 1,
                       n_ - on_right - 1, {whole_of(node), information_of(node)}, node.scale,
                       values, no_score);
        return search_.n_thresholds() > 0;
    }

    // Impurity of the known numbers, roughly.
    double whole_of(const NumberedNode& node) const {
        if (!(missing_total_ > 0)) return double(node.impurity) * node.scale.unit;
        double impurity = logs_.x_log2_x(known_total_);
        for (uint32_t c : node.classes) impurity -= logs_.x_log2_x(weight_of(known_[c]));
        return impurity;
    }

    // Entries from either end until they are enough for a side.
    template <typename At>
    size_t enough_from(double fewest, const At& at) const {
        int64_t steps = 0;
        for (size_t i = 0; i < n_; ++i) {
            steps += steps_[at(i)];
            if (weight_of(steps) >= fewest) return i + 1;
        }
        return n_;
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const LogBounds& logs_ = LogBounds::shared();
    int64_t choice_[NumberedList::most];  // what it takes to say which of so many thresholds it is

    // Of the node.
    uint32_t ranks_[NumberedList::most];
    uint8_t labels_[NumberedList::most];
    int64_t steps_[NumberedList::most];
    size_t n_ = 0;
    double known_total_ = 0, missing_total_ = 0;

    // Scratch.
    ThresholdSearch<double, NumberedList> search_;
    std::vector<int64_t> known_;
    std::vector<double> left_, right_;
    std::vector<Scored> scored_;
};

}  // namespace branchwise
