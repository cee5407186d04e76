// The border of growing from numbers: a table and options come in, a tree goes out as arrays.

#include "binding/limbs.hpp"
#include "binding/options.hpp"
#include "regression/number_grower.hpp"

namespace branchwise {

namespace {

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

std::vector<Grown> grow_numbers(const Problem& problem, const NumberScale& scale,
                                const Watch& watch) {
    ThreadPool pool(useful_threads(problem), problem.worth_sharing);
    if (problem.weights || problem.fractions)
        return grow_numbers<double>(problem, scale, watch, pool);
    if (problem.times) return grow_numbers<Times>(problem, scale, watch, pool);
    return grow_numbers<uint32_t>(problem, scale, watch, pool);
}

// `values` are in a unit in which none is above 1. The weights of nodes are their moments or, if
// `summarised`, weight, mean and deviation.
nb::object grow_number_tree(nb::list columns, nb::list n_codes, nb::handle values,
                            nb::object weights, nb::object times, nb::dict options,
                            nb::object progress) {
    Problem problem;
    Arrays arrays;
    Fields given("options", options);
    const auto numbers = arrays.vector<double>(values, "values");
    read_columns(problem, arrays, columns, read_sizes(n_codes, "n_codes", 0, most_codes),
                 numbers.size());
    problem.n_classes = 1;
    check_cells(problem);
    double total_of_rows = read_weights(problem, arrays, weights, given);
    if (!times.is_none()) total_of_rows = read_times(problem, arrays, times);
    read_options(problem, given);
    NumberScale scale = read_scale(given, numbers);
    const bool summarised = given.flag("summarised");
    const auto unit = int(given.whole("unit", -1074, 1000));
    check_all_options(problem, given);
    check_fractions(problem);
    if (problem.branching == Branching::groups)
        refuse("branching must be values or two-way where numbers are predicted");
    if (problem.quinlan_thresholds)
        refuse("quinlan_thresholds must be False where numbers are predicted");
    scale.weight_step = problem.weights || problem.fractions ? std::ilogb(problem.weight_step) : 0;
    check_limbs(scale, total_of_rows);
    scale.set_steps();
    const auto grow = [&](const Watch& watch) {
        std::vector<Grown> grown = grow_numbers(problem, scale, watch);
        if (!problem.fractions) add_up_squares(grown, scale);
        if (summarised) summarise_nodes(grown, scale, unit);
        return grown;
    };
    return hand_over_grown(progress, summarised ? summary_width : scale.width(), grow, summarised);
}

}  // namespace

}  // namespace branchwise

void bind_growing_numbers(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("grow_numbers", &branchwise::grow_number_tree, nb::arg("columns"), nb::arg("n_codes"),
          nb::arg("values").none(), nb::arg("weights").none(), nb::arg("times").none(),
          nb::arg("options"), nb::arg("progress").none());
}
