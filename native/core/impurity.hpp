// Weight times impurity, as int64 in units of 2^-bits.
//
// The native implementation of branchwise/grow/criteria.py: the same basic IEEE operations in the
// same order, so that every impurity has the same bits. Compiled without contraction into fused
// operations, which would round once where the reference rounds twice.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/constants.hpp"

namespace branchwise {

enum class Criterion { gain, gain_ratio, gini };

// std::frexp for positive numbers, without the call.
inline double split_exponent(double value, int* exponent) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const auto biased = int(bits >> 52);
    if (biased == 0) return std::frexp(value, exponent);  // subnormal
    *exponent = biased - 1022;
    bits = (bits & 0x000fffffffffffffULL) | (uint64_t(1022) << 52);
    double mantissa;
    std::memcpy(&mantissa, &bits, sizeof mantissa);
    return mantissa;
}

// log2 from the series 2 / ln 2 * (z + z^3/3 + z^5/5 + ...), z = (m - 1) / (m + 1).
inline double log2_basic(double value, const double* series, int terms) {
    if (!(value > 0)) return 0.0;
    int exponent;
    double mantissa = split_exponent(value, &exponent);
    const bool low = mantissa < sqrt_half;
    if (low) mantissa *= 2;
    const double z = (mantissa - 1.0) / (mantissa + 1.0);
    const double square = z * z;
    double sum = series[terms - 1];
    for (int k = terms - 2; k >= 0; --k) {
        sum *= square;
        sum += series[k];
    }
    sum *= z;
    sum += exponent - (low ? 1 : 0);
    return sum;
}

class Impurities {
  public:
    // Logarithms that are taken together: one waits for nothing of another.
    static constexpr size_t block = 8;

    // Large counts are rare where only values are counted; between the values of a
    // number, every count up to the total comes up. Gini impurities need a logarithm a node.
    static constexpr size_t gini_table = size_t(1) << 12;
    static constexpr size_t short_table = size_t(1) << 16;
    static constexpr size_t long_table = size_t(1) << 24;

    // Weights up to `in_table` are whole and looked up; -1: none is.
    Impurities(int bits, std::vector<double> series, double in_table, size_t largest_table)
        : bits_(bits),
          unit_(std::ldexp(1.0, -bits)),
          scale_(std::abs(bits) < 900 ? std::ldexp(1.0, bits) : 0.0),
          series_(std::move(series)) {
        const double size = std::min(in_table + 1, double(largest_table));
        table_.resize(size_t(size));
        for (size_t k = 0; k < table_.size(); ++k) table_[k] = compute(double(k));
    }

    double unit() const { return unit_; }

    const int64_t* table() const { return table_.data(); }
    bool has_table() const { return !table_.empty(); }
    bool has_table_for(size_t count) const { return count < table_.size(); }

    int64_t fixed(double value) const { return int64_t(std::rint(scaled(value))); }

    int64_t x_log2_x(uint32_t count) const {
        return count < table_.size() ? table_[count] : compute(double(count));
    }

    // Weights on a grid of fractions have no table; whole ones may be looked up.
    int64_t x_log2_x(double weight) const {
        if (weight < double(table_.size())) return table_[size_t(weight)];
        return compute(weight);
    }

    // Of many weights at once: whole blocks, so that there must be room for the last.
    void x_log2_x(const double* weights, size_t n, int64_t* out) const {
        for (size_t i = 0; i < n; i += block) compute_block(weights + i, out + i);
    }

    double plain_log2(double value) const {
        return log2_basic(value, series_.data(), int(series_.size()));
    }
    int64_t log2(double value) const { return bits(plain_log2(value)); }

    // Of small weights a few bits are more than any sum of impurities: they stay at twice that,
    // as in the reference.
    int64_t bits(double amount) const {
        const double units = std::rint(scaled(amount));
        return units < double(most_bits) ? int64_t(units) : most_bits;
    }

    // How many units sums of impurities may be off in a node of this weight.
    int64_t noise(double total) const { return noise_of(x_log2_x(total)); }
    static int64_t noise_of(int64_t x_log2_x) {
        return (std::abs(x_log2_x) >> noise_shift) + noise_units;
    }

    // Impurity of a group, given its total and its class weights (stride 1).
    template <typename W>
    int64_t impurity(Criterion criterion, const W* weights, int n_classes, W total) const {
        if (!(total > 0)) return 0;
        int64_t kept = 0;
        if (criterion == Criterion::gini) {
            const double whole = double(total);
            for (int c = 0; c < n_classes; ++c) {
                const double weight = double(weights[c]);
                kept += fixed(weight * (weight / whole));
            }
            return fixed(whole) - kept;
        }
        if constexpr (std::is_same<W, uint32_t>::value) {
            if (total < table_.size()) {  // then every class is, too
                const int64_t* table = table_.data();
                for (int c = 0; c < n_classes; ++c) kept += table[weights[c]];
                return table[total] - kept;
            }
        }
        for (int c = 0; c < n_classes; ++c)
            if (weights[c] == total) return 0;  // pure: no need of logarithms
        for (int c = 0; c < n_classes; ++c) kept += x_log2_x(weights[c]);
        return x_log2_x(total) - kept;
    }

  private:
    // Scaling by a power of two is exact, unless the power itself is out of range.
    double scaled(double value) const {
        return scale_ > 0 ? value * scale_ : std::ldexp(value, bits_);
    }

    // compute() of some weights, step by step for all of them.
    void compute_block(const double* weights, int64_t* out) const {
        double exponent[block], z[block], square[block], log[block];
        for (size_t k = 0; k < block; ++k) {
            int binary = 0;
            double mantissa = split_exponent(weights[k], &binary);
            const bool low = mantissa < sqrt_half;
            exponent[k] = binary - (low ? 1 : 0);
            if (low) mantissa *= 2;
            z[k] = (mantissa - 1.0) / (mantissa + 1.0);
        }
        for (size_t k = 0; k < block; ++k) square[k] = z[k] * z[k];
        for (size_t k = 0; k < block; ++k) log[k] = series_.back();
        for (size_t term = series_.size() - 1; term-- > 0;)
            for (size_t k = 0; k < block; ++k) log[k] = log[k] * square[k] + series_[term];
        for (size_t k = 0; k < block; ++k)
            out[k] = fixed(weights[k] * (log[k] * z[k] + exponent[k]));
    }

    int64_t compute(double weight) const {
        return fixed(weight * log2_basic(weight, series_.data(), int(series_.size())));
    }

    int bits_;
    double unit_;
    double scale_;  // 2^bits, or 0 where that is out of range
    std::vector<double> series_;
    std::vector<int64_t> table_;
};

}  // namespace branchwise
