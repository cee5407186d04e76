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
        place_of_code_.resize(most, nowhere);
    }

    double weight(uint32_t row) const { return table_.weights ? table_.weights[row] : 1.0; }

    // Add up what every branch of a node is given, and list it for the children that want it.
    // All sums are exact, so rows may come in any order.
    template <typename Wants>
    Distribution distribute(uint32_t at, const NodeRows& rows, const Wants& wants) {
        const PruneNode& node = tree_.nodes[at];
        const Column& column = table_.columns[size_t(node.column)];
        find_places(node, column, rows);
        Distribution made(node.children.size(), classes_);
        count(rows, first_branch + node.children.size());
        add_up(made);
        wanted_.assign(first_branch + node.children.size(), 0);
        for (size_t b = 0; b < node.children.size(); ++b)
            wanted_[first_branch + b] = wants(node.children[b]);
        if (std::find(wanted_.begin(), wanted_.end(), 1) != wanted_.end()) list_wanted(rows, made);
        if (new_values_ && !column.numeric) find_new_values(column, rows, made);
        if (node.missing_to != stop_here) divide_missing(rows, made);
        return made;
    }

  private:
    // Places of rows: those whose value has no branch, those that miss it, and the branches.
    static constexpr uint32_t nowhere = 0, missing = 1, first_branch = 2;

    // Only the codes that have a branch are marked meanwhile: a column may have very many.
    void find_places(const PruneNode& node, const Column& column, const NodeRows& rows) {
        const auto mark = [&](uint32_t first, uint32_t step) {
            for (size_t b = 0; b < node.children.size(); ++b) {
                const PruneNode& child = tree_.nodes[node.children[b]];
                for (uint32_t k = child.code_begin; k < child.code_end; ++k)
                    place_of_code_[tree_.codes[k]] = first + uint32_t(b) * step;
            }
        };
        mark(first_branch, 1);
        find_places_of(node, column, rows.whole, places_);
        find_places_of(node, column, rows.fractions, places_of_fractions_);
        mark(nowhere, 0);
        if (!column.numeric) place_of_code_[column.missing_code()] = nowhere;
    }

    template <typename Rows>
    void find_places_of(const PruneNode& node, const Column& column, const Rows& rows,
                        std::vector<uint32_t>& places) {
        places.resize(rows.size());
        if (rows.empty()) return;
        const bool routed = surrogates_.any();
        const uint32_t lacking = routed ? missing : place_of_missing(node);
        if (column.numeric) {
            const uint32_t sides[] = {place_of_code_[0], place_of_code_[1]};
            const double* const numbers = column.numbers;
            const double threshold = node.threshold;
            write_places(rows, places, [=](uint32_t row) {
                const double number = numbers[row];
                return std::isnan(number) ? lacking : sides[number > threshold];
            });
        } else {
            place_of_code_[column.missing_code()] = lacking;
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

    // Where missing values go that no surrogate routes; to be divided, or to go no further, if not
    // to a branch.
    static uint32_t place_of_missing(const PruneNode& node) {
        return node.missing_to < 0 ? missing : first_branch + uint32_t(node.missing_to);
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
        constexpr int32_t none = -1;
        for (size_t i = 0; i < rows.size(); ++i) {
            if (places[i] != missing) continue;
            const int32_t branch = surrogates_.branch(node.origin, rows[i].row, none);
            places[i] = branch == none ? place_of_missing(node) : first_branch + uint32_t(branch);
        }
    }

    // ---- Sums by place.

    void count(const NodeRows& rows, size_t n_places) {
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
        std::copy_n(&weights_[first_branch * classes_], made.weights.size(), made.weights.begin());
        std::copy_n(&cases_[first_branch], made.cases.size(), made.cases.begin());
        sizes_.assign(made.cases.size(), 0.0);
        for (size_t k = 0; k < made.weights.size(); ++k) sizes_[k / classes_] += made.weights[k];
    }

    bool has_any(uint32_t place) const { return n_whole_[place] + n_fractions_[place] > 0; }

    // ---- Lists.

    // The rows of the children that want them, with room for fractions of missing ones.
    void list_wanted(const NodeRows& rows, Distribution& made) {
        const size_t n_missing = n_whole_[missing] + n_fractions_[missing];
        WholeRow unwanted;
        next_.assign(wanted_.size(), &unwanted);
        for (size_t b = 0; b < made.by_branch.size(); ++b) {
            const size_t place = first_branch + b;
            if (!wanted_[place]) continue;
            made.by_branch[b].whole.resize(n_whole_[place]);
            made.by_branch[b].fractions.reserve(n_fractions_[place] + n_missing);
            next_[place] = made.by_branch[b].whole.data();
        }
        // Which branch is next cannot be predicted, so there is no jump.
        for (size_t i = 0; i < rows.whole.size(); ++i) {
            WholeRow*& next = next_[places_[i]];
            *next = rows.whole[i];
            next += wanted_[places_[i]];
        }
        for (size_t i = 0; i < rows.fractions.size(); ++i) {
            const uint32_t place = places_of_fractions_[i];
            if (wanted_[place])
                made.by_branch[place - first_branch].fractions.push_back(rows.fractions[i]);
        }
    }

    // Values without a branch, in order; their weights come after those of branches.
    void find_new_values(const Column& column, const NodeRows& rows, Distribution& made) {
        if (!has_any(nowhere)) return;
        std::vector<uint32_t> codes;
        for (size_t i = 0; i < rows.whole.size(); ++i)
            if (places_[i] == nowhere) codes.push_back(column.at(rows.whole[i].row));
        for (size_t i = 0; i < rows.fractions.size(); ++i)
            if (places_of_fractions_[i] == nowhere)
                codes.push_back(column.at(rows.fractions[i].row));
        std::sort(codes.begin(), codes.end());
        codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
        for (uint32_t code : codes) made.new_values.push_back({code, {}});
        const size_t n_branches = sizes_.size();
        sizes_.resize(n_branches + codes.size(), 0.0);
        const auto value_of = [&](uint32_t row) {
            return size_t(std::lower_bound(codes.begin(), codes.end(), column.at(row)) -
                          codes.begin());
        };
        for (size_t i = 0; i < rows.whole.size(); ++i) {
            if (places_[i] != nowhere) continue;
            const size_t value = value_of(rows.whole[i].row);
            made.new_values[value].second.whole.push_back(rows.whole[i]);
            sizes_[n_branches + value] += weight(rows.whole[i].row);
        }
        for (size_t i = 0; i < rows.fractions.size(); ++i) {
            if (places_of_fractions_[i] != nowhere) continue;
            const size_t value = value_of(rows.fractions[i].row);
            made.new_values[value].second.fractions.push_back(rows.fractions[i]);
            sizes_[n_branches + value] += rows.fractions[i].weight;
        }
    }

    // Give each branch a fraction of the rows that miss the value, by the weight that it has.
    void divide_missing(const NodeRows& rows, Distribution& made) const {
        if (!has_any(missing)) return;
        double known = 0;
        for (double size : sizes_) known += size;
        for (size_t i = 0; i < rows.whole.size(); ++i) {
            if (places_[i] != missing) continue;
            const WholeRow& row = rows.whole[i];
            divide({row.row, row.label, weight(row.row), 1.0}, known, made);
        }
        for (size_t i = 0; i < rows.fractions.size(); ++i)
            if (places_of_fractions_[i] == missing) divide(rows.fractions[i], known, made);
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
            if (wanted_[first_branch + b]) made.by_branch[b].fractions.push_back(given);
        }
    }

    const Table& table_;
    const SurrogateRoutes& surrogates_;
    const bool new_values_;
    const PruneTree& tree_;
    const size_t classes_;

    // Scratch, of the node at hand.
    std::vector<uint32_t> place_of_code_;  // all nowhere between nodes
    std::vector<uint32_t> places_, places_of_fractions_;
    std::vector<uint32_t> whole_;                // by place and class
    std::vector<double> weights_;                // by place and class
    std::vector<size_t> n_whole_, n_fractions_;  // by place
    std::vector<double> cases_;                  // by place
    std::vector<double> sizes_;                  // of branches, then of new values
    std::vector<uint8_t> wanted_;                // by place
    std::vector<WholeRow*> next_;                // by place
};

}  // namespace branchwise
