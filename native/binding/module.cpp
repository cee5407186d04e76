// The extension: the borders of growing, pruning, prediction, counting, numbering, bins,
// moments, Shapley values, samples, thresholds of one node, comparison of memory, and memory that
// is kept.

#include <nanobind/nanobind.h>

#include "core/score_bounds.hpp"

namespace nb = nanobind;

void bind_growing(nb::module_& m);
void bind_growing_numbers(nb::module_& m);
void bind_pruning(nb::module_& m);
void bind_prediction(nb::module_& m);
void bind_counting(nb::module_& m);
void bind_numbering(nb::module_& m);
void bind_rules(nb::module_& m);
void bind_moments(nb::module_& m);
void bind_bins(nb::module_& m);
void bind_shap(nb::module_& m);
void bind_sampling(nb::module_& m);
void bind_buffers(nb::module_& m);
void bind_thresholds(nb::module_& m);
void bind_kept_memory(nb::module_& m);

NB_MODULE(_native, m) {
    // A model that is alive when Python ends is no leak.
    nb::set_leak_warnings(false);
    // Made here, where no other thread can fork: a child would wait for it for ever.
    branchwise::LogBounds::shared();
    m.doc() = "Native implementation of growth and prediction.";
    bind_growing(m);
    bind_growing_numbers(m);
    bind_pruning(m);
    bind_prediction(m);
    bind_counting(m);
    bind_numbering(m);
    bind_rules(m);
    bind_moments(m);
    bind_bins(m);
    bind_shap(m);
    bind_sampling(m);
    bind_buffers(m);
    bind_thresholds(m);
    bind_kept_memory(m);
}
