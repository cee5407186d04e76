// The border between Python and the kernel: checks every size and index, releases
// the GIL, and turns what comes out into arrays. Nothing here decides anything.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <string>

#include "border.hpp"
#include "text.hpp"
#include "walk.hpp"

using namespace branchwise;

void bind_pruning(nb::module_& m);
void bind_tallying(nb::module_& m);

namespace {

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
            if (i + ahead < known) __builtin_prefetch(&grown[size_t(order[i + ahead].part)].nodes[order[i + ahead].node]);
            for (int32_t b = 0; b < node->n_children; ++b) order[known++] = {at.part, node->first_child + uint32_t(b)};
            column[i] = node->column;
            n_children[i] = node->n_children;
            missing_to[i] = node->missing_to;
            unseen_to[i] = node->unseen_to;
            cut[i] = node->column < 0 ? std::numeric_limits<double>::quiet_NaN() : node->cut;
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

nb::dict grow_tree(nb::list columns, const std::vector<uint32_t>& n_codes, const Vector<uint32_t>& labels, int n_classes, nb::object weights, bool fractions,
                   double weight_step, double case_step, int criterion, int64_t max_depth,
                   double cases_to_split, double cases_in_leaf, double cases_in_branch, double min_gain, int branching, bool quinlan, bool cut_at_value,
                   const std::vector<bool>& few_values, int missing, int unseen,
                   int bits, std::vector<double> series, double total, bool whole, unsigned n_threads, size_t worth_sharing, nb::object progress) {
    Problem problem;
    read_rows(problem, columns, n_codes, labels, n_classes, weights, fractions, weight_step, case_step);
    check_grids(problem);
    if (series.empty()) refuse("series must not be empty");
    if (criterion < 0 || criterion > 2 || missing < 0 || missing > 4 || unseen < 0 || unseen > 4) refuse("unknown option");
    problem.criterion = static_cast<Criterion>(criterion);
    problem.max_depth = max_depth;
    problem.cases_to_split = cases_to_split;
    problem.cases_in_leaf = cases_in_leaf;
    problem.cases_in_branch = cases_in_branch;
    problem.min_gain = min_gain;
    if (branching < 0 || branching > 2) refuse("unknown branching");
    problem.branching = static_cast<Branching>(branching);
    problem.quinlan = quinlan;
    problem.cut_at_value = cut_at_value;
    if (few_values.size() != n_codes.size()) refuse("few_values must have one entry for each column");
    problem.few_values = few_values;
    problem.missing = static_cast<Policy>(missing);
    problem.unseen = static_cast<Policy>(unseen);
    problem.worth_sharing = worth_sharing;

    PythonWatch python(progress);
    const Watch watch = std::ref(python);
    const auto classes = static_cast<size_t>(n_classes);
    std::unique_ptr<GrownArrays> arrays;
    {
        nb::gil_scoped_release released;
        const bool numbers = std::any_of(problem.columns.begin(), problem.columns.end(),
                                         [](const Column& column) { return column.numeric; });
        const Masses masses(bits, std::move(series), total, whole,
                            numbers ? Masses::long_table : Masses::short_table);
        const std::vector<Grown> grown = grow(problem, masses, watch, n_threads);
        if (!python.interrupted()) arrays = std::make_unique<GrownArrays>(grown, classes);
        if (arrays) watch(arrays->column.size());
    }
    if (python.interrupted()) throw nb::python_error();

    return arrays->hand_over(classes);
}

// ---- prediction ----------------------------------------------------------------

Walk* make_walk(const Vector<int64_t>& column, const Vector<double>& cut, const Vector<int64_t>& n_children,
                const Vector<int64_t>& missing_to, const Vector<int64_t>& unseen_to, const Vector<int64_t>& n_codes,
                const Vector<int64_t>& codes, const Vector<double>& sizes, const Vector<uint8_t>& labels,
                const std::vector<uint32_t>& values) {
    const size_t n = column.shape(0);
    if (n < 1 || n >= Ways::divided) refuse("between 1 and 2**32 - 2 nodes");
    for (size_t length : {cut.shape(0), n_children.shape(0), missing_to.shape(0), unseen_to.shape(0), n_codes.shape(0),
                          sizes.shape(0)})
        if (length != n) refuse("arrays must have one entry for each node");
    if (labels.shape(0) != n && labels.shape(0) != 0) refuse("a label for each node, or none");
    // Children and their codes lie in the order of their parents: one pass checks all.
    size_t child = 1;
    size_t code = 0;
    if (n_codes.data()[0] != 0) refuse("codes that lead to the root");
    for (size_t i = 0; i < n; ++i) {
        const int64_t j = column.data()[i];
        const int64_t branches = n_children.data()[i];
        if (branches < 0 || size_t(branches) > n - child) refuse("children beyond the arrays");
        if (j < -1 || j >= int64_t(values.size()) || (j < 0) != (branches == 0)) refuse("a column that is not there");
        for (int64_t to : {missing_to.data()[i], unseen_to.data()[i]})
            if (to < every_branch || to >= branches) refuse("a branch that is not there");
        const int64_t limit = branches == 0 ? 0 : values[size_t(j)] ? values[size_t(j)] : 2;
        for (const size_t last = child + size_t(branches); child < last; ++child) {
            const int64_t count = n_codes.data()[child];
            if (count < 0 || size_t(count) > codes.shape(0) - code) refuse("codes beyond the arrays");
            for (const size_t end = code + size_t(count); code < end; ++code)
                if (codes.data()[code] < 0 || codes.data()[code] >= limit) refuse("a code that is no value of its column");
        }
    }
    if (child != n || code != codes.shape(0)) refuse("children or codes that do not add up");
    const uint8_t* label = labels.shape(0) ? labels.data() : nullptr;
    const TreeView tree{n, column.data(), n_children.data(), missing_to.data(), unseen_to.data(),
                        n_codes.data(), codes.data(), cut.data(), sizes.data(), label};
    return new Walk(tree, values);
}

template <typename T>
bool read_cells(nb::handle data, size_t n_rows, uint32_t values, Cells& cells) {
    Vector<T> array;
    if (!nb::try_cast(data, array, false)) return false;
    if (array.shape(0) != n_rows) refuse("a column must have one entry for each row");
    if (std::is_same<T, double>::value != (values == 0)) refuse("numbers for categories, or the reverse");
    cells.data = array.data();
    cells.width = sizeof(T);
    return true;
}

// Checks all but how large codes are: the walk does, while it has them at hand.
std::vector<Cells> read_cells_of(const Walk& walk, nb::list columns, size_t n_rows) {
    if (n_rows >= Ways::divided) refuse("fewer than 2**32 - 1 rows");
    if (nb::len(columns) != walk.ways().values.size()) refuse("one entry for each column");
    std::vector<Cells> cells(walk.ways().values.size());
    for (size_t j = 0; j < cells.size(); ++j) {
        if (!walk.ways().used[j]) continue;
        const uint32_t values = walk.ways().values[j];
        if (!read_cells<uint8_t>(columns[j], n_rows, values, cells[j]) &&
            !read_cells<uint16_t>(columns[j], n_rows, values, cells[j]) &&
            !read_cells<uint32_t>(columns[j], n_rows, values, cells[j]) &&
            !read_cells<double>(columns[j], n_rows, values, cells[j]))
            refuse("a column must be a contiguous array of uint8, uint16, uint32 or float64");
    }
    return cells;
}

// The label of each row; None where a row goes down every branch somewhere.
nb::object label(const Walk& walk, nb::list columns, size_t n_rows) {
    if (walk.ways().label_at.empty()) refuse("a tree without labels");
    const std::vector<Cells> cells = read_cells_of(walk, columns, n_rows);
    Array<uint8_t> labels(n_rows);
    {
        nb::gil_scoped_release released;
        walk.labels(cells, n_rows, labels.data());
    }
    if (std::find(labels.begin(), labels.end(), Ways::no_label) != labels.end()) return nb::none();
    return own(std::move(labels), n_rows);
}

nb::tuple arrive(const Walk& walk, nb::list columns, size_t n_rows) {
    const std::vector<Cells> cells = read_cells_of(walk, columns, n_rows);
    // Rows that arrive whole, and the parts of the others.
    Array<uint32_t> nodes(n_rows);
    std::vector<Walk::Part> parts;
    {
        nb::gil_scoped_release released;
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
    return nb::make_tuple(own(std::move(nodes), n_rows), own(std::move(rows), n_parts), own(std::move(ends), n_parts),
                          own(std::move(shares), n_parts));
}

// ---- texts -----------------------------------------------------------------------

template <typename Offset>
bool lie_within(const Offset* start, size_t n, int64_t length) {
    for (size_t i = 0; i <= n; ++i)
        if (start[i] < 0 || start[i] > length || (i && start[i] < start[i - 1])) return false;
    return true;
}

nb::tuple numbered(Array<int32_t>&& numbers, const TextNumbers& texts) {
    const size_t n = numbers.size();
    Array<int64_t> firsts(texts.firsts().begin(), texts.firsts().end());
    const size_t n_distinct = firsts.size();
    return nb::make_tuple(own(std::move(numbers), n), own(std::move(firsts), n_distinct));
}

// Texts as Arrow keeps them: text i is data[offsets[i] : offsets[i + 1]].
template <typename Offset>
nb::tuple number_texts(const Vector<Offset>& offsets, const Vector<uint8_t>& data) {
    if (offsets.shape(0) < 1) refuse("offsets must have one entry more than there are texts");
    const size_t n = offsets.shape(0) - 1;
    if (n >= size_t(1) << 31) refuse("fewer than 2**31 texts");
    const Offset* start = offsets.data();
    const size_t length = data.shape(0);
    TextNumbers texts(data.data() + length);
    Array<int32_t> numbers(n);
    bool sound;
    {
        nb::gil_scoped_release released;
        sound = lie_within(start, n, int64_t(length));
        for (size_t i = 0; sound && i < n; ++i)
            numbers[i] = int32_t(texts.number(data.data() + start[i], size_t(start[i + 1] - start[i]), int64_t(i)));
    }
    if (!sound) refuse("offsets beyond the data");
    return numbered(std::move(numbers), texts);
}

// Cells of one width that are equal where their bytes are: numbers, texts of numpy, or
// where objects lie.
nb::tuple number_cells(const Vector<uint8_t>& data, size_t width) {
    if (width < 1 || data.shape(0) % width) refuse("data must be whole cells");
    const size_t n = data.shape(0) / width;
    if (n >= size_t(1) << 31) refuse("fewer than 2**31 cells");
    TextNumbers texts(data.data() + data.shape(0));
    Array<int32_t> numbers(n);
    {
        nb::gil_scoped_release released;
        for (size_t i = 0; i < n; ++i) numbers[i] = int32_t(texts.number(data.data() + width * i, width, int64_t(i)));
    }
    return numbered(std::move(numbers), texts);
}

}  // namespace

NB_MODULE(_native, m) {
    // A model that is alive when Python ends is no leak.
    nb::set_leak_warnings(false);
    m.doc() = "The compiled twin of growth and prediction.";
    m.def("grow", &grow_tree, nb::arg("columns"), nb::arg("n_codes"), nb::arg("labels"),
          nb::arg("n_classes"), nb::arg("weights").none(), nb::arg("fractions"), nb::arg("weight_step"),
          nb::arg("case_step"), nb::arg("criterion"), nb::arg("max_depth"), nb::arg("cases_to_split"),
          nb::arg("cases_in_leaf"), nb::arg("cases_in_branch"), nb::arg("min_gain"), nb::arg("branching"), nb::arg("quinlan"),
          nb::arg("cut_at_value"), nb::arg("few_values"), nb::arg("missing"), nb::arg("unseen"), nb::arg("bits"),
          nb::arg("series"), nb::arg("total"), nb::arg("whole"), nb::arg("n_threads"),
          nb::arg("worth_sharing"), nb::arg("progress").none());
    nb::class_<Walk>(m, "Walk")
        .def(nb::new_(&make_walk), nb::arg("column"), nb::arg("cut"), nb::arg("n_children"), nb::arg("missing_to"),
             nb::arg("unseen_to"), nb::arg("n_codes"), nb::arg("codes"), nb::arg("sizes"), nb::arg("labels"),
             nb::arg("values"))
        .def("label", &label, nb::arg("columns"), nb::arg("n_rows"))
        .def("arrive", &arrive, nb::arg("columns"), nb::arg("n_rows"));
    m.def("number_texts", &number_texts<int32_t>, nb::arg("offsets").noconvert(), nb::arg("data").noconvert());
    m.def("number_texts", &number_texts<int64_t>, nb::arg("offsets").noconvert(), nb::arg("data").noconvert());
    m.def("number_cells", &number_cells, nb::arg("data").noconvert(), nb::arg("width"));
    bind_pruning(m);
    bind_tallying(m);
    m.attr("DIVIDED") = nb::int_(Ways::divided);
}
