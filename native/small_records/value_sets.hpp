// Which values records have, for sixteen columns of one-byte codes at a time.

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSSE3__)
#include <tmmintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace branchwise {

using Lanes = uint8_t __attribute__((vector_size(16)));  // a byte for each column

// Eight codes from `first` on, by their bits: what a record has of them in each column.
inline Lanes values_of(const uint8_t* codes, uint8_t first) {
    Lanes code;
    std::memcpy(&code, codes, sizeof code);
    code -= first;  // below zero: far above
#if defined(__SSSE3__)
    // A shuffle gives nothing where the highest bit is set: beyond the table, it is.
    const __m128i bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, char(128), 0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i index = _mm_adds_epu8(reinterpret_cast<__m128i>(code), _mm_set1_epi8(0x70));
    return reinterpret_cast<Lanes>(_mm_shuffle_epi8(bits, index));
#else
    Lanes bits;
    for (int k = 0; k < 16; ++k) bits[k] = code[k] < 8 ? uint8_t(1u << code[k]) : uint8_t(0);
    return bits;
#endif
}

// Which of sixteen bytes are equal to a code, as bits.
inline uint32_t lanes_with(const uint8_t* codes, uint8_t code) {
#if defined(__SSE2__)
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    return uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(char(code)))));
#else
    uint32_t equal = 0;
    for (int k = 0; k < 16; ++k) equal |= uint32_t(codes[k] == code) << k;
    return equal;
#endif
}

// The highest bits of sixteen bytes.
inline uint32_t highest_bits(Lanes bytes) {
#if defined(__SSE2__)
    return uint32_t(_mm_movemask_epi8(reinterpret_cast<__m128i>(bytes)));
#else
    uint32_t bits = 0;
    for (int k = 0; k < 16; ++k) bits |= uint32_t(bytes[k] >> 7) << k;
    return bits;
#endif
}

}  // namespace branchwise
