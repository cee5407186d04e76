// The limbs of numbers from Python: exponents of powers of two, checked.

#pragma once

#include "binding/arguments.hpp"
#include "regression/moments.hpp"

namespace branchwise {

inline std::vector<int> read_exponents(const nb::list& given, const char* name) {
    constexpr int widest_limbs = 1120, most_gap = 52;
    std::vector<int> exponents;
    for (double exponent : read_numbers(given, name, -1074, 1000)) {
        if (exponent != std::rint(exponent) ||
            (!exponents.empty() &&
             (int(exponent) >= exponents.back() || int(exponent) < exponents.back() - most_gap)))
            refuse(std::string(name) + " must have whole numbers that descend, by 52 at most");
        exponents.push_back(int(exponent));
    }
    if (exponents.empty() || exponents.size() > NumberScale::most_limbs ||
        exponents.front() - exponents.back() > widest_limbs)
        refuse(std::string(name) + " must have between 1 and 40 entries, at most 1120 apart");
    return exponents;
}

}  // namespace branchwise
