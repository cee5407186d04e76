// The border of growing: a table and options come in, a tree goes out as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <numeric>

#include "binding/limbs.hpp"
#include "binding/tree_arrays.hpp"
#include "bit_rows/bit_grower.hpp"
#include "core/parallel.hpp"
#include "records/record_grower.hpp"
#include "regression/number_grower.hpp"

namespace branchwise {

namespace {

constexpr int64_t most_threads = 4096;
constexpr size_t most_terms = 64;
constexpr int64_t no_limit = int64_t(1) << 62;

// ---- options ---------------------------------------------------------------------

Policy policy(Fields& given, const char* name) {
    return given.choice<Policy>(name, {"branch", "split", "largest", "node", "error"});
}

void read_options(Options& options, Fields& given) {
    options.max_depth = given.whole("max_depth", -1, no_limit);
    options.cases_to_split = given.number("cases_to_split", 0);
    options.cases_in_leaf = given.number("cases_in_leaf", 0);
    options.cases_in_branch = given.number("cases_in_branch", 0);
    options.weight_in_leaf = given.number("weight_in_leaf", 0);
    options.min_gain = given.number("min_gain", 0);
    options.weights_are_cases = given.flag("weights_are_cases");
    options.branching = given.choice<Branching>("branching", {"values", "groups", "two-way"});
    options.quinlan = given.flag("quinlan");
    options.threshold_at_value = given.flag("threshold_at_value");
    options.few_values = read_flags(given.list("few_values"), "few_values");
    options.missing = policy(given, "missing");
    options.unseen = policy(given, "unseen");
    options.series = read_numbers(given.list("series"), "series", 0, 3);
    if (options.series.empty() || options.series.size() > most_terms)
        refuse("series must have between 1 and 64 entries");
    options.n_threads = unsigned(given.whole("n_threads", 1, most_threads));
    options.worth_sharing = size_t(given.whole("worth_sharing", 0, no_limit));
}

void check_all_options(const Problem& problem, Fields& given) {
    given.check_all_taken();
    if (problem.few_values.size() != problem.columns.size())
        refuse("few_values must have one entry for each column");
}

// Sums of impurities are below 2^61, so that what is added to or taken from one of them is no
// overflow: `bits` must be no more than ImpuritySums64 of grow/criteria.py finds for the total, and
// not so few that nothing is left.
void check_impurities(const Problem& problem, double total_of_rows) {
    const double total = problem.total;
    if (total_of_rows > total) refuse("total must be the weight of all rows at least");
    if (problem.whole && (problem.fractions || problem.weight_step != 1.0))
        refuse("whole must be False where weights may be fractions");
    if (problem.fractions && !(problem.weight_step <= std::ldexp(total, -40)))
        refuse("weight_step must be 2**-40 of the total at most");
    const double logarithm = std::log2(total);
    const double largest_sum =
        total * (problem.whole ? std::max(logarithm, 1.0) : std::fabs(logarithm) + 54);
    // Between a half and 1, as ImpuritySums64 has it.
    const double scaled = std::ldexp(largest_sum, problem.bits - 61);
    if (!(scaled > 1e-12 && scaled < 1 + 1e-9))
        refuse("bits must be those of impurities of the total");
}

void check_fractions(const Problem& problem) {
    // Parts of cases would be split without end.
    if (problem.fractions && problem.cases_to_split < 1)
        refuse("cases_to_split must be at least 1 with fractions");
    const bool some_missing = std::any_of(problem.columns.begin(), problem.columns.end(),
                                          [](const Column& column) { return column.has_missing; });
    if (problem.missing == Policy::split && some_missing && !problem.fractions)
        refuse("fractions must be True where missing values go down every branch");
}

// ---- growing ---------------------------------------------------------------------

template <typename W>
std::vector<Grown> grow_records(const Problem& problem, const Impurities& impurities,
                                const Watch& watch, ThreadPool& pool) {
    const Numbers numbers(problem, pool);
    return Team<RecordGrower<W>>(problem, watch, pool).grow([&](ThreadPool& sharing) {
        return RecordGrower<W>(problem, impurities, numbers, sharing);
    });
}

Impurities impurities_of(const Problem& problem, double total_of_rows) {
    const bool numbers = std::any_of(problem.columns.begin(), problem.columns.end(),
                                     [](const Column& column) { return column.numeric; });
    const size_t largest_table = numbers ? Impurities::long_table : Impurities::short_table;
    const double in_table =
        problem.whole ? std::min(total_of_rows, double(most_cells(problem.n_rows))) : -1;
    return Impurities(problem.bits, problem.series, in_table, largest_table);
}

// Threads have tables of their own: as many as there is room for in proportion to the rows.
unsigned useful_threads(const Problem& problem) {
    const size_t room = std::max<size_t>(most_cells(problem.n_rows) / check_cells(problem), 1);
    return unsigned(std::min<size_t>(problem.n_threads, room));
}

std::vector<Grown> grow_classes(const Problem& problem, double total_of_rows, const Watch& watch) {
    const Impurities impurities = impurities_of(problem, total_of_rows);
    ThreadPool pool(useful_threads(problem), problem.worth_sharing);
    std::vector<uint32_t> values;
    if (BitGrower::suits(problem, values)) {
        BitGrower::Buffers buffers;
        return Team<BitGrower>(problem, watch, pool).grow([&](ThreadPool& sharing) {
            return BitGrower(problem, impurities, values, buffers, sharing);
        });
    }
    if (problem.weights || problem.fractions)
        return grow_records<double>(problem, impurities, watch, pool);
    return grow_records<uint32_t>(problem, impurities, watch, pool);
}

// Grow without the GIL, and lay the tree out; `width`: the weights of a node.
template <typename Grow>
nb::dict hand_over_grown(const nb::object& progress, size_t width, const Grow& grow) {
    PythonInterruptCheck python(progress);
    const Watch watch = std::ref(python);
    std::unique_ptr<TreeArrays> tree;
    {
        ReleasedGil released;
        const std::vector<Grown> grown = grow(watch);
        if (!python.interrupted()) tree = std::make_unique<TreeArrays>(in_levels(grown, width));
        if (tree) watch(tree->n_nodes());
    }
    if (python.interrupted()) throw nb::python_error();
    return hand_over(std::move(*tree));
}

nb::dict grow_tree(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                   nb::object weights, nb::dict options, nb::object progress) {
    Problem problem;
    Arrays arrays;
    Fields given("options", options);
    read_rows(problem, arrays, columns, read_sizes(n_codes, "n_codes", 1, most_codes), labels,
              n_classes);
    check_cells(problem);
    const double total_of_rows = read_weights(problem, arrays, weights, given);
    read_options(problem, given);
    problem.criterion = given.choice<Criterion>("criterion", {"gain", "gain_ratio", "gini"});
    problem.bits = int(given.whole("bits", -1100, 1100));
    problem.total = given.number("total", std::numeric_limits<double>::min(), 1e301);
    problem.whole = given.flag("whole");
    check_all_options(problem, given);
    check_impurities(problem, total_of_rows);
    check_fractions(problem);
    return hand_over_grown(progress, size_t(n_classes), [&](const Watch& watch) {
        return grow_classes(problem, total_of_rows, watch);
    });
}

// ---- numbers ---------------------------------------------------------------------

NumberScale read_scale(Fields& given, const Span<const double>& values) {
    NumberScale scale;
    scale.poisson = given.choice<int>("criterion", {"variance", "poisson"}) == 1;
    scale.sums = read_exponents(given.list("sum_exponents"), "sum_exponents");
    scale.squares = read_exponents(given.list("square_exponents"), "square_exponents");
    scale.spare = int(given.whole("case_bits", 0, 64));
    scale.values = values.data();
    bool sound = true;
    for (double value : values) sound &= std::fabs(value) <= 1;
    if (!sound) refuse("values must be between -1 and 1");
    return scale;
}

// The largest limbs must be able to hold all rows.
void check_limbs(const NumberScale& scale, double total_of_rows) {
    for (const auto* exponents : {&scale.sums, &scale.squares})
        if (std::ldexp(total_of_rows, -exponents->front()) > most_steps)
            refuse("sum_exponents and square_exponents must be those of the weights");
}

template <typename W>
std::vector<Grown> grow_numbers(const Problem& problem, const NumberScale& scale,
                                const Watch& watch, ThreadPool& pool) {
    const Numbers numbers(problem, pool);
    return Team<NumberGrower<W>>(problem, watch, pool).grow([&](ThreadPool& sharing) {
        return NumberGrower<W>(problem, scale, numbers, sharing);
    });
}

// The same for numbers, `values`, in a unit in which none is above 1.
nb::dict grow_number_tree(nb::list columns, nb::list n_codes, nb::handle values, nb::object weights,
                          nb::dict options, nb::object progress) {
    Problem problem;
    Arrays arrays;
    Fields given("options", options);
    const auto numbers = arrays.vector<double>(values, "values");
    // Records have the number of a row where those of classes have a label.
    std::vector<uint32_t> row_numbers(std::min(numbers.size(), most_rows));
    std::iota(row_numbers.begin(), row_numbers.end(), 0u);
    read_columns(problem, arrays, columns, read_sizes(n_codes, "n_codes", 1, most_codes),
                 row_numbers.size());
    problem.labels = row_numbers.data();
    problem.n_classes = 1;
    check_cells(problem);
    const double total_of_rows = read_weights(problem, arrays, weights, given);
    if (problem.fractions) refuse("fractions must be False where numbers are predicted");
    read_options(problem, given);
    NumberScale scale = read_scale(given, numbers);
    check_all_options(problem, given);
    check_fractions(problem);
    if (problem.branching == Branching::groups || problem.quinlan)
        refuse("branching must be values or two-way where numbers are predicted, without quinlan");
    scale.weight_step = problem.weights ? std::ilogb(problem.weight_step) : 0;
    check_limbs(scale, total_of_rows);
    return hand_over_grown(progress, scale.width(), [&](const Watch& watch) {
        scale.find_moments(problem);
        ThreadPool pool(useful_threads(problem), problem.worth_sharing);
        return problem.weights ? grow_numbers<double>(problem, scale, watch, pool)
                               : grow_numbers<uint32_t>(problem, scale, watch, pool);
    });
}

// Whether a table has room for all of its codes and classes: in proportion to its rows.
bool has_room(size_t n_codes, size_t n_classes, size_t n_rows) {
    return cells_of(n_codes, n_classes) <= most_cells(n_rows);
}

}  // namespace

}  // namespace branchwise

void bind_growing(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("grow", &branchwise::grow_tree, nb::arg("columns"), nb::arg("n_codes"),
          nb::arg("labels").none(), nb::arg("n_classes"), nb::arg("weights").none(),
          nb::arg("options"), nb::arg("progress").none());
    m.def("grow_numbers", &branchwise::grow_number_tree, nb::arg("columns"), nb::arg("n_codes"),
          nb::arg("values").none(), nb::arg("weights").none(), nb::arg("options"),
          nb::arg("progress").none());
    m.def("holds", &branchwise::has_room, nb::arg("n_codes"), nb::arg("n_classes"),
          nb::arg("n_rows"));
}
