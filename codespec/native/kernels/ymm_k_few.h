// K-quants of two and three bits in registers of 256 bits; ymm_k.h has those of more bits.
//
// In each half of a block 32 bytes have two bits of each number, the lowest of the first 32
// numbers: 16 bytes have a part of each quarter of the half.
#pragma once

#include "ymm_k.h"

namespace codespec {
namespace {

// To take(part, twos) go parts of 16 numbers, four registers, in whose bytes are others above the
// two bits.
[[gnu::always_inline]] inline void each_two(const std::byte* bytes, std::int64_t stride,
                                            const auto& ahead, const auto& take) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    ahead(i, 4);
    const int half = i % 2, odd = i / 2;
    __m256i both[4], twos[4];
    transpose16(bytes + 32 * half + 16 * odd, stride, both);
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; ++quarter) {
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) twos[t] = _mm256_srli_epi16(both[t], 2 * quarter);
      take(8 * half + 2 * quarter + odd, twos);
    }
  }
}

// The third bits of all numbers in 32 bytes, a bit of each for every 32; two bits of each in 64;
// the scales, 32 too large, in 12: of each the lower four bits in eight bytes, two in each, the
// upper two in four; their scale.
template <class Part>
struct Q3 : Biased<Part, 16, 2> {
  using Base = Biased<Part, 16, 2>;
  using typename Base::Scales;
  static constexpr int kBlockBytes = 110;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    __m256i high[8];
    transpose32(block, stride, high);
    each_two(block + 32, stride, ahead,
             [&](int s, const __m256i* twos) __attribute__((always_inline)) {
               const int bit = s / 2;
               __m256i bytes[4];
#pragma GCC unroll 4
               for (int t = 0; t < 4; ++t) {
                 const __m256i up = high[s % 2 * 4 + t];
                 const __m256i third =
                     bit < 2 ? _mm256_slli_epi16(up, 2 - bit) : _mm256_srli_epi16(up, bit - 2);
                 bytes[t] = _mm256_or_si256(_mm256_and_si256(twos[t], _mm256_set1_epi8(3)),
                                            _mm256_and_si256(third, _mm256_set1_epi8(4)));
               }
               take(4 * s, bytes);
             });
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m256i last[4], scales[4];  // the block's last 16 bytes: two more, the 12, two of their scale
    transpose16(block + kBlockBytes - 16, stride, last);
    const auto dword = [&](int i) {
      return _mm256_or_si256(_mm256_srli_epi32(last[i], 16), _mm256_slli_epi32(last[i + 1], 16));
    };
    const __m256i low[2] = {dword(0), dword(1)}, up = dword(2);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i fours = i < 2 ? low[i] : _mm256_srli_epi16(low[i - 2], 4);
      const __m256i twos =
          i < 2 ? _mm256_slli_epi16(up, 4 - 2 * i) : _mm256_srli_epi16(up, 2 * i - 4);
      scales[i] = _mm256_sub_epi8(_mm256_or_si256(_mm256_and_si256(fours, _mm256_set1_epi8(15)),
                                                  _mm256_and_si256(twos, _mm256_set1_epi8(48))),
                                  _mm256_set1_epi8(32));
    }
    // Four bytes of each row are read: the block's last ones, for nothing may lie behind it.
    Base::set_scales(scales, halves<true>(block + kBlockBytes - 4, stride), out);
  }
};

// Scales and offsets of sixteen parts, four bits of a byte each; two bits of each number in 64
// bytes; their scales in half precision.
template <class Part>
struct Q2 : Offset<Part, 16, 3> {
  using Base = Offset<Part, 16, 3>;
  using typename Base::Scales;
  static constexpr int kBlockBytes = 84;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    each_two(block + 16, stride, ahead,
             [&](int s, const __m256i* twos) __attribute__((always_inline)) {
               __m256i bytes[4];
#pragma GCC unroll 4
               for (int t = 0; t < 4; ++t)
                 bytes[t] = _mm256_and_si256(twos[t], _mm256_set1_epi8(3));
               take(4 * s, bytes);
             });
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m256i both[4], scales[4], offsets[4];
    transpose16(block, stride, both);
    const __m256i four = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      scales[i] = _mm256_and_si256(both[i], four);
      offsets[i] = _mm256_and_si256(_mm256_srli_epi16(both[i], 4), four);
    }
    Base::set_scales(scales, offsets, block + kBlockBytes - 4, stride, out);
  }
};

}  // namespace
}  // namespace codespec
