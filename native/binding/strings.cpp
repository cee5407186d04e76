// The border of numbering: distinct texts, cells of one width, cells of delimited text.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/tree_arrays.hpp"
#include "strings/csv_codes.hpp"
#include "strings/string_codes.hpp"

using namespace branchwise;

namespace {

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
    if (offsets.size() < 1) refuse("offsets must have one entry more than there are texts");
    const size_t n = offsets.size() - 1;
    if (n > most_rows) refuse("offsets must have at most 2**31 entries");
    const Offset* start = offsets.data();
    StringCodes texts(data.data() + data.size());
    Array<int32_t> numbers(n);
    bool sound;
    {
        ReleasedGil released;
        sound = lie_within(start, n, int64_t(data.size()));
        for (size_t i = 0; sound && i < n; ++i)
            numbers[i] = int32_t(
                texts.number(data.data() + start[i], size_t(start[i + 1] - start[i]), int64_t(i)));
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
    if (width < 1 || data.size() % width)
        refuse("width must be 1 or more, and divide the length of data");
    const size_t n = data.size() / width;
    if (n > most_rows) refuse("data must have fewer than 2**31 cells");
    StringCodes texts(data.data() + data.size());
    Array<int32_t> numbers(n);
    {
        ReleasedGil released;
        for (size_t i = 0; i < n; ++i)
            numbers[i] = int32_t(texts.number(data.data() + width * i, width, int64_t(i)));
    }
    return numbered(std::move(numbers), texts);
}

template <typename T>
nb::object as_array(const std::vector<T>& entries) {
    return own(Array<T>(entries.begin(), entries.end()), entries.size());
}

// A column takes about 30 KB, whatever the text.
constexpr int64_t most_csv_columns = 1 << 11;

// The cells of delimited text: the number of rows; for each column to be numbered the codes
// and where its distinct cells begin and end (None: too many are distinct); and the cells of
// the columns to be copied. None if the text is not plain enough.
nb::object number_csv(nb::handle text, int64_t delimiter, int64_t width, const nb::list& numbered,
                      const nb::list& copied) {
    Arrays arrays;
    const auto bytes = arrays.vector<uint8_t>(text, "text");
    check_whole("width", width, 1, most_csv_columns);
    check_whole("delimiter", delimiter, 1, 127);
    if (delimiter == '\n' || delimiter == '\r' || delimiter == '"')
        refuse("delimiter must be neither a line end nor a quotation mark");
    const auto to_number = read_sizes(numbered, "numbered", 0, uint32_t(width - 1));
    const auto to_copy = read_sizes(copied, "copied", 0, uint32_t(width - 1));
    CsvRows rows(bytes.data(), bytes.size(), uint8_t(delimiter));
    std::vector<CsvTarget> targets{size_t(width)};
    for (size_t at : to_copy) targets[at].is_copied = true;
    const size_t n = rows.most_rows(size_t(width));
    if (n > most_rows) refuse("text must have fewer than 2**31 rows");
    for (size_t at : to_number) {
        if (targets[at].is_copied || targets[at].column)
            refuse("numbered and copied must name a column once");
        targets[at].column = std::make_unique<CsvColumn>(bytes.data(), bytes.data() + bytes.size());
    }
    // A row has a line end more, and the last one may have had none.
    Array<uint8_t> copy(to_copy.empty() ? 0 : bytes.size() + n + 1);
    bool plain;
    {
        ReleasedGil released;
        plain = rows.read(targets, copy.data());
    }
    if (!plain) return nb::none();
    nb::list found;
    for (size_t at : to_number) {
        CsvColumn& column = *targets[at].column;
        if (column.is_varied()) {
            found.append(nb::none());
            continue;
        }
        found.append(nb::make_tuple(own(std::move(column.codes()), rows.n_rows()),
                                    as_array(column.starts()), as_array(column.ends())));
    }
    const size_t length = to_copy.empty() ? 0 : size_t(rows.copied() - copy.data());
    return nb::make_tuple(rows.n_rows(), found, own(std::move(copy), length));
}

}  // namespace

void bind_numbering(nb::module_& m) {
    m.def("number_texts", &number_texts, nb::arg("offsets").none(), nb::arg("data").none());
    m.def("number_cells", &number_cells, nb::arg("data").none(), nb::arg("width"));
    m.def("number_csv", &number_csv, nb::arg("text").none(), nb::arg("delimiter"), nb::arg("width"),
          nb::arg("numbered"), nb::arg("copied"));
}
