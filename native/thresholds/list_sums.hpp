// Adding up the entries of a sorted list by class.

#pragma once

#include <algorithm>
#include <vector>

#include "records/records.hpp"

namespace branchwise {

// Entries by class, where those from a class on can be counted many at once.
template <typename List, typename Steps>
void count(const List& list, size_t begin, size_t end, const std::vector<uint32_t>& classes,
           Steps* sums) {
    Steps from_here = Steps(end - begin);
    for (size_t k = 0; k + 1 < classes.size(); ++k) {
        const Steps from_next = list.count_from(begin, end, classes[k + 1]);
        sums[k] = from_here - from_next;
        from_here = from_next;
    }
    sums[classes.size() - 1] = from_here;
}

// The weights of some entries of a list by class: `slot` is the place of each of these classes in
// `sums`.
template <typename List, typename Steps>
void add_up(const List& list, size_t begin, size_t end, const std::vector<uint32_t>& classes,
            const std::vector<uint32_t>& slot, Steps* sums) {
    if constexpr (List::counts) {
        if (classes.size() <= List::most_counted) return count(list, begin, end, classes, sums);
    }
    std::fill_n(sums, classes.size(), Steps(0));
    if (classes.size() != 2) {
        for (size_t i = begin; i < end; ++i) sums[slot[list.label(i)]] += list.steps(i);
        return;
    }
    // Two sums in registers: in memory, one addition would wait for the other.
    const uint32_t second = classes[1];
    Steps all = 0, of_second = 0;
    for (size_t i = begin; i < end; ++i) {
        const Steps added = list.steps(i);
        all += added;
        of_second += list.is_from(i, second) ? added : 0;
    }
    sums[0] = all - of_second;
    sums[1] = of_second;
}

// The first entry of a list whose rank is not on the left; is_left(rank) is so of the first ones.
template <typename List, typename IsLeft>
size_t first_right(const List& list, const IsLeft& is_left) {
    size_t begin = 0, end = list.size();
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (is_left(list.rank(middle)))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// What some entries of a list come to: weights by class, in steps, and cases.
template <typename W>
class ListSums {
  public:
    using Steps = typename Records<W>::Steps;

    ListSums(const Records<W>& records, size_t n_classes) : records_(records), slot_(n_classes) {}

    // `classes` are those of the node.
    template <typename List>
    void add_up(const List& list, size_t begin, size_t end, const std::vector<uint32_t>& classes) {
        steps.resize(classes.size());
        for (size_t k = 0; k < classes.size(); ++k) slot_[classes[k]] = uint32_t(k);
        branchwise::add_up(list, begin, end, classes, slot_, steps.data());
        cases = records_.share_of(case_steps(list, begin, end));
    }

    std::vector<Steps> steps;  // by class of the node
    double cases = 0;

  private:
    template <typename List>
    Steps case_steps(const List& list, size_t begin, size_t end) const {
        Steps sum = 0;
        if (records_.has_own_share()) {
            for (size_t i = begin; i < end; ++i) sum += list.share_steps(records_, i);
            return sum;
        }
        if (Records<W>::weighted && !records_.has_share()) return Steps(end - begin);
        for (const Steps of_class : steps) sum += of_class;
        return sum;
    }

    const Records<W>& records_;
    std::vector<uint32_t> slot_;  // the place of each class among those of the node
};

}  // namespace branchwise
