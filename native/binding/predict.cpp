// The border of prediction.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/tree_arrays.hpp"
#include "predict/apply.hpp"

using namespace branchwise;

namespace {

Walk* make_walk(nb::dict tree, nb::handle sizes, nb::handle labels, nb::list values) {
    Arrays arrays;
    const std::vector<uint32_t> given = read_sizes(values, "values", 0, most_codes);
    std::vector<uint32_t> limits = given;
    std::replace(limits.begin(), limits.end(), 0u, 2u);  // the sides of a threshold
    Fields fields("tree", tree);
    const TreeView view = read_tree(arrays, fields, limits);
    fields.check_all_taken();
    const auto size = arrays.vector<double>(sizes, "sizes", view.n_nodes());
    const auto label = arrays.vector<uint8_t>(labels, "labels");
    if (label.size() != 0 && label.size() != view.n_nodes())
        refuse("labels must have one entry for each node, or none");
    ReleasedGil released;
    return new Walk(view, size, label, given);
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

}  // namespace

void bind_prediction(nb::module_& m) {
    nb::class_<Walk>(m, "Walk")
        .def(nb::new_(&make_walk), nb::arg("tree"), nb::arg("sizes").none(),
             nb::arg("labels").none(), nb::arg("values"))
        .def("label", &label, nb::arg("columns"), nb::arg("n_rows"))
        .def("arrive", &arrive, nb::arg("columns"), nb::arg("n_rows"));
    m.attr("FRACTIONAL") = nb::int_(JumpTable::fractional);
}
