// The border of memory that is compared: buffers of tables that may have been seen before.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "binding/arguments.hpp"

using namespace branchwise;

namespace {

using Bytes = Span<const uint8_t>;

// The bytes of every buffer, whatever they stand for.
std::vector<Bytes> read_bytes(Arrays& arrays, const nb::list& buffers, const char* name) {
    std::vector<Bytes> bytes;
    for (nb::handle buffer : items_of(buffers)) {
        const Py_buffer& view = arrays.view(buffer, item(name, bytes.size()));
        bytes.emplace_back(static_cast<const uint8_t*>(view.buf), size_t(view.len));
    }
    return bytes;
}

constexpr size_t samples = 16;

// Words at even distances, from the first to the last.
uint64_t mix_in(uint64_t hash, const Bytes& bytes) {
    const auto mix = [&](uint64_t word) {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    };
    mix(bytes.size());
    if (bytes.size() < samples * sizeof(uint64_t)) {
        for (uint8_t byte : bytes) mix(byte);
        return hash;
    }
    const size_t last = bytes.size() - sizeof(uint64_t);
    for (size_t k = 0; k < samples; ++k) {
        uint64_t word;
        std::memcpy(&word, bytes.data() + last / (samples - 1) * k, sizeof word);
        mix(word);
    }
    return hash;
}

uint64_t sampled_hash(const nb::list& buffers) {
    Arrays arrays;
    uint64_t hash = 0;
    for (const Bytes& bytes : read_bytes(arrays, buffers, "buffers")) hash = mix_in(hash, bytes);
    return hash;
}

bool same_bytes(const nb::list& one, const nb::list& other) {
    Arrays arrays;
    const auto a = read_bytes(arrays, one, "one"), b = read_bytes(arrays, other, "other");
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Bytes& x, const Bytes& y) {
        return x.size() == y.size() && (!x.size() || !std::memcmp(x.data(), y.data(), x.size()));
    });
}

}  // namespace

void bind_buffers(nb::module_& m) {
    m.def("sampled_hash", &sampled_hash, nb::arg("buffers"));
    m.def("same_bytes", &same_bytes, nb::arg("one"), nb::arg("other"));
}
