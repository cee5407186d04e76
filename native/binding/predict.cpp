// The border of prediction.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/tree_arrays.hpp"
#include "predict/apply.hpp"
#include "predict/tree_sums.hpp"

using namespace branchwise;

namespace {

Walk* make_walk(nb::dict tree, nb::handle sizes, nb::handle labels, nb::list values,
                nb::object surrogates) {
    Arrays arrays;
    const std::vector<uint32_t> given = read_sizes(values, "values", 0, most_codes);
    std::vector<uint32_t> limits = given;
    std::replace(limits.begin(), limits.end(), 0u, 2u);  // the sides of a threshold
    Fields fields("tree", tree);
    const TreeView view = read_tree(arrays, fields, limits);
    fields.check_all_taken();
    const SurrogateView others = read_surrogates(arrays, surrogates, view, limits);
    const auto size = arrays.vector<double>(sizes, "sizes", view.n_nodes());
    const auto label = arrays.vector<uint8_t>(labels, "labels");
    if (label.size() != 0 && label.size() != view.n_nodes())
        refuse("labels must have one entry for each node, or none");
    ReleasedGil released;
    return new Walk(view, others, size, label, given);
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

// The label of each row, and the rows without one: those that go down every branch
// somewhere.
nb::tuple label(const Walk& walk, nb::list columns, size_t n_rows) {
    if (walk.jump_table().label_at.empty()) refuse("labels were not given: a tree without labels");
    Arrays arrays;
    const std::vector<Cells> cells = read_cells_of(walk, arrays, columns, n_rows);
    Array<uint8_t> labels(n_rows);
    Array<int64_t> fractional;
    {
        ReleasedGil released;
        walk.labels(cells, n_rows, labels.data());
        const uint8_t *begin = labels.data(), *end = begin + n_rows, *found = begin;
        while ((found = std::find(found, end, JumpTable::no_label)) != end)
            fractional.push_back(found++ - begin);
    }
    const size_t n_fractional = fractional.size();
    return nb::make_tuple(own(std::move(labels), n_rows), own(std::move(fractional), n_fractional));
}

// Numbers of the nodes: one line for each.
Span<const double> read_numbers_of(const Walk& walk, Arrays& arrays, nb::handle numbers,
                                   size_t& width) {
    const Py_buffer& view = arrays.view(numbers, "numbers", 2);
    if (size_t(view.shape[0]) + 1 != walk.jump_table().first_child.size())
        refuse("numbers must have one line for each node");
    width = size_t(view.shape[1]);
    if (width == 0) refuse("numbers must have a column");
    return Arrays::entries<const double>(view, "numbers");
}

size_t checked_product(size_t n_rows, size_t width) {
    if (width > (size_t(1) << 40) / std::max<size_t>(n_rows, 1))
        refuse("numbers must have fewer columns for so many rows");
    return n_rows * width;
}

// The numbers of the nodes that rows arrive at, weighted by their shares; of all rows, or
// of those that are listed.
nb::object blend(const Walk& walk, nb::list columns, size_t n_rows, nb::handle numbers,
                 nb::handle rows) {
    Arrays arrays;
    const std::vector<Cells> cells = read_cells_of(walk, arrays, columns, n_rows);
    size_t width = 0;
    const Span<const double> given = read_numbers_of(walk, arrays, numbers, width);
    if (rows.is_none()) {
        Array<double> out(checked_product(n_rows, width));
        {
            ReleasedGil released;
            walk.blend(cells, n_rows, given.data(), width, out.data());
        }
        return own(std::move(out), n_rows, width);
    }
    const auto listed = arrays.vector<int64_t>(rows, "rows");
    int64_t before = -1;
    for (const int64_t row : listed) {
        if (row <= before || row >= int64_t(n_rows)) refuse("rows must ascend and be below n_rows");
        before = row;
    }
    Array<double> out(checked_product(listed.size(), width));
    {
        ReleasedGil released;
        walk.blend_rows(cells, n_rows, listed, given.data(), width, out.data());
    }
    return own(std::move(out), listed.size(), width);
}

// Add the numbers of the nodes of several trees that rows arrive at to the totals of the
// rows, weighted by their shares, in the order of the trees.
void add_up(nb::list walks, nb::list columns, size_t n_rows, nb::list numbers, size_t width,
            nb::handle totals) {
    Arrays arrays;
    const nb::tuple given = items_of(walks), lines = items_of(numbers);
    if (given.size() != lines.size()) refuse("numbers must have one entry for each of the walks");
    if (width == 0) refuse("width must be above 0");
    double* out = arrays.writable<double>(totals, "totals", checked_product(n_rows, width)).data();
    std::vector<Addend> trees;
    std::vector<Cells> cells(items_of(columns).size());
    for (size_t t = 0; t < given.size(); ++t) {
        const Walk* walk = nullptr;
        if (!nb::try_cast(given[t], walk) || !walk)
            refuse_type(item("walks", t) + " must be a Walk");
        if (t && walk->jump_table().values != trees[0].walk->jump_table().values)
            refuse(item("walks", t) + " must be of the same columns as the first");
        size_t own_width = 0;
        const Span<const double> values = read_numbers_of(*walk, arrays, lines[t], own_width);
        if (own_width != width) refuse(item("numbers", t) + " must have as many columns as width");
        trees.push_back({walk, values.data()});
        if (!n_rows || walk->jump_table().split_tests.empty()) continue;
        const std::vector<Cells> used = read_cells_of(*walk, arrays, columns, n_rows);
        for (size_t j = 0; j < used.size(); ++j)
            if (used[j].width) cells[j] = used[j];
    }
    ReleasedGil released;
    TreeSums(std::move(trees), std::move(cells), width).add(n_rows, out);
}

// The node that one row arrives at; `row` has a code or a number for each column that is
// tested, in their order.
uint32_t node(const Walk& walk, nb::list row) {
    const JumpTable& jump_table = walk.jump_table();
    if (jump_table.split_tests.empty()) return 0;
    const nb::tuple given = items_of(row);
    std::vector<Cell> cells(jump_table.used.size(), Cell{0, 0.0});
    size_t at = 0;
    for (size_t j = 0; j < cells.size(); ++j) {
        if (!jump_table.used[j]) continue;
        if (at == given.size()) refuse("row must have a cell for each column that is tested");
        const nb::handle cell = given[at++];
        if (jump_table.values[j] == 0) {
            if (!PyFloat_CheckExact(cell.ptr())) refuse_type("row must hold a float for a number");
            cells[j].number = PyFloat_AS_DOUBLE(cell.ptr());
            continue;
        }
        if (!PyLong_CheckExact(cell.ptr())) refuse_type("row must hold an int for a code");
        int overflow = 0;
        const long long code = PyLong_AsLongLongAndOverflow(cell.ptr(), &overflow);
        if (overflow || code < 0 || code > (long long)jump_table.values[j] + 1)
            refuse("row must hold no code that is beyond that of unseen values");
        cells[j].code = uint32_t(code);
    }
    if (at != given.size()) refuse("row must have a cell for each column that is tested");
    return walk.node(cells);
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

}  // namespace

void bind_prediction(nb::module_& m) {
    nb::class_<Walk>(m, "Walk")
        .def(nb::new_(&make_walk), nb::arg("tree"), nb::arg("sizes").none(),
             nb::arg("labels").none(), nb::arg("values"), nb::arg("surrogates").none())
        .def("node", &node, nb::arg("row"))
        .def("label", &label, nb::arg("columns"), nb::arg("n_rows"))
        .def("blend", &blend, nb::arg("columns"), nb::arg("n_rows"), nb::arg("numbers").none(),
             nb::arg("rows").none())
        .def("arrive", &arrive, nb::arg("columns"), nb::arg("n_rows"));
    m.def("add_up", &add_up, nb::arg("walks"), nb::arg("columns"), nb::arg("n_rows"),
          nb::arg("numbers"), nb::arg("width"), nb::arg("totals").none());
    m.attr("FRACTIONAL") = nb::int_(JumpTable::fractional);
}
