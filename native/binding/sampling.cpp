// The border of bootstrap samples: the native implementation of branchwise/ensemble/sampling.py.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/options.hpp"
#include "core/draws.hpp"

namespace branchwise {

namespace {

// Which of n a random number means: a share of n, rounded down.
size_t chosen_of(uint64_t number, double n) { return size_t(double(number >> 11) * 0x1p-53 * n); }

// Rows in ascending order, each as often as it is drawn. They are drawn by rank: `order` has the
// rows in the order of their ranks.
nb::object bootstrap_rows(uint64_t key, int64_t n_drawn, nb::handle order, int64_t n_rows) {
    Arrays arrays;
    check_whole("n_drawn", n_drawn, 1, int64_t(most_rows));
    check_whole("n_rows", n_rows, 1, int64_t(most_rows));
    const auto by_rank = arrays.vector<int64_t>(order, "order");
    if (by_rank.size() < 1 || by_rank.size() > size_t(n_rows))
        refuse("order must have between 1 and n_rows entries");
    Array<int64_t> rows{};
    bool sound = true;
    {
        ReleasedGil released;
        for (int64_t row : by_rank) sound &= row >= 0 && row < n_rows;
        if (sound) {
            const auto n = double(by_rank.size());
            Array<uint32_t> times(size_t(n_rows), 0);
            for (size_t i = 0; i < size_t(n_drawn); ++i)
                ++times[size_t(by_rank[chosen_of(draw(key, i), n)])];
            rows.resize(size_t(n_drawn) + 1);
            // Most rows are drawn once, or not at all: how often is anybody's guess.
            int64_t* next = rows.data();
            for (int64_t row = 0; row < n_rows; ++row) {
                *next = row;
                for (uint32_t left = times[size_t(row)]; left > 1; --left) *++next = row;
                next += times[size_t(row)] > 0;
            }
        }
    }
    if (!sound) refuse("order must hold numbers of rows");
    return own(std::move(rows), size_t(n_drawn));
}

}  // namespace

}  // namespace branchwise

void bind_sampling(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("bootstrap_rows", &branchwise::bootstrap_rows, nb::arg("key"), nb::arg("n_drawn"),
          nb::arg("order").none(), nb::arg("n_rows"));
}
