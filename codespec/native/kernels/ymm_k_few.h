// K-quants of two and three bits, as ymm_k.h has those of more.
//
// In each half of a block 32 bytes have two bits of each number, the lowest of the first 32
// numbers: 16 bytes have a part of each quarter of the half.
#pragma once

#include "ymm_k.h"

namespace codespec {
namespace {

// The third bits of all numbers in 32 bytes, a bit of each for every 32; two bits of each in 64;
// the scales, 32 too large, in 12: of each the lower four bits in eight bytes, two in each, the
// upper two in four; their scale.
template <class Part>
struct Q3 : Sixteens<Part, Q3<Part>, 2> {
  using Base = Sixteens<Part, Q3, 2>;
  using typename Base::Weights;
  static constexpr int kBlockBytes = 110;

  [[gnu::noinline]] static Weights load(const std::byte* block, std::int64_t stride,
                                        const auto& ahead) {
    Weights out;
    const __m256i two = _mm256_set1_epi8(3), third = _mm256_set1_epi8(4);
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
      __m256i high[4];
      transpose16(block + 16 * odd, stride, high);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        ahead(2 * odd + half, 4);
        __m256i low[4];
        transpose16(block + 32 + 32 * half + 16 * odd, stride, low);
#pragma GCC unroll 4
        for (int t = 0; t < 4; ++t) {
#pragma GCC unroll 4
          for (int quarter = 0; quarter < 4; ++quarter) {
            const int bit = 4 * half + quarter;
            const __m256i up =
                bit < 2 ? _mm256_slli_epi16(high[t], 2 - bit) : _mm256_srli_epi16(high[t], bit - 2);
            out.bytes[8 * half + 2 * quarter + odd][t] =
                _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low[t], 2 * quarter), two),
                                _mm256_and_si256(up, third));
          }
        }
      }
    }
    __m256i scales[4];
    load_scales(block, stride, scales);
    Base::set_scales(scales, block, stride, out);
    return out;
  }

 private:
  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        __m256i* out) {
    __m256i last[4];  // the block's last 16 bytes: two more, the 12, two of their scale
    transpose16(block + kBlockBytes - 16, stride, last);
    const auto dword = [&](int i) {
      return _mm256_or_si256(_mm256_srli_epi32(last[i], 16), _mm256_slli_epi32(last[i + 1], 16));
    };
    const __m256i low[2] = {dword(0), dword(1)}, up = dword(2);
    const __m256i four = _mm256_set1_epi8(15), two = _mm256_set1_epi8(48);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i four_of = i < 2 ? low[i] : _mm256_srli_epi16(low[i - 2], 4);
      const __m256i two_of =
          i < 2 ? _mm256_slli_epi16(up, 4 - 2 * i) : _mm256_srli_epi16(up, 2 * i - 4);
      out[i] = _mm256_sub_epi8(
          _mm256_or_si256(_mm256_and_si256(four_of, four), _mm256_and_si256(two_of, two)),
          _mm256_set1_epi8(32));
    }
  }
};

// Scales and offsets of sixteen parts, four bits of a byte each; two bits of each number in 64
// bytes; their scales in half precision.
template <class Part>
struct Q2 : Offset<Part, Q2<Part>, 16, 3> {
  using Base = Offset<Part, Q2, 16, 3>;
  using typename Base::Weights;
  static constexpr int kBlockBytes = 84;

  [[gnu::noinline]] static Weights load(const std::byte* block, std::int64_t stride,
                                        const auto& ahead) {
    Weights out;
    const __m256i two = _mm256_set1_epi8(3), four = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      ahead(i, 4);
      const int half = i / 2, odd = i % 2;
      __m256i low[4];
      transpose16(block + 16 + 16 * i, stride, low);
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) {
#pragma GCC unroll 4
        for (int quarter = 0; quarter < 4; ++quarter) {
          out.bytes[8 * half + 2 * quarter + odd][t] =
              _mm256_and_si256(_mm256_srli_epi16(low[t], 2 * quarter), two);
        }
      }
    }
    __m256i both[4], scales[4], offsets[4];
    transpose16(block, stride, both);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      scales[i] = _mm256_and_si256(both[i], four);
      offsets[i] = _mm256_and_si256(_mm256_srli_epi16(both[i], 4), four);
    }
    Base::set_scales(scales, offsets, block + 80, stride, out);
    return out;
  }
};

}  // namespace
}  // namespace codespec
