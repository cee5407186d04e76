// One argument from Python at a time: an array, a list or a number, refused by its name
// unless it is what the kernel takes it for. Arrays are read where they lie and never
// converted: what is converted is gone before it is used.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/memory.hpp"

namespace branchwise {

namespace nb = nanobind;

[[noreturn]] inline void refuse(const std::string& complaint) {
    throw nb::value_error(complaint.c_str());
}
[[noreturn]] inline void refuse_type(const std::string& complaint) {
    throw nb::type_error(complaint.c_str());
}

// The name of an item of a list.
inline std::string item(const char* list, size_t index) {
    return std::string(list) + "[" + std::to_string(index) + "]";
}

// ---- arrays ----------------------------------------------------------------------

template <typename T>
std::string dtype_name() {
    const std::string bits = std::to_string(8 * sizeof(T));
    if (std::is_floating_point<T>::value) return "float" + bits;
    return (std::is_signed<T>::value ? "int" : "uint") + bits;
}

template <typename T>
bool holds(const Py_buffer& view) {
    const char* format = view.format ? view.format : "B";
    if (*format == '@' || *format == '=' || *format == '<')
        ++format;  // '>': bytes in another order
    const char* kinds = std::is_floating_point<T>::value ? "d"
                        : std::is_signed<T>::value       ? "bhilq"
                                                         : "BHILQ";
    return *format && !format[1] && std::strchr(kinds, *format) &&
           view.itemsize == Py_ssize_t(sizeof(T));
}

// The arrays of one call. They are held until it returns, whatever becomes of the lists
// that they came in.
class Arrays {
  public:
    // An array of so many dimensions, its entries side by side.
    const Py_buffer& view(nb::handle array, const std::string& name, int n_dimensions = 1) {
        if (!PyObject_CheckBuffer(array.ptr()))
            refuse_type(name + " must be an array. Got " + type_of(array));
        Held held(new Py_buffer());
        if (PyObject_GetBuffer(array.ptr(), held.get(), PyBUF_FULL_RO)) {
            held->obj = nullptr;
            PyErr_Clear();
            refuse_type(name + " must be an array of numbers");
        }
        if (held->ndim != n_dimensions)
            refuse(name + " must have " + std::to_string(n_dimensions) + " dimension(s). Got " +
                   std::to_string(held->ndim));
        if (!PyBuffer_IsContiguous(held.get(), 'C')) refuse(name + " must be contiguous");
        held_.push_back(std::move(held));
        return *held_.back();
    }

    template <typename T>
    Span<const T> vector(nb::handle array, const std::string& name) {
        return entries<const T>(view(array, name), name);
    }

    template <typename T>
    Span<const T> vector(nb::handle array, const std::string& name, size_t length) {
        const auto found = vector<T>(array, name);
        if (found.size() != length)
            refuse(name + " must have " + std::to_string(length) + " entries. Got " +
                   std::to_string(found.size()));
        return found;
    }

    // An array to be written to, which must be none of those that are read.
    template <typename T>
    Span<T> writable(nb::handle array, const std::string& name, size_t length) {
        const Py_buffer& given = view(array, name);
        if (given.readonly) refuse(name + " must be writable");
        for (const Held& other : held_)
            if (other.get() != &given && overlap(*other, given))
                refuse(name + " must not share memory with another array");
        const auto found = entries<T>(given, name);
        if (found.size() != length)
            refuse(name + " must have " + std::to_string(length) + " entries. Got " +
                   std::to_string(found.size()));
        return found;
    }

    template <typename T>
    static Span<T> entries(const Py_buffer& view, const std::string& name) {
        using Entry = std::remove_const_t<T>;
        if (!holds<Entry>(view)) refuse_type(name + " must be an array of " + dtype_name<Entry>());
        if (view.len && reinterpret_cast<uintptr_t>(view.buf) % alignof(Entry))
            refuse(name + " must be aligned");
        return {static_cast<T*>(view.buf), size_t(view.len) / sizeof(Entry)};
    }

  private:
    struct Release {
        void operator()(Py_buffer* view) const {
            if (view->obj) PyBuffer_Release(view);
            delete view;
        }
    };
    using Held = std::unique_ptr<Py_buffer, Release>;

    static std::string type_of(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

    static bool overlap(const Py_buffer& a, const Py_buffer& b) {
        const auto first = reinterpret_cast<uintptr_t>(a.buf),
                   second = reinterpret_cast<uintptr_t>(b.buf);
        return first < second + size_t(b.len) && second < first + size_t(a.len);
    }

    std::vector<Held> held_;
};

// ---- lists -----------------------------------------------------------------------

// The items of a list as they are now: reading one of them may run code that changes it.
inline nb::tuple items_of(const nb::list& list) {
    return nb::steal<nb::tuple>(PyList_AsTuple(list.ptr()));
}

inline std::vector<uint32_t> read_sizes(const nb::list& list, const char* name, uint32_t least,
                                        uint32_t most) {
    std::vector<uint32_t> sizes;
    for (nb::handle given : items_of(list)) {
        const std::string label = item(name, sizes.size());
        if (!PyLong_Check(given.ptr())) refuse_type(label + " must be a whole number");
        int overflow = 0;
        const long long size = PyLong_AsLongLongAndOverflow(given.ptr(), &overflow);
        if (overflow || size < least || size > most)
            refuse(label + " must be between " + std::to_string(least) + " and " +
                   std::to_string(most));
        sizes.push_back(uint32_t(size));
    }
    return sizes;
}

inline std::vector<bool> read_flags(const nb::list& list, const char* name) {
    std::vector<bool> flags;
    for (nb::handle given : items_of(list)) {
        if (!PyBool_Check(given.ptr()))
            refuse_type(item(name, flags.size()) + " must be True or False");
        flags.push_back(given.ptr() == Py_True);
    }
    return flags;
}

// ---- numbers ---------------------------------------------------------------------

inline void check_number(const char* name, double value, double least,
                         double most = std::numeric_limits<double>::infinity()) {
    if (!(value >= least && value <= most))
        refuse(std::string(name) + " must be between " + std::to_string(least) + " and " +
               std::to_string(most));
}

inline void check_whole(const char* name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
        refuse(std::string(name) + " must be between " + std::to_string(least) + " and " +
               std::to_string(most) + ". Got " + std::to_string(value));
}

inline std::vector<double> read_numbers(const nb::list& list, const char* name, double least,
                                        double most) {
    std::vector<double> numbers;
    for (nb::handle given : items_of(list)) {
        const std::string label = item(name, numbers.size());
        if (!PyFloat_Check(given.ptr())) refuse_type(label + " must be a float");
        check_number(label.c_str(), PyFloat_AS_DOUBLE(given.ptr()), least, most);
        numbers.push_back(PyFloat_AS_DOUBLE(given.ptr()));
    }
    return numbers;
}

// The entries of a dict, each taken once by its name; none may be left over.
class Fields {
  public:
    Fields(const char* name, const nb::dict& given)
        : name_(name), entries_(nb::steal<nb::dict>(PyDict_Copy(given.ptr()))) {}

    nb::object take(const char* name) {
        PyObject* value = PyDict_GetItemString(entries_.ptr(), name);
        if (!value) refuse(std::string(name_) + " must have an entry " + name);
        ++n_taken_;
        return nb::borrow(value);
    }

    bool flag(const char* name) {
        const nb::object value = take(name);
        if (!PyBool_Check(value.ptr())) refuse_type(std::string(name) + " must be True or False");
        return value.ptr() == Py_True;
    }

    double number(const char* name, double least,
                  double most = std::numeric_limits<double>::infinity()) {
        const nb::object value = take(name);
        if (!PyFloat_Check(value.ptr())) refuse_type(std::string(name) + " must be a float");
        check_number(name, PyFloat_AS_DOUBLE(value.ptr()), least, most);
        return PyFloat_AS_DOUBLE(value.ptr());
    }

    int64_t whole(const char* name, int64_t least, int64_t most) {
        const nb::object value = take(name);
        if (!PyLong_Check(value.ptr())) refuse_type(std::string(name) + " must be a whole number");
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
        if (overflow)
            refuse(std::string(name) + " must be between " + std::to_string(least) + " and " +
                   std::to_string(most));
        check_whole(name, number, least, most);
        return number;
    }

    // Sixty-four bits.
    uint64_t word(const char* name) {
        const nb::object value = take(name);
        if (!PyLong_Check(value.ptr())) refuse_type(std::string(name) + " must be a whole number");
        const unsigned long long number = PyLong_AsUnsignedLongLong(value.ptr());
        if (!PyErr_Occurred()) return number;
        PyErr_Clear();
        refuse(std::string(name) + " must be between 0 and 2**64 - 1");
    }

    // The position of a name among those that are known.
    template <typename Choice>
    Choice choice(const char* name, std::initializer_list<const char*> known) {
        const nb::object value = take(name);
        const char* text = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8(value.ptr()) : nullptr;
        PyErr_Clear();
        const auto found = std::find_if(known.begin(), known.end(), [&](const char* one) {
            return text && std::strcmp(one, text) == 0;
        });
        if (found != known.end()) return Choice(int(found - known.begin()));
        std::string listed;
        for (const char* one : known) listed += (listed.empty() ? "" : ", ") + std::string(one);
        refuse(std::string(name) + " must be one of " + listed);
    }

    nb::list list(const char* name) {
        const nb::object value = take(name);
        if (!PyList_Check(value.ptr())) refuse_type(std::string(name) + " must be a list");
        return nb::borrow<nb::list>(value);
    }

    void check_all_taken() const {
        if (entries_.size() != n_taken_)
            refuse(std::string(name_) + " must have " + std::to_string(n_taken_) +
                   " entries. Got " + std::to_string(entries_.size()));
    }

  private:
    const char* name_;
    const nb::dict entries_;
    size_t n_taken_ = 0;
};

inline void check_power_of_two(const char* name, double value) {
    int exponent;
    if (!std::isfinite(value) || std::frexp(value, &exponent) != 0.5)
        refuse(std::string(name) + " must be a power of two");
}

inline void check_finite(const char* name, const Span<const double>& numbers) {
    bool sound = true;
    for (size_t i = 0; i < numbers.size(); ++i)
        sound &= numbers[i] >= 0 && numbers[i] <= std::numeric_limits<double>::max();
    if (!sound) refuse(std::string(name) + " must be finite and not negative");
}

}  // namespace branchwise
