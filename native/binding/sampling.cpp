// The border of bootstrap samples: the native implementation of branchwise/ensemble/sampling.py.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/options.hpp"
#include "core/draws.hpp"

namespace branchwise {

namespace {

// How often each row is drawn. They are drawn by rank: `order` has the rows in the order of their
// ranks.
nb::object bootstrap_times(uint64_t key, int64_t n_drawn, nb::handle order, int64_t n_rows) {
    Arrays arrays;
    check_whole("n_drawn", n_drawn, 1, int64_t(most_rows));
    check_whole("n_rows", n_rows, 1, int64_t(most_rows));
    const auto by_rank = read_ranks(arrays, order, size_t(n_rows));
    Array<int64_t> times(size_t(n_rows), 0);
    {
        ReleasedGil released;
        const auto n = double(by_rank.size());
        for (size_t i = 0; i < size_t(n_drawn); ++i)
            ++times[size_t(by_rank[chosen_of(draw(key, i), n)])];
    }
    return own(std::move(times), size_t(n_rows));
}

}  // namespace

}  // namespace branchwise

void bind_sampling(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("bootstrap_times", &branchwise::bootstrap_times, nb::arg("key"), nb::arg("n_drawn"),
          nb::arg("order").none(), nb::arg("n_rows"));
}
