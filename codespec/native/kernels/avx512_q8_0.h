// Weights of q8_0 with AVX-512 and VNNI. As panels.h, to be included by files of one instruction
// set each.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "rows.h"

namespace codespec {
namespace {

// ggml's block of 32 numbers: a scale in half precision, then as many signed bytes.
struct Q8_0 {
  static constexpr int kRows = kLanes, kColumns = 17, kBlockBytes = 34, kStateBytes = 34;
  static constexpr bool kFetchesFar = true;
  using Sums = __m512;

  // Bytes are moved up by 128, as one factor of the instruction is unsigned.
  struct Weights {
    __m512i bytes[8];
    __m512 scales;
  };

  // bias takes back what moving the weights up adds.
  struct State {
    float scale;
    std::int32_t bias;
  };

  static State prepare(const std::byte* block) {
    std::uint16_t scale;
    __builtin_memcpy(&scale, block, sizeof scale);
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2));
    const __m256i by_lane = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(by_lane), _mm256_extracti128_si256(by_lane, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return {_cvtsh_ss(scale), -128 * _mm_cvtsi128_si32(sum)};
  }

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    Weights out;
    transpose32(block + 2, stride, out.bytes);
    for (__m512i& bytes : out.bytes) bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
    out.scales = halves_at(block, stride);
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
        dot =
            _mm512_dpbusd_epi32(dot, weights.bytes[t], broadcast(column + j * stride + 2 + 4 * t));
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
    }
  }

  static void store(float* out, __m512 sums, int skip) { store_rows(out, sums, skip); }
};

}  // namespace
}  // namespace codespec
