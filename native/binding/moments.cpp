// Means and variances of many nodes from their moments, each rounded once.

#include <nanobind/nanobind.h>

#include "binding/limbs.hpp"
#include "binding/tree_arrays.hpp"

using namespace branchwise;

namespace {

void summarise(nb::handle moments, int64_t weight_step, nb::list sum_exponents,
               nb::list square_exponents, int64_t unit, nb::handle means, nb::handle variances) {
    Arrays arrays;
    NumberScale scale;
    check_whole("weight_step", weight_step, -1074, 1000);
    check_whole("unit", unit, -1074, 1000);
    scale.weight_step = int(weight_step);
    scale.sums = read_exponents(sum_exponents, "sum_exponents");
    scale.squares = read_exponents(square_exponents, "square_exponents");
    scale.set_steps();
    const Py_buffer& given = arrays.view(moments, "moments", 2);
    const auto rows = Arrays::entries<const double>(given, "moments");
    if (size_t(given.shape[1]) != scale.width())
        refuse("moments must have a weight and the limbs of sums and squares");
    const auto n_rows = size_t(given.shape[0]);
    const auto mean = arrays.writable<double>(means, "means", n_rows);
    const auto variance = arrays.writable<double>(variances, "variances", n_rows);
    ReleasedGil released;
    for (size_t i = 0; i < n_rows; ++i) {
        const double* row = &rows[i * scale.width()];
        const bool counts = row[0] > 0;
        mean[i] = counts ? mean_of(scale, row, int(unit)) : 0.0;
        variance[i] = counts ? variance_of(scale, row) : 0.0;
    }
}

}  // namespace

void bind_moments(nb::module_& m) {
    m.def("summarise", &summarise, nb::arg("moments"), nb::arg("weight_step"),
          nb::arg("sum_exponents"), nb::arg("square_exponents"), nb::arg("unit"), nb::arg("means"),
          nb::arg("variances"));
}
