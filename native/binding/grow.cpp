// The border of growing from classes: a table and options come in, a tree goes out as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/options.hpp"
#include "bit_rows/bit_grower.hpp"
#include "core/parallel.hpp"
#include "records/record_grower.hpp"

namespace branchwise {

namespace {

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
    const bool gini = problem.criterion == Criterion::gini;
    const size_t largest_table = numbers ? Impurities::long_table
                                 : gini  ? Impurities::gini_table
                                         : Impurities::short_table;
    const double in_table =
        problem.whole ? std::min(total_of_rows, double(most_cells(problem.n_rows))) : -1;
    return Impurities(problem.bits, problem.series, in_table, largest_table);
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

nb::object grow_tree(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                     nb::object weights, nb::dict options, nb::object progress) {
    Problem problem;
    Arrays arrays;
    Fields given("options", options);
    read_rows(problem, arrays, columns, read_sizes(n_codes, "n_codes", 0, most_codes), labels,
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
    const auto grow = [&](const Watch& watch) {
        return grow_classes(problem, total_of_rows, watch);
    };
    return hand_over_grown(progress, size_t(n_classes), grow);
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
    m.def("holds", &branchwise::has_room, nb::arg("n_codes"), nb::arg("n_classes"),
          nb::arg("n_rows"));
}
