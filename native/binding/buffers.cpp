// The border of memory that is compared: arrays of tables that may have been seen before.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "binding/arguments.hpp"

using namespace branchwise;

namespace {

// Of a larger buffer one word of so many bytes is sampled: folds of a table differ in some of its
// rows only, and columns may share a buffer. Smaller ones are hashed as a whole: the labels of
// folds are often alike wherever they are sampled.
constexpr size_t bytes_of_whole = 4096;
constexpr size_t bytes_of_sample = 1024, fewest_samples = 16, most_samples = 1024;
constexpr int64_t absent = -1;  // instead of the size of a buffer that is not there

// The bytes of arrays, or a copy of them: NumPy's, and texts of Arrow in chunks. It holds the
// buffers of arrays, which are not freed before it is.
class Fingerprint {
  public:
    explicit Fingerprint(const nb::list& arrays) {
        for (nb::handle array : items_of(arrays)) {
            if (PyObject_CheckBuffer(array.ptr()))
                add_buffer(array);
            else
                add_chunks(array);
        }
    }

    size_t n_bytes() const {
        size_t sum = 0;
        for (const Bytes& buffer : buffers_) sum += buffer.size();
        return sum;
    }

    // A hash of the layout and of some bytes of every buffer.
    uint64_t sampled() const {
        uint64_t hash = 0;
        for (int64_t number : layout_) mix(hash, uint64_t(number));
        for (const Bytes& buffer : buffers_) mix_in(hash, buffer);
        return hash;
    }

    Fingerprint* copied() const {
        std::unique_ptr<Fingerprint> copy(new Fingerprint());
        copy->own_.reset(new uint8_t[n_bytes()]);
        copy->layout_ = layout_;
        uint8_t* to = copy->own_.get();
        for (const Bytes& buffer : buffers_) {
            if (buffer.size()) std::memcpy(to, buffer.data(), buffer.size());
            copy->buffers_.emplace_back(to, buffer.size());
            to += buffer.size();
        }
        return copy.release();
    }

    bool equals(const Fingerprint& other) const {
        return layout_ == other.layout_ &&
               std::equal(buffers_.begin(), buffers_.end(), other.buffers_.begin(),
                          other.buffers_.end(), [](const Bytes& x, const Bytes& y) {
                              return x.size() == y.size() &&
                                     (!x.size() || !std::memcmp(x.data(), y.data(), x.size()));
                          });
    }

  private:
    using Bytes = Span<const uint8_t>;

    struct Held {
        explicit Held(nb::handle buffer) {
            if (!PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE)) return;
            PyErr_Clear();
            refuse_type("arrays must have their bytes side by side");
        }
        ~Held() { PyBuffer_Release(&view); }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

        Py_buffer view;
    };

    Fingerprint() = default;

    void add_buffer(nb::handle buffer) {
        held_.emplace_back(buffer);
        const Py_buffer& view = held_.back().view;
        layout_.push_back(int64_t(view.len));
        buffers_.emplace_back(static_cast<const uint8_t*>(view.buf), size_t(view.len));
    }

    void add_chunks(nb::handle array) {
        if (!nb::hasattr(array, "num_chunks"))
            refuse_type("arrays must be buffers or chunked arrays of Arrow");
        const auto n_chunks = nb::cast<size_t>(array.attr("num_chunks"));
        layout_.push_back(int64_t(n_chunks));
        for (size_t k = 0; k < n_chunks; ++k) add_chunk(array.attr("chunk")(k));
    }

    void add_chunk(nb::handle chunk) {
        layout_.push_back(nb::cast<int64_t>(chunk.attr("offset")));
        layout_.push_back(int64_t(nb::len(chunk)));
        // Nothing depends on the first buffer, bits, of chunks without missing values.
        bool counts = nb::cast<int64_t>(chunk.attr("null_count")) > 0;
        const nb::object buffers = chunk.attr("buffers")();
        for (nb::handle buffer : items_of(nb::cast<nb::list>(buffers))) {
            if (counts && !buffer.is_none())
                add_buffer(buffer);
            else
                layout_.push_back(absent);
            counts = true;
        }
    }

    static void mix(uint64_t& hash, uint64_t word) {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }

    static uint64_t word_at(const Bytes& bytes, size_t at) {
        uint64_t word;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        return word;
    }

    static void mix_in(uint64_t& hash, const Bytes& bytes) {
        if (bytes.size() <= bytes_of_whole)
            mix_whole(hash, bytes);
        else
            mix_samples(hash, bytes);
    }

    // Every byte: words in four lanes, which do not wait for each other, then what is left.
    static void mix_whole(uint64_t& hash, const Bytes& bytes) {
        constexpr size_t n_lanes = 4, step = n_lanes * sizeof(uint64_t);
        uint64_t lanes[n_lanes] = {1, 2, 3, 4};
        size_t at = 0;
        for (; at + step <= bytes.size(); at += step)
            for (size_t lane = 0; lane < n_lanes; ++lane)
                mix(lanes[lane], word_at(bytes, at + lane * sizeof(uint64_t)));
        for (; at < bytes.size(); ++at) mix(lanes[0], bytes.data()[at]);
        for (uint64_t lane : lanes) mix(hash, lane);
    }

    // Words at even distances, from the first to the last.
    static void mix_samples(uint64_t& hash, const Bytes& bytes) {
        const size_t samples =
            std::clamp(bytes.size() / bytes_of_sample, fewest_samples, most_samples);
        const size_t last = bytes.size() - sizeof(uint64_t);
        for (size_t k = 0; k < samples; ++k) mix(hash, word_at(bytes, last / (samples - 1) * k));
    }

    std::deque<Held> held_;  // it moves none of them
    std::unique_ptr<uint8_t[]> own_;
    std::vector<int64_t> layout_;
    std::vector<Bytes> buffers_;
};

}  // namespace

void bind_buffers(nb::module_& m) {
    nb::class_<Fingerprint>(m, "Fingerprint")
        .def(nb::init<const nb::list&>(), nb::arg("arrays"))
        .def_prop_ro("n_bytes", &Fingerprint::n_bytes)
        .def("sampled", &Fingerprint::sampled)
        .def("copied", &Fingerprint::copied, nb::rv_policy::take_ownership)
        .def("equals", &Fingerprint::equals, nb::arg("other"));
}
