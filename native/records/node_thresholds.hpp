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
        joining_.assign(given_.n_classes, 0.0);
        if (rules_.joining) joining_.assign(rules_.joining, rules_.joining + given_.n_classes);
        all_ = known_;
        for (size_t c = 0; c < all_.size(); ++c) all_[c] += joining_[c];
        all_total_ = std::accumulate(all_.begin(), all_.end(), 0.0);
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
        if (given_.n_classes <= most_classes) {
            search_blocks(terms);
            return contenders_.compact();
        }
        const std::vector<double> nothing(given_.n_classes, 0.0);
        using OneSide = Side<Terms, adds_up>;
        OneSide left(terms, nothing, 0), right(terms, known_, known_cases_);
        OneSide fuller_left(terms, joining_, rules_.joining_cases);
        OneSide fuller_right(terms, all_, known_cases_ + rules_.joining_cases);
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

    // What a threshold takes away is a convex function of the class weights on its left, and its
    // split information a concave one. So within a block of cases the score is at most what it
    // would be with all cases of some classes in the block on the left, and none of the others.
    // Most blocks need no more than that.
    static constexpr size_t most_classes = 3;
    static constexpr size_t block_size = 64;  // groups

    // Class weights and cases on the left, how many that are, and the last group there.
    struct Place {
        double left[most_classes] = {};
        double cases = 0;
        size_t i = 0;
        size_t group = none;

        double total() const { return left[0] + left[1] + left[2]; }
    };

    struct Block {
        Place start;
        size_t n_thresholds;  // before each of its groups
    };

    template <typename Terms>
    double drop_at(const Terms& terms, const double* left, double total) const {
        typename Terms::Sum of_left = 0, of_right = 0;
        for (size_t c = 0; c < given_.n_classes; ++c) {
            of_left += terms.term(left[c]);
            of_right += terms.term(all_[c] - left[c]);
        }
        return rules_.whole + terms.kept(of_left, total) + terms.kept(of_right, all_total_ - total);
    }

    template <typename Terms>
    double information_at(const Terms& terms, double total) const {
        return rules_.information - terms.size(total) - terms.size(all_total_ - total);
    }

    bool are_enough(double cases, double other_cases, double weight, double other_weight) const {
        const double fewer_cases = rules_.weights_are_cases ? std::min(weight, other_weight)
                                                            : std::min(cases, other_cases);
        return fewer_cases >= rules_.fewest_cases &&
               std::min(weight, other_weight) >= rules_.fewest_weight;
    }

    // Without cases that join a side.
    bool leaves_enough(const Place& place) const {
        const double known = std::accumulate(known_.begin(), known_.end(), 0.0);
        return are_enough(place.cases, known_cases_ - place.cases, place.total(),
                          known - place.total());
    }

    template <typename Terms>
    void search_blocks(const Terms& terms) {
        const std::vector<Block> blocks = made_blocks(terms);
        Place end;
        std::copy(known_.begin(), known_.end(), end.left);
        end.cases = known_cases_;
        for (size_t b = 0; b < blocks.size(); ++b) {
            const size_t from = b * block_size;
            const size_t to = std::min(from + block_size, sorted_.n_groups());
            const Place& next = b + 1 == blocks.size() ? end : blocks[b + 1].start;
            const bool all_enough = leaves_enough(blocks[b].start) && leaves_enough(next);
            if (all_enough && contenders_.n_thresholds() &&
                bound(terms, blocks[b].start.left, next.left) < contenders_.hopeful())
                contenders_.count_more(blocks[b].n_thresholds * (rules_.joining ? 2 : 1));
            else
                visit(terms, blocks[b].start, from, to);
        }
    }

    // The blocks; a threshold at the start of one may be the best so far.
    template <typename Terms>
    std::vector<Block> made_blocks(const Terms& terms) {
        std::vector<Block> blocks;
        Place place;
        for (size_t from = 0; from < sorted_.n_groups(); from += block_size) {
            const size_t to = std::min(from + block_size, sorted_.n_groups());
            blocks.push_back({place, 0});
            const size_t before = place.group;
            size_t first = none, n_thresholds = 0;
            for (size_t group = from, at = place.i; group < to; ++group) {
                if (sorted_.ends[group] == at) continue;
                at = sorted_.ends[group];
                ++n_codes_;
                n_thresholds += place.group != none && apart(place.group, group);
                if (first == none) first = group;
                place.group = group;
            }
            blocks.back().n_thresholds = n_thresholds;
            if (before != none && first != none && leaves_enough(place) && apart(before, first)) {
                const double total = place.total();
                contenders_.raise(
                    least_score(drop_at(terms, place.left, total), information_at(terms, total)));
            }
            place.cases += add_up(place.i, sorted_.ends[to - 1], place.left);
            place.i = sorted_.ends[to - 1];
        }
        return blocks;
    }

    template <typename Terms>
    double bound(const Terms& terms, const double* start, const double* end) const {
        double most = 0;
        for (size_t corner = 0; corner < size_t(1) << given_.n_classes; ++corner) {
            double left[most_classes] = {}, fuller[most_classes] = {}, total = 0, fuller_total = 0;
            for (size_t c = 0; c < given_.n_classes; ++c) {
                left[c] = (corner >> c & 1 ? end : start)[c];
                fuller[c] = left[c] + joining_[c];
                total += left[c];
                fuller_total += fuller[c];
            }
            most = std::max(most,
                            most_score(drop_at(terms, left, total), information_at(terms, total)));
            if (rules_.joining)
                most = std::max(most, most_score(drop_at(terms, fuller, fuller_total),
                                                 information_at(terms, fuller_total)));
        }
        return most;
    }

    template <typename Terms>
    void visit(const Terms& terms, Place place, size_t from, size_t to) {
        for (size_t group = from; group < to; ++group) {
            const size_t end = sorted_.ends[group];
            if (place.i == end) continue;
            if (place.group != none && apart(place.group, group)) {
                if (rules_.joining) offer_place<true>(terms, place);
                offer_place<false>(terms, place);
            }
            place.group = group;
            for (; place.i < end; ++place.i) {
                place.left[sorted_.labels[place.i]] += weight(place.i);
                place.cases += share(place.i);
            }
        }
    }

    // A threshold, the cases that join a side being on its left or on its right.
    template <bool on_left, typename Terms>
    void offer_place(const Terms& terms, const Place& place) {
        double left[most_classes] = {}, total = 0;
        for (size_t c = 0; c < given_.n_classes; ++c) {
            left[c] = place.left[c] + (on_left ? joining_[c] : 0.0);
            total += left[c];
        }
        const double cases = place.cases + (on_left ? rules_.joining_cases : 0.0);
        const double all_cases = known_cases_ + rules_.joining_cases;
        if (!are_enough(cases, all_cases - cases, total, all_total_ - total)) return;
        take(place.group, drop_at(terms, left, total),
             rules_.by_ratio ? information_at(terms, total) : 0.0);
    }

    bool apart(size_t group, size_t next) const {
        return !rules_.values || rules_.values[sorted_.code(group)] + branchwise::apart <
                                     rules_.values[sorted_.code(next)];
    }

    template <typename Terms, typename OneSide>
    void offer(const Terms& terms, size_t group, const OneSide& left, const OneSide& right) {
        const bool as_weights = rules_.weights_are_cases;
        if (!are_enough(left.cases(as_weights), right.cases(as_weights), left.total(),
                        right.total()))
            return;
        take(group, rules_.whole + left.kept() + right.kept(),
             rules_.by_ratio ? information_at(terms, left.total()) : 0.0);
    }

    // An admissible threshold.
    void take(size_t group, double drop, double information) {
        contenders_.count(group);
        const double most = most_score(drop, information);
        if (most < contenders_.hopeful() || surely_gains_less(drop)) return;
        contenders_.add(group, least_score(drop, information), most);
    }

    // By ratio a threshold must gain enough; what gains less than that for sure is no contender,
    // and what may gain less is no bar for others.
    double enough() const { return rules_.by_ratio ? rules_.min_gain * rules_.total : 0.0; }
    double slack(double drop) const {
        return 1e-9 * (enough() + std::max(drop + off_, 0.0)) + rules_.resolution * rules_.total;
    }
    bool surely_gains_less(double drop) const {
        return enough() > 0 && std::max(drop + off_, 0.0) + slack(drop) < enough();
    }
    bool surely_gains_enough(double drop) const {
        return !(enough() > 0) || std::max(drop - off_, 0.0) - slack(drop) >= enough();
    }

    double least_score(double drop, double information) const {
        if (!surely_gains_enough(drop)) return -std::numeric_limits<double>::infinity();
        const double least = std::max(drop - off_, 0.0);
        return rules_.by_ratio ? least / std::max(information + off_, rules_.unit) : least;
    }
    double most_score(double drop, double information) const {
        const double most = std::max(drop + off_, 0.0);
        if (!rules_.by_ratio) return most;
        const double least = information - off_;
        return least > rules_.unit ? most / least : std::numeric_limits<double>::infinity();
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
    std::vector<double> known_, joining_, all_;  // by class; all are known or join a side
    double known_cases_ = 0, all_total_ = 0;
    double off_ = 0;  // what is told of a drop is off by this at most
    size_t n_codes_ = 0;
    Contenders contenders_;  // by gain their scores are drops
};

}  // namespace branchwise
