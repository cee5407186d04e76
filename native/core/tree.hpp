// Trees: nodes as they are grown, and the arrays of branchwise/tree/tree.py.

#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/constants.hpp"
#include "core/kept_memory.hpp"

namespace branchwise {

// What a node tests, and where values go that lead to none of its branches.
struct Split {
    double threshold = std::numeric_limits<double>::quiet_NaN();
    int32_t column = -1;
    int32_t missing_to = stop_here;
    int32_t unseen_to = stop_here;
};

// The arrays of a tree, nodes numbered level by level, so that children and their codes lie in
// the order of their parents: read from Python, or owned.
template <typename Whole, typename Real>
struct TreeLayout {
    Whole column, n_children, missing_to, unseen_to, n_codes, codes;
    Real threshold;

    size_t n_nodes() const { return column.size(); }

    // visit(name, array) for each of them.
    template <typename Visit>
    void for_each_array(const Visit& visit) {
        visit("column", column);
        visit("threshold", threshold);
        visit("n_children", n_children);
        visit("missing_to", missing_to);
        visit("unseen_to", unseen_to);
        visit("n_codes", n_codes);
        visit("codes", codes);
    }
};

using TreeView = TreeLayout<Span<const int64_t>, Span<const double>>;

// The surrogates of all nodes, node after node; each has two branches.
struct SurrogateView {
    Span<const int64_t> number;  // of each node
    Span<const int64_t> column, n_codes, codes;
    Span<const double> threshold;
};

// A tree to be handed over, written node by node.
struct TreeArrays : TreeLayout<Array<int64_t>, Array<double>> {
    Array<double> weights;  // weights[node * width + k]: class weights, or moments
    Array<double> cases;
    size_t width;
    Array<double> mean, deviation;  // if there are no moments

    // Surrogate splits, if there are any.
    Array<int64_t> n_surrogates, surrogate_column, surrogate_n_codes, surrogate_codes;
    Array<double> surrogate_threshold;

    TreeArrays(size_t n, size_t width, size_t most_codes) : width(width) {
        for (auto* array : {&column, &n_children, &missing_to, &unseen_to, &n_codes})
            array->resize(n);
        for (auto* array : {&threshold, &cases}) array->resize(n);
        weights.resize(n * width);  // takes no memory before it is written
        codes.reserve(most_codes);
    }

    void write(size_t node, const Split& split, size_t children, double node_cases) {
        column[node] = split.column;
        threshold[node] =
            split.column < 0 ? std::numeric_limits<double>::quiet_NaN() : split.threshold;
        n_children[node] = int64_t(children);
        missing_to[node] = split.missing_to;
        unseen_to[node] = split.unseen_to;
        cases[node] = node_cases;
    }
    void write_weights(size_t node, const double* of_node) {
        for (size_t k = 0; k < width; ++k) weights[node * width + k] = of_node[k];
    }
    void write_summary(size_t node, const double* of_node) {
        weights[node] = of_node[0];
        mean[node] = of_node[1];
        deviation[node] = of_node[2];
    }

    // The codes that lead to a node.
    template <typename Codes>
    void write_codes(size_t node, const Codes* begin, const Codes* end) {
        n_codes[node] = end - begin;
        for (; begin < end; ++begin) codes.push_back(*begin);
    }
};

// How codes of the parent's column lead to a node.
constexpr int32_t no_code = -1;      // the branch of missing values, and the root
constexpr int32_t both_sides = -2;   // any known number
constexpr int32_t first_group = -3;  // and below: values that share a branch, of Grown::group

// 40 bytes: a tree without a limit has millions.
struct Node : Split {
    int32_t n_children = 0;  // or less, if another part has them
    uint32_t first_child = 0;
    int32_t code = no_code;
    double cases = 0;

    // A subtree that another thread has grown: which part of the tree, and its root there.
    void set_graft(size_t part, size_t root) {
        n_children = -int32_t(part);
        first_child = uint32_t(root);
    }
    bool is_graft() const { return n_children < 0; }
    size_t graft() const { return size_t(-n_children); }
};

// A split in two that stands for another one, where the column of that is missing.
struct Surrogate {
    int32_t column = -1;
    double threshold = std::numeric_limits<double>::quiet_NaN();
    std::vector<uint32_t> codes[2];  // by branch
};

// Nodes in the order of creation, siblings contiguous; weights[node * width + k].
// Subtrees that another thread has grown are in a Grown of its own.
struct Grown {
    Scratch<Node> nodes;
    Scratch<double> weights;
    std::vector<uint32_t> grouped;                                      // codes, group by group
    std::vector<size_t> starts_of_groups{0};                            // and where each begins
    std::vector<uint64_t> groups_of_bits;                               // instead: codes, by bits
    std::vector<std::pair<size_t, std::vector<Surrogate>>> surrogates;  // of some nodes

    static constexpr size_t most_nodes = std::numeric_limits<int32_t>::max();

    // Returns the first of the new nodes; their weights are to be set.
    size_t add_nodes(size_t count, size_t width) {
        const size_t first = nodes.size();
        // Parts of cases can make more nodes than there are rows.
        if (count > most_nodes - first) throw std::length_error("columns make too large a tree");
        nodes.resize(first + count);
        weights.resize((first + count) * width);
        return first;
    }

    Span<const uint32_t> group(int32_t code) const {
        const auto number = size_t(first_group - code);
        const size_t start = starts_of_groups[number];
        return {grouped.data() + start, starts_of_groups[number + 1] - start};
    }
    size_t n_groups() const { return starts_of_groups.size() - 1; }
    void keep_groups(size_t n) {
        starts_of_groups.resize(n + 1);
        grouped.resize(starts_of_groups.back());
    }
    template <typename Codes>
    int32_t add_group(const Codes& codes) {
        grouped.insert(grouped.end(), codes.begin(), codes.end());
        starts_of_groups.push_back(grouped.size());
        return first_group - int32_t(starts_of_groups.size() - 2);
    }
    // Of the codes whose bits are set, which may be a single one. All groups are added so, or none.
    int32_t add_group_of(uint64_t codes) {
        groups_of_bits.push_back(codes);
        return first_group - int32_t(groups_of_bits.size() - 1);
    }
    uint64_t bits_of(int32_t code) const { return groups_of_bits[size_t(first_group - code)]; }
    // The same as in another part.
    int32_t add_code_of(const Grown& other, int32_t code) {
        if (code > first_group) return code;
        if (!other.groups_of_bits.empty()) return add_group_of(other.bits_of(code));
        return add_group(other.group(code));
    }
};

// Where a node is: in which of several Grown.
struct GrownAt {
    int32_t part;
    uint32_t node;
};

// The surrogates of nodes in this order.
inline void write_surrogates(TreeArrays& tree, const std::vector<Grown>& grown,
                             const Scratch<GrownAt>& order) {
    std::vector<std::vector<const std::vector<Surrogate>*>> of_node;
    bool any = false;
    for (const Grown& part : grown) {
        of_node.emplace_back(part.surrogates.empty() ? 0 : part.nodes.size(), nullptr);
        for (const auto& [node, surrogates] : part.surrogates) of_node.back()[node] = &surrogates;
        any = any || !part.surrogates.empty();
    }
    if (!any) return;
    tree.n_surrogates.resize(order.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
        const auto& nodes = of_node[size_t(order[i].part)];
        if (nodes.empty() || !nodes[order[i].node]) continue;
        tree.n_surrogates[i] = int64_t(nodes[order[i].node]->size());
        for (const Surrogate& surrogate : *nodes[order[i].node]) {
            tree.surrogate_column.push_back(surrogate.column);
            tree.surrogate_threshold.push_back(surrogate.threshold);
            for (const auto& codes : surrogate.codes) {
                tree.surrogate_n_codes.push_back(int64_t(codes.size()));
                for (uint32_t code : codes) tree.surrogate_codes.push_back(code);
            }
        }
    }
}

// The codes that lead to nodes, all together, or more: those of grafts are counted twice.
inline size_t n_codes_of(const Grown& part) {
    size_t n = part.grouped.size();
    for (uint64_t codes : part.groups_of_bits) n += size_t(__builtin_popcountll(codes));
    for (const Node& node : part.nodes) n += size_t(node.code >= 0) + 2 * (node.code == both_sides);
    return n;
}

// Weight, mean and deviation of a node.
constexpr size_t summary_width = 3;

constexpr size_t looked_ahead = 16;  // nodes that are fetched meanwhile
constexpr size_t written_ahead = 4;  // children, and codes, that are written even if there are less

// Write the codes whose bits are set, in fours; returns how many there are.
inline size_t write_bits(uint64_t codes, int64_t* out) {
    const auto n = size_t(__builtin_popcountll(codes));
    do {
        for (size_t k = 0; k < written_ahead; ++k, codes &= codes - 1)
            *out++ = codes ? __builtin_ctzll(codes) : 0;
    } while (codes);
    return n;
}

// Write the nodes of a tree level by level, and the codes that lead to them; returns where each is.
// Which nodes have children, and codes, is anybody's guess, so there is no branch for most.
inline Scratch<GrownAt> write_nodes(TreeArrays& tree, const std::vector<Grown>& grown, size_t n,
                                    size_t n_codes) {
    Scratch<GrownAt> order(n + written_ahead);
    tree.codes.resize(n_codes + written_ahead);
    int64_t* next_code = tree.codes.data();
    const auto node_at = [&](const GrownAt& at) {
        return grown[size_t(at.part)].nodes.data() + at.node;
    };
    order[0] = {0, 0};
    size_t known = 1;
    for (size_t i = 0; i < n; ++i) {
        GrownAt& at = order[i];
        const Node* node = node_at(at);
        if (node->is_graft()) {
            at = {int32_t(node->graft()), node->first_child};
            node = node_at(at);
        }
        if (i + looked_ahead < known) __builtin_prefetch(node_at(order[i + looked_ahead]));
        const auto n_children = size_t(node->n_children);
        for (uint32_t b = 0; b < written_ahead; ++b)
            order[known + b] = {at.part, node->first_child + b};
        for (size_t b = written_ahead; b < n_children; ++b)
            order[known + b] = {at.part, node->first_child + uint32_t(b)};
        known += n_children;
        tree.write(i, *node, n_children, node->cases);
        const int32_t code = node->code;
        const bool is_one = code >= 0;
        const Grown& part = grown[size_t(at.part)];
        if (code <= first_group && !part.groups_of_bits.empty()) {
            const size_t n_bits = write_bits(part.bits_of(code), next_code);
            next_code += n_bits;
            tree.n_codes[i] = int64_t(n_bits);
        } else if (code >= no_code) {
            *next_code = code;
            next_code += is_one;
            tree.n_codes[i] = is_one;
        } else if (code == both_sides) {
            for (int32_t side : {0, 1}) *next_code++ = side;
            tree.n_codes[i] = 2;
        } else {
            const Span<const uint32_t> group = part.group(code);
            next_code = std::copy(group.begin(), group.end(), next_code);
            tree.n_codes[i] = int64_t(group.size());
        }
    }
    tree.codes.resize(size_t(next_code - tree.codes.data()));
    order.resize(n);
    return order;
}

// Number the nodes level by level. The first of `grown` has the root; the others are grafted.
// Nodes and weights are given back as soon as they are written: a tree may take more memory than
// the rows that it is grown from. If `summarised`, nodes have weight, mean and deviation.
inline TreeArrays in_levels(std::vector<Grown>&& grown, size_t width, bool summarised) {
    size_t n = 0;
    size_t n_codes = 0;
    for (const Grown& part : grown) {
        n += part.nodes.size();
        n_codes += n_codes_of(part);
    }
    if (grown.size() > 1)  // a grafted node is its subtree's root as well
        for (const Node& node : grown[0].nodes) n -= node.is_graft();
    TreeArrays tree(n, summarised ? 1 : width, n_codes + written_ahead);
    if (summarised)
        for (auto* array : {&tree.mean, &tree.deviation}) array->resize(n);
    const Scratch<GrownAt> order = write_nodes(tree, grown, n, n_codes);
    write_surrogates(tree, grown, order);
    for (Grown& part : grown) Scratch<Node>().swap(part.nodes);
    for (size_t i = 0; i < n; ++i) {
        const auto weights_of = [&](const GrownAt& at) {
            return &grown[size_t(at.part)].weights[at.node * width];
        };
        if (i + looked_ahead < n) __builtin_prefetch(weights_of(order[i + looked_ahead]));
        if (summarised)
            tree.write_summary(i, weights_of(order[i]));
        else
            tree.write_weights(i, weights_of(order[i]));
    }
    return tree;
}

}  // namespace branchwise
