// Which thresholds of a column may be the best at one node, from all its cases at once; only these
// are scored by the reference. Values between two of them are counted together.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/score_bounds.hpp"
#include "records/node_cases.hpp"

namespace branchwise {

// What thresholds must leave on each side, and how they are compared.
struct ThresholdRules {
    bool gini = false;
    bool by_ratio = false;
    bool weights_are_cases = false;
    double fewest_cases = 0;
    double fewest_weight = 0;
    double whole = 0;        // weighted impurity that the two sides share out
    double total = 0;        // weight of the node
    double information = 0;  // split information without the terms of the two sides
    double unit = 0;         // of weighted impurities
    double resolution = 0;   // of scores
    double min_gain = 0;
    const double* values = nullptr;   // by code, where neighbours must differ by a minimum
    const double* joining = nullptr;  // by class, missing cases that are tried on either side
    double joining_cases = 0;
    const int64_t* table = nullptr;  // x log2 x of whole weights in units, or null
    double step = 0;                 // the smallest weight that there may be
};

// Terms of class weights that are added up for a side, and what a side keeps of its purity: a
// threshold takes away the more, the more both sides keep.
struct TableTerms {
    using Sum = int64_t;  // so that sums are exact
    const int64_t* table;
    double unit;
    Sum term(double weight) const { return table[size_t(weight)]; }
    double kept(Sum sum, double total) const { return double(sum - term(total)) * unit; }
    double size(double total) const { return double(term(total)) * unit; }
};

struct LogTerms {
    using Sum = double;
    const LogBounds& logs = LogBounds::shared();
    Sum term(double weight) const { return weight > 0 ? logs.x_log2_x(weight) : 0.0; }
    double kept(Sum sum, double total) const { return sum - term(total); }
    double size(double total) const { return term(total); }
};

struct SquareTerms {
    using Sum = double;
    Sum term(double weight) const { return weight * weight; }
    double kept(Sum sum, double total) const { return total > 0 ? sum / total - total : 0.0; }
    double size(double) const { return 0; }
};

// The cases on one side of a threshold. `adds_up`: the sum of terms follows every case; otherwise
// it is made anew, where rounding errors of many steps would be too large.
template <typename Terms, bool adds_up>
class Side {
  public:
    Side(const Terms& terms, const std::vector<double>& weights, double cases)
        : terms_(terms), weights_(weights), cases_(cases) {
        for (double weight : weights_) {
            total_ += weight;
            of_class_.push_back(terms_.term(weight));
            sum_ += of_class_.back();
        }
    }

    void add(size_t label, double weight, double share) {
        weights_[label] += weight;
        total_ += weight;
        cases_ += share;
        if (!adds_up) return;
        const typename Terms::Sum term = terms_.term(weights_[label]);
        sum_ += term - of_class_[label];
        of_class_[label] = term;
    }

    double total() const { return total_; }
    double cases(bool weights_are_cases) const { return weights_are_cases ? total_ : cases_; }
    double kept() const {
        if (adds_up) return terms_.kept(sum_, total_);
        typename Terms::Sum sum = 0;
        for (double weight : weights_) sum += terms_.term(weight);
        return terms_.kept(sum, total_);
    }

  private:
    const Terms& terms_;
    std::vector<double> weights_;
    std::vector<typename Terms::Sum> of_class_;
    typename Terms::Sum sum_ = 0;
    double total_ = 0, cases_ = 0;
};

template <typename Label>
class NodeThresholds {
  public:
    NodeThresholds(const NodeCases& given, const SortedCases<Label>& sorted,
                   const ThresholdRules& rules)
        : given_(given),
          sorted_(sorted),
          rules_(rules),
          n_known_(sorted.n_known()),
          contenders_(rules.resolution * (rules.by_ratio ? 1.0 : rules.total)) {}

    Segments find() {
        known_.assign(given_.n_classes, 0.0);
        known_cases_ = add_up(0, n_known_, known_.data());
        const auto n_terms = double(2 * given_.n_classes + 16);
        const double total = rules_.total;
        off_ = n_terms * (rules_.unit + 1e-15 * (std::fabs(rules_.whole) + total));
        if (rules_.gini) {
            // Of whole weights the squares add up exactly.
            const bool exact = !given_.weights && n_known_ < (size_t(1) << 26);
            exact ? search<true>(SquareTerms()) : search<false>(SquareTerms());
        } else if (rules_.table) {
            off_ += 1e-14 * total * std::log2(total + 2);
            search<true>(TableTerms{rules_.table, rules_.unit});
        } else {
            const double logs = std::fabs(std::log2(total)) + std::fabs(std::log2(rules_.step));
            off_ += 8 * LogBounds::slack * total + 1e-15 * double(n_known_) * total * (logs + 2);
            search<true>(LogTerms());
        }
        return segments();
    }

  private:
    double weight(size_t i) const { return given_.weights ? sorted_.weights[i] : 1.0; }
    double share(size_t i) const { return given_.cases ? sorted_.cases[i] : 1.0; }

    // Adds the weights of some cases to those by class; returns how many cases they are.
    double add_up(size_t from, size_t to, double* weights) const {
        if (!given_.weights && given_.n_classes <= most_classes) {
            add_few_classes(from, to, weights);
        } else if (!given_.weights) {
            std::vector<uint32_t> counts(given_.n_classes);
            for (size_t i = from; i < to; ++i) ++counts[sorted_.labels[i]];
            for (size_t c = 0; c < counts.size(); ++c) weights[c] += double(counts[c]);
        } else {
            for (size_t i = from; i < to; ++i) weights[sorted_.labels[i]] += sorted_.weights[i];
        }
        if (!given_.cases) return double(to - from);
        return std::accumulate(sorted_.cases.begin() + from, sorted_.cases.begin() + to, 0.0);
    }

    // Class after class, which compilers turn into operations on many labels at once.
    void add_few_classes(size_t from, size_t to, double* weights) const {
        const Label* labels = sorted_.labels.data();
        size_t others = 0;
        for (size_t c = 1; c < given_.n_classes; ++c) {
            const auto label = Label(c);
            uint32_t n = 0;
            for (size_t i = from; i < to; ++i) n += labels[i] == label;
            weights[c] += double(n);
            others += n;
        }
        weights[0] += double(to - from - others);
    }

    template <bool adds_up, typename Terms>
    void search(const Terms& terms) {
        const std::vector<double> nothing(given_.n_classes, 0.0);
        std::vector<double> joining = nothing, all = known_;
        if (rules_.joining) joining.assign(rules_.joining, rules_.joining + given_.n_classes);
        for (size_t c = 0; c < all.size(); ++c) all[c] += joining[c];
        using OneSide = Side<Terms, adds_up>;
        OneSide left(terms, nothing, 0), right(terms, known_, known_cases_);
        OneSide fuller_left(terms, joining, rules_.joining_cases);
        OneSide fuller_right(terms, all, known_cases_ + rules_.joining_cases);
        if (bounds_blocks()) {
            search_blocks(terms);
            return contenders_.compact();
        }
        size_t i = 0, previous = none;
        for (size_t group = 0; group < sorted_.n_groups(); ++group) {
            const size_t end = sorted_.ends[group];
            if (i == end) continue;
            ++n_codes_;
            if (previous != none && apart(previous, group)) {
                if (rules_.joining) {
                    offer(terms, previous, fuller_left, right);
                    offer(terms, previous, left, fuller_right);
                } else {
                    offer(terms, previous, left, right);
                }
            }
            previous = group;
            for (; i < end; ++i) {
                const size_t label = sorted_.labels[i];
                const double weight = this->weight(i), share = this->share(i);
                left.add(label, weight, share);
                right.add(label, -weight, -share);
                if (!rules_.joining) continue;
                fuller_left.add(label, weight, share);
                fuller_right.add(label, -weight, -share);
            }
        }
        contenders_.compact();
    }

    // What a threshold takes away is a convex function of the class weights on its left: within a
    // block of cases it is at most what it would be with all cases of some classes in the block on
    // the left, and none of the others. Most blocks need no more than that.
    static constexpr size_t most_classes = 3;
    static constexpr size_t block_size = 64;  // groups

    bool bounds_blocks() const {
        return given_.n_classes <= most_classes && !given_.weights && !given_.cases &&
               !rules_.by_ratio && !rules_.joining;
    }

    // Class weights on the left, and the last group there.
    struct Place {
        double left[most_classes] = {};
        size_t group = none;

        double total() const { return left[0] + left[1] + left[2]; }
    };

    struct Block {
        Place start;
        size_t n_thresholds;  // before each of its groups
    };

    template <typename Terms>
    double drop_at(const Terms& terms, const double* left) const {
        typename Terms::Sum of_left = 0, of_right = 0;
        double total = 0;
        for (size_t c = 0; c < given_.n_classes; ++c) {
            of_left += terms.term(left[c]);
            of_right += terms.term(known_[c] - left[c]);
            total += left[c];
        }
        return rules_.whole + terms.kept(of_left, total) +
               terms.kept(of_right, double(n_known_) - total);
    }

    bool leaves_enough(double left) const {
        const double fewer = std::min(left, double(n_known_) - left);
        return fewer >= rules_.fewest_cases && fewer >= rules_.fewest_weight;
    }

    template <typename Terms>
    void search_blocks(const Terms& terms) {
        const std::vector<Block> blocks = made_blocks(terms);
        for (size_t b = 0; b < blocks.size(); ++b) {
            const size_t from = b * block_size;
            const size_t to = std::min(from + block_size, sorted_.n_groups());
            const bool last = b + 1 == blocks.size();
            const double* end = last ? known_.data() : blocks[b + 1].start.left;
            double n_left = 0;
            for (size_t c = 0; c < given_.n_classes; ++c) n_left += end[c];
            const bool all_enough = leaves_enough(blocks[b].start.total()) && leaves_enough(n_left);
            if (all_enough && contenders_.n_thresholds() &&
                bound(terms, blocks[b].start.left, end) + off_ < contenders_.hopeful())
                contenders_.count_more(blocks[b].n_thresholds);
            else
                visit(terms, blocks[b].start, from, to);
        }
    }

    // The blocks; a threshold at the start of one may be the best so far.
    template <typename Terms>
    std::vector<Block> made_blocks(const Terms& terms) {
        std::vector<Block> blocks;
        Place place;
        size_t i = 0;
        for (size_t from = 0; from < sorted_.n_groups(); from += block_size) {
            const size_t to = std::min(from + block_size, sorted_.n_groups());
            blocks.push_back({place, 0});
            const size_t before = place.group;
            size_t first = none, n_thresholds = 0;
            for (size_t group = from, at = i; group < to; ++group) {
                if (sorted_.ends[group] == at) continue;
                at = sorted_.ends[group];
                ++n_codes_;
                n_thresholds += place.group != none && apart(place.group, group);
                if (first == none) first = group;
                place.group = group;
            }
            blocks.back().n_thresholds = n_thresholds;
            if (before != none && first != none && leaves_enough(place.total()) &&
                apart(before, first))
                contenders_.raise(std::max(drop_at(terms, place.left) - off_, 0.0));
            add_up(i, sorted_.ends[to - 1], place.left);
            i = sorted_.ends[to - 1];
        }
        return blocks;
    }

    template <typename Terms>
    double bound(const Terms& terms, const double* start, const double* end) const {
        double most = -std::numeric_limits<double>::infinity();
        for (size_t corner = 0; corner < size_t(1) << given_.n_classes; ++corner) {
            double left[most_classes] = {};
            for (size_t c = 0; c < given_.n_classes; ++c)
                left[c] = (corner >> c & 1 ? end : start)[c];
            most = std::max(most, drop_at(terms, left));
        }
        return std::max(most, 0.0);
    }

    template <typename Terms>
    void visit(const Terms& terms, Place place, size_t from, size_t to) {
        size_t i = size_t(place.total());
        for (size_t group = from; group < to; ++group) {
            const size_t end = sorted_.ends[group];
            if (i == end) continue;
            if (place.group != none && apart(place.group, group) && leaves_enough(double(i))) {
                contenders_.count(place.group);
                offer_drop(place.group, drop_at(terms, place.left));
            }
            place.group = group;
            for (; i < end; ++i) ++place.left[sorted_.labels[i]];
        }
    }

    bool apart(size_t group, size_t next) const {
        return !rules_.values || rules_.values[sorted_.code(group)] + branchwise::apart <
                                     rules_.values[sorted_.code(next)];
    }

    template <typename Terms, typename OneSide>
    void offer(const Terms& terms, size_t group, const OneSide& left, const OneSide& right) {
        const bool as_weights = rules_.weights_are_cases;
        if (std::min(left.cases(as_weights), right.cases(as_weights)) < rules_.fewest_cases) return;
        if (std::min(left.total(), right.total()) < rules_.fewest_weight) return;
        contenders_.count(group);
        const double drop = rules_.whole + left.kept() + right.kept();
        if (!rules_.by_ratio) return offer_drop(group, drop);
        const double information =
            rules_.information - terms.size(left.total()) - terms.size(right.total());
        offer_ratio(group, drop, information);
    }

    void offer_drop(size_t group, double drop) {
        const double most = std::max(drop + off_, 0.0);
        if (most >= contenders_.hopeful()) contenders_.add(group, std::max(drop - off_, 0.0), most);
    }

    void offer_ratio(size_t group, double drop, double information) {
        const double infinity = std::numeric_limits<double>::infinity();
        double least = std::max(drop - off_, 0.0), most = std::max(drop + off_, 0.0);
        bool counts = true;
        if (rules_.min_gain > 0) {
            const double enough = rules_.min_gain * rules_.total;
            const double slack = 1e-9 * (enough + most) + rules_.resolution * rules_.total;
            if (most + slack < enough) return;
            counts = least - slack >= enough;
        }
        least = counts ? least / std::max(information + off_, rules_.unit) : -infinity;
        most = information - off_ > rules_.unit ? most / (information - off_) : infinity;
        if (most >= contenders_.hopeful()) contenders_.add(group, least, most);
    }

    Segments segments() const {
        Segments made = sorted_.segments(contenders_);
        const std::vector<size_t>& last = made.last_groups;
        made.n_codes = n_codes_;
        made.weights.assign(last.size() * given_.n_classes, 0.0);
        made.cases.assign(last.size(), 0.0);
        size_t i = 0;
        for (size_t k = 0; k < last.size(); ++k) {
            made.cases[k] = add_up(i, sorted_.ends[last[k]], &made.weights[k * given_.n_classes]);
            i = sorted_.ends[last[k]];
        }
        return made;
    }

    static constexpr size_t none = size_t(-1);

    const NodeCases& given_;
    const SortedCases<Label>& sorted_;
    const ThresholdRules& rules_;
    const size_t n_known_;
    std::vector<double> known_;
    double known_cases_ = 0;
    double off_ = 0;  // what is told of a drop is off by this at most
    size_t n_codes_ = 0;
    Contenders contenders_;  // by gain their scores are drops
};

}  // namespace branchwise
