// The border between Python and the kernel: checks every size and index, releases
// the GIL, and turns what comes out into arrays. Nothing here decides anything.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <limits>
#include <memory>
#include <string>

#include "binding/tree_arrays.hpp"
#include "core/score_bounds.hpp"
#include "strings/string_codes.hpp"
#include "predict/apply.hpp"

using namespace branchwise;

void bind_pruning(nb::module_& m);
void bind_tallying(nb::module_& m);

namespace {

constexpr int64_t most_threads = 4096;
constexpr size_t most_terms = 64;

// Number the nodes level by level and lay them out as arrays.
struct GrownArrays : TreeArrays {
    GrownArrays(const std::vector<Grown>& grown, size_t classes) {
        size_t n = 0;
        size_t n_all_codes = 0;
        for (const Grown& part : grown) n += part.nodes.size();
        if (grown.size() > 1)  // a grafted node is its subtree's root as well
            for (const Node& node : grown[0].nodes) n -= node.graft >= 0;
        resize(n, classes);
        size_t grouped = 0;
        for (const Grown& part : grown)
            for (const auto& group : part.groups) grouped += group.size();
        codes.resize(2 * n + grouped);
        struct Place {
            int32_t part;
            uint32_t node;
        };
        constexpr size_t ahead = 16;
        Array<Place> order(n);
        order[0] = {0, 0};
        size_t known = 1;
        for (size_t i = 0; i < n; ++i) {
            Place at = order[i];
            const Node* node = &grown[size_t(at.part)].nodes[at.node];
            if (node->graft >= 0) {
                at = {node->graft, node->first_child};
                node = &grown[size_t(at.part)].nodes[at.node];
            }
            if (i + ahead < known)
                __builtin_prefetch(
                    &grown[size_t(order[i + ahead].part)].nodes[order[i + ahead].node]);
            for (int32_t b = 0; b < node->n_children; ++b)
                order[known++] = {at.part, node->first_child + uint32_t(b)};
            column[i] = node->column;
            n_children[i] = node->n_children;
            missing_to[i] = node->missing_to;
            unseen_to[i] = node->unseen_to;
            threshold[i] =
                node->column < 0 ? std::numeric_limits<double>::quiet_NaN() : node->threshold;
            cases[i] = node->cases;
            n_codes[i] = node->code >= 0 ? 1 : node->code == both_sides ? 2 : 0;
            if (node->code >= 0) codes[n_all_codes++] = node->code;
            if (node->code <= first_group) {
                const std::vector<uint32_t>& group = grown[size_t(at.part)].group(node->code);
                n_codes[i] = int64_t(group.size());
                for (uint32_t code : group) codes[n_all_codes++] = code;
            }
            if (node->code == both_sides) {
                codes[n_all_codes++] = 0;
                codes[n_all_codes++] = 1;
            }
            const double* from = &grown[size_t(at.part)].weights[at.node * classes];
            for (size_t c = 0; c < classes; ++c) weights[i * classes + c] = from[c];
        }
        codes.resize(n_all_codes);
    }
};

// Threads have tables of their own: as many as there is room for in proportion to the rows.
unsigned useful_threads(int64_t n_threads, const Problem& problem) {
    check_whole("n_threads", n_threads, 1, most_threads);
    const size_t room = std::max<size_t>(most_cells(problem.n_rows) / check_cells(problem), 1);
    return unsigned(std::min<size_t>(size_t(n_threads), room));
}

void read_limits(Problem& problem, int64_t max_depth, double cases_to_split, double cases_in_leaf,
                 double cases_in_branch, double min_gain) {
    // Parts of cases would be split without end.
    check_number("cases_to_split", cases_to_split, problem.fractions ? 1 : 0);
    check_number("cases_in_leaf", cases_in_leaf, 0);
    check_number("cases_in_branch", cases_in_branch, 0);
    check_number("min_gain", min_gain, 0);
    problem.max_depth = max_depth;
    problem.cases_to_split = cases_to_split;
    problem.cases_in_leaf = cases_in_leaf;
    problem.cases_in_branch = cases_in_branch;
    problem.min_gain = min_gain;
}

nb::dict grow_tree(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                   nb::object weights, bool fractions, double weight_step, double case_step,
                   bool weights_are_cases, int64_t criterion, int64_t max_depth,
                   double cases_to_split, double cases_in_leaf, double cases_in_branch,
                   double min_gain, int64_t branching, bool quinlan, bool threshold_at_value,
                   nb::list few_values, int64_t missing, int64_t unseen, int64_t bits,
                   nb::list series, double total, bool whole, int64_t n_threads,
                   size_t worth_sharing, nb::object progress) {
    Problem problem;
    Arrays arrays;
    read_rows(problem, arrays, columns, read_sizes(n_codes, "n_codes", 1, most_codes), labels,
              n_classes);
    const unsigned threads = useful_threads(n_threads, problem);
    const double total_of_rows =
        read_weights(problem, arrays, weights, fractions, weight_step, case_step);
    check_impurities(bits, total, whole, total_of_rows, problem);
    std::vector<double> terms = read_numbers(series, "series", 0, 3);
    if (terms.empty() || terms.size() > most_terms)
        refuse("series must have between 1 and 64 entries");
    check_whole("criterion", criterion, 0, 2);
    check_whole("branching", branching, 0, 2);
    check_whole("missing", missing, 0, 4);
    check_whole("unseen", unseen, 0, 4);
    problem.criterion = static_cast<Criterion>(criterion);
    problem.branching = static_cast<Branching>(branching);
    problem.weights_are_cases = weights_are_cases;
    problem.missing = static_cast<Policy>(missing);
    problem.unseen = static_cast<Policy>(unseen);
    read_limits(problem, max_depth, cases_to_split, cases_in_leaf, cases_in_branch, min_gain);
    const bool some_missing = std::any_of(problem.columns.begin(), problem.columns.end(),
                                          [](const Column& column) { return column.has_missing; });
    if (problem.missing == Policy::split && some_missing && !fractions)
        refuse("fractions must be True where missing values go down every branch");
    problem.quinlan = quinlan;
    problem.threshold_at_value = threshold_at_value;
    problem.few_values = read_flags(few_values, "few_values");
    if (problem.few_values.size() != problem.columns.size())
        refuse("few_values must have one entry for each column");
    problem.worth_sharing = worth_sharing;

    PythonInterruptCheck python(progress);
    const Watch watch = std::ref(python);
    const auto classes = static_cast<size_t>(n_classes);
    std::unique_ptr<GrownArrays> grown_arrays;
    {
        ReleasedGil released;
        const bool numbers = std::any_of(problem.columns.begin(), problem.columns.end(),
                                         [](const Column& column) { return column.numeric; });
        const size_t largest_table = numbers ? Impurities::long_table : Impurities::short_table;
        const double in_table =
            whole ? std::min(total_of_rows, double(most_cells(problem.n_rows))) : -1;
        const Impurities impurities(int(bits), std::move(terms), in_table, largest_table);
        const std::vector<Grown> grown = grow(problem, impurities, watch, threads);
        if (!python.interrupted()) grown_arrays = std::make_unique<GrownArrays>(grown, classes);
        if (grown_arrays) watch(grown_arrays->column.size());
    }
    if (python.interrupted()) throw nb::python_error();

    return grown_arrays->hand_over(classes);
}

// ---- prediction ----------------------------------------------------------------

Walk* make_walk(nb::handle column, nb::handle threshold, nb::handle n_children,
                nb::handle missing_to, nb::handle unseen_to, nb::handle n_codes, nb::handle codes,
                nb::handle sizes, nb::handle labels, nb::list values) {
    Arrays arrays;
    const std::vector<uint32_t> given = read_sizes(values, "values", 0, most_codes);
    std::vector<uint32_t> limits = given;
    std::replace(limits.begin(), limits.end(), 0u, 2u);  // the sides of a threshold
    TreeView tree = read_tree(
        arrays, {column, threshold, n_children, missing_to, unseen_to, n_codes, codes}, limits);
    tree.sizes = arrays.vector<double>(sizes, "sizes", tree.n_nodes).data;
    const auto label = arrays.vector<uint8_t>(labels, "labels");
    if (label.size != 0 && label.size != tree.n_nodes)
        refuse("labels must have one entry for each node, or none");
    if (label.size) tree.labels = label.data;
    ReleasedGil released;
    return new Walk(tree, given);
}

// Checks all but how large codes are: the walk does, while it has them at hand.
std::vector<Cells> read_cells_of(const Walk& walk, Arrays& arrays, const nb::list& columns,
                                 size_t n_rows) {
    const JumpTable& jump_table = walk.jump_table();
    const nb::tuple given = items_of(columns);
    if (given.size() != jump_table.values.size())
        refuse("columns must have one entry for each column of the tree");
    if (n_rows >= JumpTable::fractional) refuse("n_rows must be below 2**32 - 1");
    if (n_rows && jump_table.split_tests.empty())
        refuse("n_rows must be 0 for a tree that tests nothing");
    std::vector<Cells> cells(given.size());
    for (size_t j = 0; j < cells.size(); ++j) {
        if (!jump_table.used[j]) continue;
        const std::string name = item("columns", j);
        const Column column = read_cells(arrays, given[j], name, n_rows);
        if (column.numeric != (jump_table.values[j] == 0))
            refuse(name + (column.numeric ? " must hold codes" : " must hold numbers"));
        cells[j].data = column.numeric ? column.numbers : column.codes;
        cells[j].width = column.width;
    }
    return cells;
}

// The label of each row; None where a row goes down every branch somewhere.
nb::object label(const Walk& walk, nb::list columns, size_t n_rows) {
    if (walk.jump_table().label_at.empty()) refuse("labels were not given: a tree without labels");
    Arrays arrays;
    const std::vector<Cells> cells = read_cells_of(walk, arrays, columns, n_rows);
    Array<uint8_t> labels(n_rows);
    {
        ReleasedGil released;
        walk.labels(cells, n_rows, labels.data());
    }
    if (std::find(labels.begin(), labels.end(), JumpTable::no_label) != labels.end())
        return nb::none();
    return own(std::move(labels), n_rows);
}

nb::tuple arrive(const Walk& walk, nb::list columns, size_t n_rows) {
    Arrays arrays;
    const std::vector<Cells> cells = read_cells_of(walk, arrays, columns, n_rows);
    // Rows that arrive whole, and the parts of the others.
    Array<uint32_t> nodes(n_rows);
    std::vector<Walk::Part> parts;
    {
        ReleasedGil released;
        walk.nodes(cells, n_rows, nodes.data());
        parts = walk.parts(cells, nodes.data(), n_rows);
    }
    Array<int64_t> rows(parts.size()), ends(parts.size());
    Array<double> shares(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
        rows[i] = parts[i].row;
        ends[i] = parts[i].node;
        shares[i] = parts[i].share;
    }
    const size_t n_parts = parts.size();
    return nb::make_tuple(own(std::move(nodes), n_rows), own(std::move(rows), n_parts),
                          own(std::move(ends), n_parts), own(std::move(shares), n_parts));
}

// ---- texts -----------------------------------------------------------------------

template <typename Offset>
bool lie_within(const Offset* start, size_t n, int64_t length) {
    for (size_t i = 0; i <= n; ++i)
        if (start[i] < 0 || start[i] > length || (i && start[i] < start[i - 1])) return false;
    return true;
}

nb::tuple numbered(Array<int32_t>&& numbers, const StringCodes& texts) {
    const size_t n = numbers.size();
    Array<int64_t> firsts(texts.firsts().begin(), texts.firsts().end());
    const size_t n_distinct = firsts.size();
    return nb::make_tuple(own(std::move(numbers), n), own(std::move(firsts), n_distinct));
}

// Texts as Arrow keeps them: text i is data[offsets[i] : offsets[i + 1]].
template <typename Offset>
nb::tuple number_texts_at(const Span<const Offset>& offsets, const Span<const uint8_t>& data) {
    if (offsets.size < 1) refuse("offsets must have one entry more than there are texts");
    const size_t n = offsets.size - 1;
    if (n > most_rows) refuse("offsets must have at most 2**31 entries");
    const Offset* start = offsets.data;
    StringCodes texts(data.data + data.size);
    Array<int32_t> numbers(n);
    bool sound;
    {
        ReleasedGil released;
        sound = lie_within(start, n, int64_t(data.size));
        for (size_t i = 0; sound && i < n; ++i)
            numbers[i] = int32_t(
                texts.number(data.data + start[i], size_t(start[i + 1] - start[i]), int64_t(i)));
    }
    if (!sound) refuse("offsets must ascend and lie within data");
    return numbered(std::move(numbers), texts);
}

nb::tuple number_texts(nb::handle offsets, nb::handle data) {
    Arrays arrays;
    const Py_buffer& starts = arrays.view(offsets, "offsets");
    const auto bytes = arrays.vector<uint8_t>(data, "data");
    if (holds<int32_t>(starts))
        return number_texts_at(Arrays::entries<const int32_t>(starts, "offsets"), bytes);
    if (holds<int64_t>(starts))
        return number_texts_at(Arrays::entries<const int64_t>(starts, "offsets"), bytes);
    refuse_type("offsets must be an array of int32 or int64");
}

// Cells of one width that are equal where their bytes are: numbers, texts of numpy, or
// where objects lie.
nb::tuple number_cells(nb::handle cells, size_t width) {
    Arrays arrays;
    const auto data = arrays.vector<uint8_t>(cells, "data");
    if (width < 1 || data.size % width)
        refuse("width must be 1 or more, and divide the length of data");
    const size_t n = data.size / width;
    if (n > most_rows) refuse("data must have fewer than 2**31 cells");
    StringCodes texts(data.data + data.size);
    Array<int32_t> numbers(n);
    {
        ReleasedGil released;
        for (size_t i = 0; i < n; ++i)
            numbers[i] = int32_t(texts.number(data.data + width * i, width, int64_t(i)));
    }
    return numbered(std::move(numbers), texts);
}

}  // namespace

NB_MODULE(_native, m) {
    // A model that is alive when Python ends is no leak.
    nb::set_leak_warnings(false);
    // Made here, where no other thread can fork: a child would wait for it for ever.
    LogBounds::shared();
    m.doc() = "Native implementation of growth and prediction.";
    m.def("grow", &grow_tree, nb::arg("columns"), nb::arg("n_codes"), nb::arg("labels").none(),
          nb::arg("n_classes"), nb::arg("weights").none(), nb::arg("fractions"),
          nb::arg("weight_step"), nb::arg("case_step"), nb::arg("weights_are_cases"),
          nb::arg("criterion"), nb::arg("max_depth"), nb::arg("cases_to_split"),
          nb::arg("cases_in_leaf"), nb::arg("cases_in_branch"), nb::arg("min_gain"),
          nb::arg("branching"), nb::arg("quinlan"), nb::arg("threshold_at_value"),
          nb::arg("few_values"), nb::arg("missing"), nb::arg("unseen"), nb::arg("bits"),
          nb::arg("series"), nb::arg("total"), nb::arg("whole"), nb::arg("n_threads"),
          nb::arg("worth_sharing"), nb::arg("progress").none());
    nb::class_<Walk>(m, "Walk")
        .def(nb::new_(&make_walk), nb::arg("column").none(), nb::arg("threshold").none(),
             nb::arg("n_children").none(), nb::arg("missing_to").none(),
             nb::arg("unseen_to").none(), nb::arg("n_codes").none(), nb::arg("codes").none(),
             nb::arg("sizes").none(), nb::arg("labels").none(), nb::arg("values"))
        .def("label", &label, nb::arg("columns"), nb::arg("n_rows"))
        .def("arrive", &arrive, nb::arg("columns"), nb::arg("n_rows"));
    m.def("number_texts", &number_texts, nb::arg("offsets").none(), nb::arg("data").none());
    m.def("number_cells", &number_cells, nb::arg("data").none(), nb::arg("width"));
    m.def("most_cells", &most_cells, nb::arg("n_rows"));
    bind_pruning(m);
    bind_tallying(m);
    m.attr("FRACTIONAL") = nb::int_(JumpTable::fractional);
}
