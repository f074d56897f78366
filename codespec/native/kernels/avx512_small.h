// ggml's blocks of 32 numbers with a scale in half precision, AVX-512 with VNNI. As panels.h, to be
// included by files of one instruction set each.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "rows.h"

namespace codespec {
namespace {

// The numbers of sixteen rows, moved up by 128, as one factor of the instruction is unsigned: dword
// t of each row in register t.

// A byte each, behind the scale.
struct Eight {
  static constexpr int kBlockBytes = 34;
  static constexpr bool kHasMinimum = false;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m512i* out) {
    transpose32(block + 2, stride, out);
    for (int t = 0; t < 8; ++t) out[t] = _mm512_xor_si512(out[t], _mm512_set1_epi8(-128));
  }
};

// Four bits each: the first sixteen are the lower ones of sixteen bytes, the others the upper.
[[gnu::always_inline]] inline void load_fours(const std::byte* bytes, std::int64_t stride,
                                              __m512i* out) {
  transpose16(bytes, stride, out);
  const __m512i four = _mm512_set1_epi8(15);
  for (int t = 0; t < 4; ++t) {
    out[t + 4] = _mm512_and_si512(_mm512_srli_epi16(out[t], 4), four);
    out[t] = _mm512_and_si512(out[t], four);
  }
}

// 8 too large, or to be added to a minimum, which stands behind the scale.
template <bool kFromMinimum>
struct Fours {
  static constexpr int kBlockBytes = kFromMinimum ? 20 : 18;
  static constexpr bool kHasMinimum = kFromMinimum;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m512i* out) {
    load_fours(block + (kHasMinimum ? 4 : 2), stride, out);
    const __m512i up = _mm512_set1_epi8(static_cast<char>(128 - (kHasMinimum ? 0 : 8)));
    for (int t = 0; t < 8; ++t) out[t] = _mm512_add_epi8(out[t], up);
  }
};

// The numbers that indices into a table encode.
[[gnu::always_inline]] inline void look_up(const std::int8_t* of, __m512i* bytes) {
  const __m512i table = _mm512_xor_si512(
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(of))),
      _mm512_set1_epi8(-128));
  for (int t = 0; t < 8; ++t) bytes[t] = _mm512_shuffle_epi8(table, bytes[t]);
}

struct FoursOfTable {
  static constexpr int kBlockBytes = 18;
  static constexpr bool kHasMinimum = false;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m512i* out) {
    load_fours(block + 2, stride, out);
    look_up(kTable, out);
  }
};

// The scale is a power of two, its exponent a byte, 128 too large; the two smallest count as 0.
struct Floats {
  static constexpr int kBlockBytes = 17;
  static constexpr bool kHasMinimum = false;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m512i* out) {
    load_fours(block + 1, stride, out);
    look_up(kFloats, out);
  }

  [[gnu::always_inline]] static inline __m512 scales(const std::byte* block, std::int64_t stride) {
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i exponents = _mm512_and_si512(dwords_at(block, stride), _mm512_set1_epi32(255));
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_max_epi32(exponents, one), one), 23));
  }
};

// 16 too large, or to be added to a minimum; their fifth bits are in four bytes before the others.
template <bool kFromMinimum>
struct Fives {
  static constexpr int kBlockBytes = kFromMinimum ? 24 : 22;
  static constexpr bool kHasMinimum = kFromMinimum;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m512i* out) {
    constexpr int kHead = kHasMinimum ? 4 : 2;
    load_fours(block + kHead + 4, stride, out);
    const __m512i high = dwords_at(block + kHead, stride);
    const __m512i up = _mm512_set1_epi8(static_cast<char>(128 - (kHasMinimum ? 0 : 16)));
    for (int t = 0; t < 8; ++t) {
      const __m512i byte = _mm512_set1_epi32(t / 2 * 0x01010101);  // that has the bits of dword t
      const __m512i lanes =
          _mm512_broadcast_i32x4(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
      const __m512i bits =
          _mm512_set1_epi32(t % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
      const __mmask64 is_high =
          _mm512_test_epi8_mask(_mm512_shuffle_epi8(high, _mm512_or_si512(lanes, byte)), bits);
      out[t] = _mm512_add_epi8(out[t], up);
      out[t] = _mm512_mask_add_epi8(out[t], is_high, out[t], _mm512_set1_epi8(16));
    }
  }
};

// Values for blocks with a minimum: the minima of sixteen rows, and the sum of a column's numbers,
// which they are multiplied with.
template <bool kHasMinimum>
struct Minimum {
  struct OfWeights {};
  struct OfState {};
};
template <>
struct Minimum<true> {
  struct OfWeights {
    __m512 minima;
  };
  struct OfState {
    float sum;
  };
};

// Numbers gives: kBlockBytes, kHasMinimum and `load`; `scales` where these are not in half
// precision.
template <class Numbers>
struct Small {
  static constexpr bool kHasMinimum = Numbers::kHasMinimum;
  static constexpr int kRows = kLanes, kColumns = 17;
  static constexpr int kBlockBytes = Numbers::kBlockBytes;
  static constexpr int kNumbersAt = kHasMinimum ? 4 : 2;  // in a column's block
  static constexpr int kStateBytes = kNumbersAt + 32;
  static constexpr bool kFetchesFar = true;
  static constexpr bool kAlwaysNear = kBlockBytes == 34;  // q8_0
  using Sums = __m512;

  struct Weights : Minimum<kHasMinimum>::OfWeights {
    __m512i bytes[8];
    __m512 scales;
  };

  // bias takes back what moving the weights up adds.
  struct State : Minimum<kHasMinimum>::OfState {
    float scale;
    std::int32_t bias;
  };

  static State prepare(const std::byte* block) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + kNumbersAt));
    const __m256i by_lane = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(by_lane), _mm256_extracti128_si256(by_lane, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    State out;
    out.scale = half(block);
    out.bias = -128 * _mm_cvtsi128_si32(sum);
    if constexpr (kHasMinimum) out.sum = half(block + 2);
    return out;
  }

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    Weights out;
    Numbers::load(block, stride, out.bytes);
    if constexpr (requires { Numbers::scales(block, stride); }) {
      out.scales = Numbers::scales(block, stride);
    } else {
      out.scales = halves_at(block, stride);
    }
    if constexpr (kHasMinimum) out.minima = halves_at(block + 2, stride);
    return out;
  }

  [[gnu::always_inline]] static inline Weights load_ordered(const std::byte* numbers,
                                                            const std::byte* scales) {
    Weights out;
    for (int t = 0; t < 8; ++t) out.bytes[t] = _mm512_load_si512(numbers + 64 * t);
    out.scales = load_halves(scales);
    return out;
  }

  template <int N>
  [[gnu::always_inline]] static inline void multiply(const Weights& weights,
                                                     const std::byte* column, std::int64_t stride,
                                                     const State* states, __m512* sums) {
    add<N>(weights, states, sums, [&](int, int j) __attribute__((always_inline)) {
      __m512i dot = _mm512_set1_epi32(states[j].bias);
#pragma GCC unroll 8
      for (int t = 0; t < 8; ++t) {
        dot = _mm512_dpbusd_epi32(dot, weights.bytes[t],
                                  broadcast(column + j * stride + kNumbersAt + 4 * t));
      }
      return dot;
    });
  }

  // exact(0, column): sixteen rows' products with a column.
  template <int N>
  [[gnu::always_inline]] static inline void add(const Weights& weights, const State* states,
                                                __m512* sums, const auto& exact) {
#pragma GCC unroll 17
    for (int j = 0; j < N; ++j) {
      const __m512 dot = _mm512_cvtepi32_ps(exact(0, j));
      const __m512 scale = _mm512_mul_ps(weights.scales, _mm512_set1_ps(states[j].scale));
      sums[j] = _mm512_fmadd_ps(dot, scale, sums[j]);
      if constexpr (kHasMinimum) {
        sums[j] = _mm512_fmadd_ps(weights.minima, _mm512_set1_ps(states[j].sum), sums[j]);
      }
    }
  }

  static void store(float* out, __m512 sums, int skip) { store_rows(out, sums, skip); }
};

using Q8_0 = Small<Eight>;

}  // namespace
}  // namespace codespec
