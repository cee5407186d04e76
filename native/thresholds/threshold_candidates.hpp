// Thresholds of a list that may be the best, by what is known of all so far.

#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "core/choose.hpp"

namespace branchwise {

// What a threshold takes away, roughly, and its split information if ratios are compared.
struct Worth {
    double drop;
    double information;
};

// What thresholds are held against. One whose score is less than `floor` is of no use; `off` is
// how far what is told of one is off at most.
struct ThresholdBar {
    const Scale& scale;
    double floor;
    double off;
};

// `ratio`: scores are ratios, otherwise drops.
template <typename Steps>
class ThresholdCandidates {
  public:
    // A threshold after an entry of the list, what it takes away, and the most it is good for.
    struct Contender {
        size_t index;
        double drop;
        double most;
    };

    template <bool ratio>
    void begin(const ThresholdBar& bar, size_t n_classes) {
        const Scale& scale = bar.scale;
        width_ = n_classes;
        unit_ = scale.unit;
        off_ = bar.off;
        resolution_ = scale.resolution * (ratio ? 1.0 : scale.total);
        floor_ = ratio ? bar.floor : bar.floor * scale.total - off_;
        keep_ = floor_;
        best_ = -std::numeric_limits<double>::infinity();
        enough_ = hopeless_ = best_;
        if (ratio && scale.min_gain > 0) {
            enough_ = scale.min_gain * scale.total;
            hopeless_ = enough_ * (1 - tie) - 2 * scale.resolution * scale.total;
        }
        contenders_.clear();
        lefts_.clear();
        n_compact_ = 0;
    }

    // The most that a threshold is good for. Drops are told as they are, with a margin where it
    // matters; a ratio is off by more the less information there is.
    template <bool ratio>
    double most(const Worth& worth) const {
        if constexpr (ratio) {
            const double least = worth.information - 2 * off_;
            return least > unit_ ? std::max(worth.drop + 2 * off_, 0.0) / least
                                 : std::numeric_limits<double>::infinity();
        }
        return worth.drop;
    }

    // Thresholds that take away less than this are of no use, but for ties.
    void raise_floor(double drop) {
        floor_ = std::max(floor_, with_ties(drop));
        keep_ = std::max(keep_, floor_);
    }

    // Whether a threshold may be of use that is no better than what is told of others.
    template <bool ratio>
    bool may_be_reached(double most) const {
        return most + (ratio ? 0.0 : 4 * off_) >= keep_;
    }

    // Whether a threshold takes away more than any so far.
    bool is_better(const Worth& worth) const { return worth.drop > best_; }

    // A threshold: others that are worse by more than ties allow are of no use. By ratio, one that
    // may gain too little tells nothing.
    template <bool ratio>
    void learn(const Worth& worth) {
        if constexpr (ratio) {
            const double drop = worth.drop - 2 * off_;
            const double information = std::max(worth.information + 2 * off_, unit_);
            if (drop < enough_ || !(drop > best_ * information)) return;
            best_ = std::max(drop, 0.0) / information;
            keep_ = std::max(floor_, best_ - resolution_ - best_ * 2 * tie);
        } else if (worth.drop > best_) {
            best_ = worth.drop;
            keep_ = std::max(floor_, with_ties(best_));
        }
    }

    // `left` are the class weights on its left.
    template <bool ratio>
    void offer(size_t index, const Worth& worth, const Steps* left) {
        const double most = this->template most<ratio>(worth);
        if (most < keep_ || (ratio && worth.drop + 2 * off_ < hopeless_)) return;
        learn<ratio>(worth);
        contenders_.push_back({index, worth.drop, most});
        lefts_.insert(lefts_.end(), left, left + width_);
        if (contenders_.size() > 2 * n_compact_ + 16) compact();
    }

    // Leave those that may be the best by now.
    void compact() {
        size_t n = 0;
        for (size_t k = 0; k < contenders_.size(); ++k) {
            if (contenders_[k].most < keep_) continue;
            contenders_[n] = contenders_[k];
            std::copy_n(&lefts_[k * width_], width_, &lefts_[n * width_]);
            ++n;
        }
        contenders_.resize(n);
        lefts_.resize(n * width_);
        n_compact_ = n;
    }

    // In the order in which they were offered.
    const std::vector<Contender>& all() const { return contenders_; }
    const Steps* left(size_t contender) const { return &lefts_[contender * width_]; }
    double off() const { return off_; }

  private:
    // The least drop that may be as good as this one.
    double with_ties(double drop) const {
        return drop - 2 * off_ - resolution_ - (drop + off_) * 2 * tie;
    }

    size_t width_ = 0;  // classes
    double unit_ = 0, off_ = 0, resolution_ = 0;
    double floor_ = 0, keep_ = 0, best_ = 0;
    double enough_ = 0, hopeless_ = 0;  // what thresholds must take away, and what is too little
    size_t n_compact_ = 0;
    std::vector<Contender> contenders_;
    std::vector<Steps> lefts_;
};

}  // namespace branchwise
