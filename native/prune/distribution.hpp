// What the rows of a node bring to its branches while a tree is pruned, where cases may be
// fractional or surrogates route them: sums by class, and the rows of the branches that want them.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "prune/state.hpp"
#include "prune/surrogate_routes.hpp"

namespace branchwise {

// A row with all of its weight. Most rows are, so they are kept without it.
struct WholeRow {
    uint32_t row, label;
};

// A fraction of a row.
struct Fraction {
    uint32_t row, label;
    double weight;
    double share;  // of a case
};

struct NodeRows {
    Array<WholeRow> whole;
    Array<Fraction> fractions;

    size_t size() const { return whole.size() + fractions.size(); }
};

struct Distribution {
    Distribution(size_t n_branches, size_t classes)
        : by_branch(n_branches), weights(n_branches * classes, 0.0), cases(n_branches, 0.0) {}

    std::vector<NodeRows> by_branch;                        // of the branches whose rows are wanted
    std::vector<double> weights;                            // by branch and class
    std::vector<double> cases;                              // by branch
    std::vector<std::pair<uint32_t, NodeRows>> new_values;  // codes without a branch, in order
};

class Distributor {
  public:
    Distributor(const Table& table, const SurrogateRoutes& surrogates, bool new_values,
                const PruneTree& tree)
        : table_(table),
          surrogates_(surrogates),
          new_values_(new_values),
          tree_(tree),
          classes_(tree.classes) {
        uint32_t most = 2;
        for (const Column& column : table.columns)
            most = std::max(most, column.numeric ? 2 : column.n_codes);
        place_of_code_.resize(most);
    }

    double weight(uint32_t row) const { return table_.weights ? table_.weights[row] : 1.0; }

    // Add up what every branch of a node is given, and list it for the children that want it.
    // All sums are exact, so rows may come in any order.
    template <typename Wants>
    Distribution distribute(uint32_t at, const NodeRows& rows, const Wants& wants) {
        const PruneNode& node = tree_.nodes[at];
        const Column& column = table_.columns[size_t(node.column)];
        missing_ = uint32_t(node.children.size());
        nowhere_ = missing_ + 1;
        find_places(node, column, rows.whole, places_);
        find_places(node, column, rows.fractions, places_of_fractions_);
        Distribution made(node.children.size(), classes_);
        count(rows);
        add_up(made);
        wanted_.assign(nowhere_ + 1, 0);
        for (size_t b = 0; b < node.children.size(); ++b) wanted_[b] = wants(node.children[b]);
        if (std::count(wanted_.begin(), wanted_.end(), 1)) list_wanted(rows, made);
        if (new_values_ && !column.numeric) find_new_values(column, rows, made);
        if (node.missing_to != stop_here) divide_missing(rows, made);
        return made;
    }

  private:
    // ---- Places: branches, then that of missing values, then that of values without a branch.

    template <typename Rows>
    void find_places(const PruneNode& node, const Column& column, const Rows& rows,
                     std::vector<uint32_t>& places) {
        places.resize(rows.size());
        if (rows.empty()) return;
        const bool routed = surrogates_.any();
        const uint32_t missing =
            routed || node.missing_to < 0 ? missing_ : uint32_t(node.missing_to);
        std::fill(place_of_code_.begin(), place_of_code_.end(), nowhere_);
        for (uint32_t b = 0; b < missing_; ++b) {
            const PruneNode& child = tree_.nodes[node.children[b]];
            for (uint32_t k = child.code_begin; k < child.code_end; ++k)
                place_of_code_[tree_.codes[k]] = b;
        }
        if (column.numeric) {
            const uint32_t sides[] = {place_of_code_[0], place_of_code_[1]};
            const double* const numbers = column.numbers;
            const double threshold = node.threshold;
            write_places(rows, places, [=](uint32_t row) {
                const double number = numbers[row];
                return std::isnan(number) ? missing : sides[number > threshold];
            });
        } else {
            place_of_code_[column.missing_code()] = missing;
            const uint32_t* const place = place_of_code_.data();
            if (column.width == 1) {
                const auto* codes = static_cast<const uint8_t*>(column.codes);
                write_places(rows, places, [=](uint32_t row) { return place[codes[row]]; });
            } else {
                write_places(rows, places, [&](uint32_t row) { return place[column.at(row)]; });
            }
        }
        if (routed) route_missing(node, rows, places);
    }

    template <typename Rows, typename PlaceOf>
    static void write_places(const Rows& rows, std::vector<uint32_t>& places,
                             const PlaceOf& place_of) {
        uint32_t* place = places.data();
        for (const auto& part : rows) *place++ = place_of(part.row);
    }

    // By the surrogates of the node, then as missing values go.
    template <typename Rows>
    void route_missing(const PruneNode& node, const Rows& rows,
                       std::vector<uint32_t>& places) const {
        const int32_t others = node.missing_to < 0 ? int32_t(missing_) : node.missing_to;
        for (size_t i = 0; i < rows.size(); ++i)
            if (places[i] == missing_)
                places[i] = uint32_t(surrogates_.branch(node.origin, rows[i].row, others));
    }

    // ---- Sums by place.

    void count(const NodeRows& rows) {
        const size_t n_places = nowhere_ + 1;
        whole_.assign(n_places * classes_, 0);
        for (size_t i = 0; i < rows.whole.size(); ++i)
            ++whole_[places_[i] * classes_ + rows.whole[i].label];
        weights_.assign(n_places * classes_, 0.0);
        if (table_.weights)
            for (size_t i = 0; i < rows.whole.size(); ++i)
                weights_[places_[i] * classes_ + rows.whole[i].label] +=
                    table_.weights[rows.whole[i].row];
        else
            std::copy(whole_.begin(), whole_.end(), weights_.begin());
        n_whole_.assign(n_places, 0);
        for (size_t k = 0; k < whole_.size(); ++k) n_whole_[k / classes_] += whole_[k];
        cases_.assign(n_whole_.begin(), n_whole_.end());
        n_fractions_.assign(n_places, 0);
        for (size_t i = 0; i < rows.fractions.size(); ++i) {
            const uint32_t place = places_of_fractions_[i];
            weights_[place * classes_ + rows.fractions[i].label] += rows.fractions[i].weight;
            cases_[place] += rows.fractions[i].share;
            ++n_fractions_[place];
        }
    }

    // What branches are given by rows whose value is known, or whose place is.
    void add_up(Distribution& made) {
        std::copy_n(weights_.begin(), made.weights.size(), made.weights.begin());
        std::copy_n(cases_.begin(), made.cases.size(), made.cases.begin());
        sizes_.assign(made.cases.size(), 0.0);
        for (size_t k = 0; k < made.weights.size(); ++k) sizes_[k / classes_] += made.weights[k];
    }

    // ---- Lists.

    // The rows of the children that want them, with room for fractions of missing ones.
    void list_wanted(const NodeRows& rows, Distribution& made) {
        const size_t n_missing = n_whole_[missing_] + n_fractions_[missing_];
        WholeRow unwanted;
        next_.assign(nowhere_ + 1, &unwanted);
        for (size_t b = 0; b < made.by_branch.size(); ++b) {
            if (!wanted_[b]) continue;
            made.by_branch[b].whole.resize(n_whole_[b]);
            made.by_branch[b].fractions.reserve(n_fractions_[b] + n_missing);
            next_[b] = made.by_branch[b].whole.data();
        }
        // Which branch is next cannot be predicted, so there is no jump.
        for (size_t i = 0; i < rows.whole.size(); ++i) {
            WholeRow*& next = next_[places_[i]];
            *next = rows.whole[i];
            next += wanted_[places_[i]];
        }
        for (size_t i = 0; i < rows.fractions.size(); ++i)
            if (wanted_[places_of_fractions_[i]])
                made.by_branch[places_of_fractions_[i]].fractions.push_back(rows.fractions[i]);
    }

    // Values without a branch, in order; their weights come after those of branches.
    void find_new_values(const Column& column, const NodeRows& rows, Distribution& made) {
        if (n_whole_[nowhere_] + n_fractions_[nowhere_] == 0) return;
        auto& found = made.new_values;
        const auto value = [&](uint32_t row) -> NodeRows& {
            const uint32_t code = column.at(row);
            const auto at = std::lower_bound(
                found.begin(), found.end(), code,
                [](const auto& known, uint32_t wanted) { return known.first < wanted; });
            if (at != found.end() && at->first == code) return at->second;
            return found.insert(at, {code, {}})->second;
        };
        for (size_t i = 0; i < rows.whole.size(); ++i)
            if (places_[i] == nowhere_) value(rows.whole[i].row).whole.push_back(rows.whole[i]);
        for (size_t i = 0; i < rows.fractions.size(); ++i)
            if (places_of_fractions_[i] == nowhere_)
                value(rows.fractions[i].row).fractions.push_back(rows.fractions[i]);
        for (const auto& [code, given] : found) {
            double size = 0;
            for (const WholeRow& row : given.whole) size += weight(row.row);
            for (const Fraction& part : given.fractions) size += part.weight;
            sizes_.push_back(size);
        }
    }

    // Give each branch a fraction of the rows that miss the value, by the weight that it has.
    void divide_missing(const NodeRows& rows, Distribution& made) const {
        if (n_whole_[missing_] + n_fractions_[missing_] == 0) return;
        double known = 0;
        for (double size : sizes_) known += size;
        for (size_t i = 0; i < rows.whole.size(); ++i) {
            if (places_[i] != missing_) continue;
            const WholeRow& row = rows.whole[i];
            divide({row.row, row.label, weight(row.row), 1.0}, known, made);
        }
        for (size_t i = 0; i < rows.fractions.size(); ++i)
            if (places_of_fractions_[i] == missing_) divide(rows.fractions[i], known, made);
    }

    void divide(const Fraction& part, double known, Distribution& made) const {
        const size_t n_branches = made.by_branch.size();
        for (size_t b = 0; b < sizes_.size(); ++b) {
            const double size = sizes_[b] / known;
            const double weight = on_grid(part.weight * size, table_.weight_step);
            if (!(weight > 0)) continue;
            const double share = on_grid(part.share * size, table_.case_step);
            const Fraction given{part.row, part.label, weight, share};
            if (b >= n_branches) {
                made.new_values[b - n_branches].second.fractions.push_back(given);
                continue;
            }
            made.weights[b * classes_ + part.label] += weight;
            made.cases[b] += share;
            if (wanted_[b]) made.by_branch[b].fractions.push_back(given);
        }
    }

    const Table& table_;
    const SurrogateRoutes& surrogates_;
    const bool new_values_;
    const PruneTree& tree_;
    const size_t classes_;

    // Of the node at hand; its places, and scratch.
    uint32_t missing_ = 0, nowhere_ = 0;
    std::vector<uint32_t> place_of_code_, places_, places_of_fractions_;
    std::vector<uint32_t> whole_;                // by place and class
    std::vector<double> weights_;                // by place and class
    std::vector<size_t> n_whole_, n_fractions_;  // by place
    std::vector<double> cases_;                  // by place
    std::vector<double> sizes_;                  // of branches, then of new values
    std::vector<uint8_t> wanted_;                // by place
    std::vector<WholeRow*> next_;                // by place
};

}  // namespace branchwise
