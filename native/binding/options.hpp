// What growing from classes and from numbers have in common at the border: options, threads, and
// the tree that is handed over.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "binding/tree_arrays.hpp"
#include "core/parallel.hpp"
#include "core/significance.hpp"
#include "records/rows.hpp"

namespace branchwise {

constexpr int64_t most_threads = 4096;
constexpr size_t most_terms = 64;
constexpr int64_t no_limit = int64_t(1) << 62;

inline std::vector<Position> read_positions(const nb::list& list) {
    std::vector<Position> positions;
    for (uint32_t position : read_sizes(list, "positions", 0, uint32_t(Position::microsecond)))
        positions.push_back(Position(position));
    return positions;
}

inline void read_options(Options& options, Fields& given) {
    options.max_depth = given.whole("max_depth", -1, no_limit);
    options.cases_to_split = given.number("cases_to_split", 0);
    options.cases_in_leaf = given.number("cases_in_leaf", 0);
    options.cases_in_branch = given.number("cases_in_branch", 0);
    options.weight_in_leaf = given.number("weight_in_leaf", 0);
    options.min_gain = given.number("min_gain", 0);
    options.weights_are_cases = given.flag("weights_are_cases");
    options.branching = given.choice<Branching>("branching", {"values", "groups", "two-way"});
    options.quinlan_thresholds = given.flag("quinlan_thresholds");
    options.average_gain = given.flag("average_gain");
    options.corrects_values = given.flag("corrects_values");
    options.few_values_to_group = size_t(given.whole("few_values_to_group", 2, no_limit));
    options.positions = read_positions(given.list("positions"));
    options.few_values = read_flags(given.list("few_values"), "few_values");
    options.missing = given.choice<Policy>(
        "missing", {"branch", "split", "largest", "node", "error", "learned", "surrogate"});
    options.unseen =
        given.choice<Policy>("unseen", {"branch", "split", "largest", "node", "error"});
    options.tests_splits = given.flag("tests_splits");
    options.max_log_p = given.number("max_log_p", -1e4, 0);
    options.max_features = size_t(given.whole("max_features", 0, no_limit));
    options.draw_key = given.word("draw_key");
    options.random_splits = given.flag("random_splits");
    options.series = read_numbers(given.list("series"), "series", 0, 3);
    if (options.series.empty() || options.series.size() > most_terms)
        refuse("series must have between 1 and 64 entries");
    options.n_threads = unsigned(given.whole("n_threads", 1, most_threads));
    options.worth_sharing = size_t(given.whole("worth_sharing", 0, no_limit));
}

inline void check_all_options(const Problem& problem, Fields& given) {
    given.check_all_taken();
    if (problem.few_values.size() != problem.columns.size())
        refuse("few_values must have one entry for each column");
    if (problem.positions.size() != problem.columns.size())
        refuse("positions must have one entry for each column");
    const bool two_way_only =
        problem.missing == Policy::learned || problem.missing == Policy::surrogate;
    if (two_way_only && problem.branching != Branching::two_way)
        refuse("missing must not be learned or surrogate unless branching is two-way");
    if (problem.corrects_values &&
        (problem.branching != Branching::two_way || problem.random_splits))
        refuse("corrects_values must be False unless branching is two-way and splits are searched");
    if (problem.random_splits && problem.branching == Branching::groups)
        refuse("random_splits must be False where branching is groups");
}

inline void check_fractions(const Problem& problem) {
    // Parts of cases would be split without end.
    if (problem.fractions && problem.cases_to_split < 1)
        refuse("cases_to_split must be at least 1 with fractions");
    const bool some_missing = std::any_of(problem.columns.begin(), problem.columns.end(),
                                          [](const Column& column) { return column.has_missing; });
    if (problem.missing == Policy::split && some_missing && !problem.fractions)
        refuse("fractions must be True where missing values go down every branch");
}

// How often each row counts. Returns how often all do.
inline double read_times(Problem& problem, Arrays& arrays, const nb::handle& given) {
    const auto times = arrays.vector<Times>(given, "times", problem.n_rows);
    if (problem.weights || problem.fractions)
        refuse("times must be None where there are weights or fractions");
    double total = 0;
    bool sound = true;
    for (Times often : times) {
        sound &= often > 0;
        total += often;
    }
    if (!sound) refuse("times must be at least 1");
    problem.times = times.data();
    return total;
}

// Threads have tables of their own: as many as there is room for in proportion to the rows.
inline unsigned useful_threads(const Problem& problem) {
    const size_t room = std::max<size_t>(most_cells(problem.n_rows) / check_cells(problem), 1);
    return unsigned(std::min<size_t>(problem.n_threads, room));
}

// The rows that may be drawn, in the order of their ranks.
inline Span<const int64_t> read_ranks(Arrays& arrays, nb::handle order, size_t n_rows) {
    const auto by_rank = arrays.vector<int64_t>(order, "order");
    if (by_rank.size() < 1 || by_rank.size() > n_rows)
        refuse("order must have between 1 and n_rows entries");
    bool sound = true;
    for (int64_t row : by_rank) sound &= row >= 0 && size_t(row) < n_rows;
    if (!sound) refuse("order must hold numbers of rows");
    return by_rank;
}

// Grow without the GIL, and lay the tree out; `width`: the weights of a node, which may be weight,
// mean and deviation. None where the reference must grow the tree.
template <typename Grow>
nb::object hand_over_grown(const nb::object& progress, size_t width, const Grow& grow,
                           bool summarised = false) {
    PythonInterruptCheck python(progress);
    const Watch watch = std::ref(python);
    std::unique_ptr<TreeArrays> tree;
    try {
        ReleasedGil released;
        std::vector<Grown> grown = grow(watch);
        if (!python.interrupted())
            tree = std::make_unique<TreeArrays>(in_levels(std::move(grown), width, summarised));
        if (tree) watch(tree->n_nodes());
    } catch (const Undecided&) {
        return nb::none();
    }
    if (python.interrupted()) throw nb::python_error();
    return hand_over(std::move(*tree));
}

}  // namespace branchwise
