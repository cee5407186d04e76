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

std::vector<Grown> grow_bits(const Problem& problem, const Impurities& impurities,
                             const RootRows& root_rows, const Watch& watch, ThreadPool& pool) {
    BitGrower::Buffers buffers;
    return Team<BitGrower>(problem, watch, pool).grow([&](ThreadPool& sharing) {
        return BitGrower(problem, impurities, root_rows, buffers, sharing);
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
    if (!problem.times && BitGrower::suits(problem, values))
        return grow_bits(problem, impurities, TableRows(problem, BitLayout(values)), watch, pool);
    if (problem.weights || problem.fractions)
        return grow_records<double>(problem, impurities, watch, pool);
    if (problem.times) return grow_records<Times>(problem, impurities, watch, pool);
    return grow_records<uint32_t>(problem, impurities, watch, pool);
}

// All that is left once the rows are read; returns the weight of all of them.
double read_class_options(Problem& problem, Arrays& arrays, nb::handle weights, nb::handle times,
                          Fields& given) {
    check_cells(problem);
    double total_of_rows = read_weights(problem, arrays, weights, given);
    if (!times.is_none()) total_of_rows = read_times(problem, arrays, times);
    read_options(problem, given);
    problem.criterion = given.choice<Criterion>("criterion", {"gain", "gain_ratio", "gini"});
    problem.bits = int(given.whole("bits", -1100, 1100));
    problem.total = given.number("total", std::numeric_limits<double>::min(), 1e301);
    problem.whole = given.flag("whole");
    check_all_options(problem, given);
    check_impurities(problem, total_of_rows);
    check_fractions(problem);
    return total_of_rows;
}

nb::object grow_tree(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                     nb::object weights, nb::object times, nb::dict options, nb::object progress) {
    Problem problem;
    Arrays arrays;
    Fields given("options", options);
    read_rows(problem, arrays, columns, read_sizes(n_codes, "n_codes", 0, most_codes), labels,
              n_classes);
    const double total_of_rows = read_class_options(problem, arrays, weights, times, given);
    const auto grow = [&](const Watch& watch) {
        return grow_classes(problem, total_of_rows, watch);
    };
    return hand_over_grown(progress, size_t(n_classes), grow);
}

// ---- forests -----------------------------------------------------------------------

// The rows of a forest, as bits, and how its trees are grown. Trees have the same options but for
// the order of columns and the key of draws; each has its own bootstrap sample.
class BitForest {
  public:
    // `problem` has the options, for as many rows as a tree has.
    BitForest(Problem problem, const Table& table, const std::vector<uint32_t>& values,
              const Span<const int64_t>& order)
        : problem_(std::move(problem)),
          layout_(values),
          impurities_(impurities_of(problem_, double(problem_.n_rows))),
          pool_(1, 0),
          table_(table, layout_, order, pool_) {
        for (Column& column : problem_.columns) column.codes = nullptr;  // they may be gone
        problem_.labels = nullptr;
    }

    // The tree has the columns of the table.
    nb::object grow(nb::list columns, uint64_t sample_key, uint64_t draw_key,
                    nb::object progress) const {
        const std::vector<uint32_t> order = read_order(columns);
        Problem problem = problem_;
        for (size_t j = 0; j < order.size(); ++j) {
            problem.columns[j] = problem_.columns[order[j]];
            problem.few_values[j] = problem_.few_values[order[j]];
            problem.positions[j] = problem_.positions[order[j]];
        }
        problem.draw_key = draw_key;
        const SampleRows rows(table_, layout_.in_order_of(order), sample_key, problem.n_rows);
        const auto grow = [&](const Watch& watch) {
            ThreadPool alone(1, 0);
            std::vector<Grown> grown = grow_bits(problem, impurities_, rows, watch, alone);
            for (Grown& part : grown)
                for (Node& node : part.nodes)
                    if (node.column >= 0) node.column = int32_t(order[size_t(node.column)]);
            return grown;
        };
        return hand_over_grown(progress, size_t(problem.n_classes), grow);
    }

  private:
    std::vector<uint32_t> read_order(const nb::list& columns) const {
        const size_t n = problem_.columns.size();
        std::vector<uint32_t> order = read_sizes(columns, "columns", 0, most_codes);
        std::vector<bool> seen(n, false);
        bool sound = order.size() == n;
        for (uint32_t column : order) {
            sound = sound && column < n && !seen[column];
            if (sound) seen[column] = true;
        }
        if (!sound) refuse("columns must hold each number of a column once");
        return order;
    }

    Problem problem_;
    const BitLayout layout_;
    const Impurities impurities_;
    ThreadPool pool_;
    const DrawnTable table_;
};

// None where rows cannot be bits. `order` has the rows that may be drawn.
nb::object make_forest(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                       nb::handle order, int64_t n_drawn, nb::dict options) {
    Problem problem;
    Arrays arrays;
    Fields given("options", options);
    read_rows(problem, arrays, columns, read_sizes(n_codes, "n_codes", 0, most_codes), labels,
              n_classes);
    const Table table = problem;
    check_whole("n_drawn", n_drawn, 1, int64_t(most_rows));
    problem.n_rows = size_t(n_drawn);
    read_class_options(problem, arrays, nb::none(), nb::none(), given);
    const auto by_rank = read_ranks(arrays, order, table.n_rows);
    std::vector<uint32_t> values;
    if (!BitGrower::suits(problem, values)) return nb::none();
    return nb::cast(new BitForest(std::move(problem), table, values, by_rank));
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
          nb::arg("times").none(), nb::arg("options"), nb::arg("progress").none());
    using branchwise::BitForest;
    nb::class_<BitForest>(m, "BitForest")
        .def("grow", &BitForest::grow, nb::arg("columns"), nb::arg("sample_key"),
             nb::arg("draw_key"), nb::arg("progress").none());
    m.def("bit_forest", &branchwise::make_forest, nb::arg("columns"), nb::arg("n_codes"),
          nb::arg("labels").none(), nb::arg("n_classes"), nb::arg("order").none(),
          nb::arg("n_drawn"), nb::arg("options"));
    m.def("holds", &branchwise::has_room, nb::arg("n_codes"), nb::arg("n_classes"),
          nb::arg("n_rows"));
}
