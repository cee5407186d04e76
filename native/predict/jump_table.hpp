// The tree as prediction reads it: one table of jumps.
//
// The jumps down from a node lie side by side: where they begin plus the row's code is
// the entry of the way that the row takes. An entry says what is tested next and where
// those jumps begin, so a level costs one load in random order. Where a way ends, the
// entry tests the last split_test, which every row outcomes with 0, and leads to itself:
// rows that have arrived walk on the spot, cheaper than a branch hard to predict.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "core/memory.hpp"
#include "core/problem.hpp"

namespace branchwise {

// What a node tests. Where a column has far more values than the node has branches,
// its jumps are those of a list of codes, and a last one for all others.
struct SplitTest {
    uint32_t column;
    bool in_list;

    bool operator==(const SplitTest& other) const {
        return column == other.column && in_list == other.in_list;
    }
};

struct Place {
    uint32_t begin;
    uint32_t split_test;
};

// An entry: the split_test in the low bits, and where its jumps begin. Four bytes do
// for most trees, and a table half as large misses the cache half as often.
template <typename Entry>
constexpr int split_test_bits = sizeof(Entry) == 4 ? 8 : 32;

template <typename Entry>
uint32_t split_test_of(Entry entry) {
    return uint32_t(entry & ((Entry(1) << split_test_bits<Entry>)-1));
}

template <typename Entry>
uint32_t begin_of(Entry entry) {
    return uint32_t(entry >> split_test_bits<Entry>);
}

template <typename Entry>
Entry as_entry(const Place& place) {
    return Entry(place.begin) << split_test_bits<Entry> | place.split_test;
}

// In front of the jumps lies the threshold of a number, or the list: its length, its codes.
constexpr uint32_t threshold_space = 2;

// Write a sorted list of n codes, the last two being those of missing and unseen values.
template <typename Entry>
void list_codes(Entry* list, const int64_t* codes, size_t n, uint32_t missing) {
    list[0] = Entry(n);
    std::copy_n(codes, n - 2, list + 1);
    list[n - 1] = missing;
    list[n] = missing + 1;
    std::sort(list + 1, list + 1 + n);
}

// Find the way of a code, counted from the begin of the list.
template <typename Entry>
uint32_t way_in_list(const Entry* list, uint32_t code) {
    const auto n = size_t(list[0]);
    const Entry* codes = list + 1;
    const Entry* found = codes;
    for (size_t left = n; left > 1; left -= left / 2)
        found += found[left / 2 - 1] < code ? left / 2 : 0;
    return uint32_t(1 + n + (*found == code ? size_t(found - codes) : n));
}

class JumpTable {
  public:
    // Where a row ends that goes down every branch somewhere, and its label.
    static constexpr uint32_t fractional = 0xffffffffu;
    // The node of an entry that leads to a surrogate.
    static constexpr uint32_t surrogate = 0xfffffffeu;
    static constexpr uint8_t no_label = most_labels;

    std::vector<uint32_t> values;  // number of categories of each column, 0 for numbers
    std::vector<bool> used;        // the columns that are tested
    std::vector<uint32_t> first_child;
    std::vector<Place> places;  // of the nodes that test
    size_t depth = 0;
    std::vector<SplitTest> split_tests;
    uint32_t arrived = 0;  // the last split_test: no other has all of its bits
    bool has_lists = false;
    Array<uint32_t> narrow;   // the table; the first entry is where rows start
    Array<uint64_t> wide;     // or this one, if that is too narrow
    Array<uint32_t> node_at;  // the node that an entry leads to
    Array<uint8_t> label_at;  // and its label

    // `labels`: the class of each node, or none where there are too many classes.
    JumpTable(const TreeView& tree, const SurrogateView& surrogates,
              const Span<const uint8_t>& labels, const std::vector<uint32_t>& values_of_columns)
        : values(values_of_columns), used(values.size()) {
        first_child.resize(tree.n_nodes() + 1, 1);
        for (size_t i = 0; i < tree.n_nodes(); ++i)
            first_child[i + 1] = first_child[i] + uint32_t(tree.n_children[i]);
        // Children lie behind all nodes of their parents' level.
        for (uint32_t end = 1; first_child[end] > end; end = first_child[end]) ++depth;
        number_tests(tree, surrogates);
        size_t n_entries = place_nodes(tree);
        n_entries = place_surrogates(surrogates, n_entries);
        while (arrived < split_tests.size()) arrived = 2 * arrived + 1;
        node_at.resize(n_entries, 0);
        const uint32_t most = ~uint32_t(0);
        if (arrived <= split_test_of(most) && n_entries <= begin_of(most))
            lay_out_all(tree, surrogates, narrow);
        else
            lay_out_all(tree, surrogates, wide);
        if (!labels.size()) return;
        label_at.reserve(n_entries);
        for (uint32_t node : node_at)
            label_at.push_back(node >= surrogate ? no_label : labels[node]);
    }

    bool is_leaf(uint32_t node) const { return first_child[node] == first_child[node + 1]; }

    // Whether another tree tests the same columns, in entries of the same size.
    bool tests_as(const JumpTable& other) const {
        return split_tests == other.split_tests && narrow.empty() == other.narrow.empty();
    }

  private:
    // The codes of the branches of a node, and those of missing and unseen values.
    size_t codes_at(const TreeView& tree, uint32_t node) const {
        size_t n = 2;
        for (uint32_t child = first_child[node]; child < first_child[node + 1]; ++child)
            n += size_t(tree.n_codes[child]);
        return n;
    }

    // Number the split_tests in the order of columns, so that trees of an ensemble that
    // test the same columns number them alike.
    void number_tests(const TreeView& tree, const SurrogateView& surrogates) {
        std::vector<bool> tested(2 * values.size());
        for (uint32_t node = 0; node < tree.n_nodes(); ++node)
            if (!is_leaf(node)) {
                const auto column = uint32_t(tree.column[node]);
                tested[2 * column + in_list(column, size_t(tree.n_children[node]))] = true;
            }
        for (const int64_t column : surrogates.column)
            tested[2 * size_t(column) + in_list(uint32_t(column), 2)] = true;
        number_.resize(tested.size());
        for (uint32_t i = 0; i < tested.size(); ++i) {
            if (!tested[i]) continue;
            number_[i] = uint32_t(split_tests.size());
            split_tests.push_back({i / 2, i % 2 != 0});
            used[i / 2] = true;
            has_lists = has_lists || i % 2 != 0;
        }
    }

    size_t n_jumps(uint32_t column) const {
        return values[column] ? values[column] + size_t(2) : 3;
    }

    bool in_list(uint32_t column, size_t n_branches) const {
        return n_jumps(column) > 4 * n_branches + 16;
    }

    // Give every node its place; returns the number of entries.
    size_t place_nodes(const TreeView& tree) {
        places.resize(tree.n_nodes());
        size_t end = 1;
        for (uint32_t node = 0; node < tree.n_nodes(); ++node)
            if (!is_leaf(node))
                places[node] =
                    place_split(uint32_t(tree.column[node]), size_t(tree.n_children[node]),
                                codes_at(tree, node), end);
        return end;
    }

    // The place of a split with so many branches and codes; `end` is moved behind it.
    Place place_split(uint32_t column, size_t n_branches, size_t n_codes, size_t& end) {
        const bool listed = in_list(column, n_branches);
        const Place place{uint32_t(end), number_[2 * column + listed]};
        end += listed ? 2 * n_codes + 2 : n_jumps(column) + (values[column] ? 0 : threshold_space);
        if (end > surrogate) throw std::length_error("columns make too large a tree");
        return place;
    }

    // Surrogates lie behind all nodes.
    size_t place_surrogates(const SurrogateView& surrogates, size_t end) {
        const size_t n = surrogates.column.size();
        surrogate_places_.reserve(n);
        for (size_t s = 0; s < n; ++s) {
            const auto n_codes = size_t(surrogates.n_codes[2 * s] + surrogates.n_codes[2 * s + 1]);
            surrogate_places_.push_back(
                place_split(uint32_t(surrogates.column[s]), 2, n_codes + 2, end));
        }
        const auto most = std::max_element(surrogates.number.begin(), surrogates.number.end());
        if (n) depth *= 1 + size_t(*most);
        return end;
    }

    // A row that misses the column of a node goes on to the first surrogate; from one that does
    // not know it either, to the next one, from the last where the node sends missing values.
    template <typename Entry>
    void lay_out_all(const TreeView& tree, const SurrogateView& surrogates, Array<Entry>& table) {
        lay_out(tree, table);
        const int64_t* codes = surrogates.codes.data();
        size_t s = 0;
        for (uint32_t node = 0; node < surrogates.number.size(); ++node) {
            if (!surrogates.number[node]) continue;
            const SplitTest tested = split_tests[places[node].split_test];
            const uint32_t missing = values[tested.column] ? values[tested.column] : 2;
            lead_to_surrogate(table, way_of(table, places[node], missing), s);
            for (const size_t last = s + size_t(surrogates.number[node]) - 1; s <= last; ++s)
                codes = lay_out_surrogate(tree, surrogates, s, s == last, node, codes, table);
        }
    }

    template <typename Entry>
    const int64_t* lay_out_surrogate(const TreeView& tree, const SurrogateView& surrogates,
                                     size_t s, bool last, uint32_t node, const int64_t* codes,
                                     Array<Entry>& table) {
        const Place place = surrogate_places_[s];
        const SplitTest tested = split_tests[place.split_test];
        const bool numeric = values[tested.column] == 0;
        const int64_t* n_codes = &surrogates.n_codes[2 * s];
        const auto n_listed = uint32_t(n_codes[0] + n_codes[1]) + 2;
        const uint32_t n_ways = numeric ? 3 : values[tested.column] + 2;
        if (numeric) std::memcpy(&table[place.begin], &surrogates.threshold[s], sizeof(double));
        if (tested.in_list) list_codes(&table[place.begin], codes, n_listed, values[tested.column]);
        const uint32_t first =
            tested.in_list ? place.begin + 1 + n_listed : way_of(table, place, 0);
        const uint32_t end = first + (tested.in_list ? n_listed + 1 : n_ways);
        for (uint32_t at = first; at < end; ++at) {
            if (last)
                follow(table, at, tree.missing_to[node], node);
            else
                lead_to_surrogate(table, at, s + 1);
        }
        for (uint32_t branch = 0; branch < 2; ++branch)
            for (int64_t k = 0; k < n_codes[branch]; ++k)
                lead_to(table, way_of(table, place, uint32_t(*codes++)),
                        first_child[node] + branch);
        return codes;
    }

    // The entry for a code at a place; that of a number: at most the threshold, above, missing.
    template <typename Entry>
    uint32_t way_of(const Array<Entry>& table, const Place& place, uint32_t code) const {
        const SplitTest tested = split_tests[place.split_test];
        if (tested.in_list) return place.begin + way_in_list(&table[place.begin], code);
        return place.begin + (values[tested.column] ? code : threshold_space + code);
    }

    template <typename Entry>
    void lead_to_surrogate(Array<Entry>& table, uint32_t at, size_t s) {
        table[at] = as_entry<Entry>(surrogate_places_[s]);
        node_at[at] = surrogate;
    }

    template <typename Entry>
    void lay_out(const TreeView& tree, Array<Entry>& table) {
        table.resize(node_at.size() + 1, 0);  // two entries are read as a threshold anywhere
        lead_to(table, 0, 0);
        const int64_t* codes = tree.codes.data();  // they lie in the order of nodes
        for (uint32_t node = 0; node < tree.n_nodes(); ++node) {
            if (is_leaf(node)) continue;
            const uint32_t begin = places[node].begin;
            const SplitTest tested = split_tests[places[node].split_test];
            const bool numeric = values[tested.column] == 0;
            const uint32_t missing = numeric ? 2 : values[tested.column], unseen = missing + 1;
            const auto n_listed = uint32_t(codes_at(tree, node));
            if (numeric) std::memcpy(&table[begin], &tree.threshold[node], sizeof(double));
            if (tested.in_list) list_codes(&table[begin], codes, n_listed, missing);
            const auto way = [&](uint32_t code) { return way_of(table, places[node], code); };
            const uint32_t first = tested.in_list ? begin + 1 + n_listed : way(0);
            const uint32_t last =
                tested.in_list ? first + n_listed : way(numeric ? missing : unseen);
            for (uint32_t at = first; at <= last; ++at) end_at(table, at, node);
            for (uint32_t child = first_child[node]; child < first_child[node + 1]; ++child)
                for (int64_t k = 0; k < tree.n_codes[child]; ++k)
                    lead_to(table, way(uint32_t(*codes++)), child);
            follow(table, way(missing), tree.missing_to[node], node);
            if (!numeric) follow(table, way(unseen), tree.unseen_to[node], node);
        }
    }

    template <typename Entry>
    void follow(Array<Entry>& table, uint32_t at, int64_t route, uint32_t node) {
        if (route == every_branch)
            end_at(table, at, fractional);
        else if (route == stop_here)
            end_at(table, at, node);
        else
            lead_to(table, at, first_child[node] + uint32_t(route));
    }

    template <typename Entry>
    void lead_to(Array<Entry>& table, uint32_t at, uint32_t node) {
        end_at(table, at, node);
        if (!is_leaf(node)) table[at] = as_entry<Entry>(places[node]);
    }

    template <typename Entry>
    void end_at(Array<Entry>& table, uint32_t at, uint32_t node) {
        table[at] = as_entry<Entry>({at, arrived});
        node_at[at] = node;
    }

    std::vector<uint32_t> number_;  // of the split_test of a column, by codes or in a list
    std::vector<Place> surrogate_places_;
};

}  // namespace branchwise
