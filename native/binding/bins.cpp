// The border of binning: columns of numbers come in, edges and the bins of rows go out.

#include "bins/bins.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/options.hpp"

namespace branchwise {

namespace {

template <typename Code>
nb::list bins_of_columns(const std::vector<const double*>& columns, const uint8_t* counted,
                         size_t n_rows, size_t max_bins, const std::vector<Position>& positions,
                         unsigned n_threads) {
    std::vector<Bins<Code>> found(columns.size());
    {
        ReleasedGil released;
        ThreadPool pool(n_threads, 0);
        pool.each(columns.size(), n_rows, [&](size_t j, unsigned) {
            found[j] =
                Binning(columns[j], counted, n_rows, max_bins, positions[j]).template find<Code>();
        });
    }
    nb::list bins;
    for (Bins<Code>& one : found) {
        const size_t n_edges = one.edges.size();
        if (one.codes.empty())
            bins.append(nb::none());
        else
            bins.append(nb::make_tuple(own(std::move(one.edges), n_edges),
                                       own(std::move(one.codes), n_rows)));
    }
    return bins;
}

// For each column edges and bins, or None where there are at most max_bins distinct numbers. The
// largest code stands for missing.
nb::list bin_columns(nb::list columns, nb::object counted, int64_t max_bins, nb::list positions,
                     int64_t n_threads) {
    constexpr int64_t most_bins = Bins<uint16_t>::missing;
    check_whole("max_bins", max_bins, 2, most_bins);
    check_whole("n_threads", n_threads, 1, most_threads);
    Arrays arrays;
    std::vector<const double*> numbers;
    size_t n_rows = 0;
    for (nb::handle column : items_of(columns)) {
        const std::string name = item("columns", numbers.size());
        const auto cells = numbers.empty() ? arrays.vector<double>(column, name)
                                           : arrays.vector<double>(column, name, n_rows);
        n_rows = cells.size();
        if (n_rows > most_rows) refuse(name + " must have fewer than 2**31 rows");
        check_numbers(cells.data(), n_rows, name);
        numbers.push_back(cells.data());
    }
    const std::vector<Position> of_edges = read_positions(positions);
    if (of_edges.size() != numbers.size()) refuse("positions must have one entry for each column");
    if (numbers.empty()) return nb::list();
    const uint8_t* rows =
        counted.is_none() ? nullptr : arrays.vector<uint8_t>(counted, "counted", n_rows).data();
    const auto threads = unsigned(n_threads);
    return max_bins <= Bins<uint8_t>::missing
               ? bins_of_columns<uint8_t>(numbers, rows, n_rows, size_t(max_bins), of_edges,
                                          threads)
               : bins_of_columns<uint16_t>(numbers, rows, n_rows, size_t(max_bins), of_edges,
                                           threads);
}

// For each pair of neighbours the threshold between them.
nb::object thresholds_between(nb::handle low, nb::handle high, int64_t position) {
    check_whole("position", position, 0, int64_t(Position::microsecond));
    Arrays arrays;
    const auto below = arrays.vector<double>(low, "low");
    const auto above = arrays.vector<double>(high, "high", below.size());
    Array<double> found(below.size());
    for (size_t i = 0; i < found.size(); ++i)
        found[i] = threshold_at(below[i], above[i], Position(position));
    const size_t n = found.size();
    return own(std::move(found), n);
}

}  // namespace

}  // namespace branchwise

void bind_bins(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("bin_columns", &branchwise::bin_columns, nb::arg("columns"), nb::arg("counted").none(),
          nb::arg("max_bins"), nb::arg("positions"), nb::arg("n_threads"));
    m.def("thresholds_between", &branchwise::thresholds_between, nb::arg("low"), nb::arg("high"),
          nb::arg("position"));
}
