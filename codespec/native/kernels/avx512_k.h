// ggml's K-quants: blocks of 256 numbers in parts with a small scale each, AVX-512 with VNNI. As
// panels.h, to be included by files of one instruction set each.
//
// Weights are unsigned as they are stored, which is what one factor of the instruction must be. A
// part's sum is exact in 32 bits; it then is multiplied with its scale in single precision.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "avx512_small.h"
#include "rows.h"

namespace codespec {
namespace {

// A column's block: a float, the scale; 256 signed bytes; their sums by 16, in 16 bits.
constexpr int kStateBytes = 292, kStateNumbers = 4, kStateSums = 260;

inline float scale_of(const std::byte* state) {
  float scale;
  __builtin_memcpy(&scale, state, sizeof scale);
  return scale;
}

// Adds to one sum of sixteen rows the products of `kDwords` registers with as many dwords.
template <int kDwords>
[[gnu::always_inline]] inline __m512i dot(__m512i sum, const __m512i* weights,
                                          const std::byte* numbers) {
#pragma GCC unroll 8
  for (int t = 0; t < kDwords; ++t) {
    sum = _mm512_dpbusd_epi32(sum, weights[t], broadcast(numbers + 4 * t));
  }
  return sum;
}

// Parts with a scale and an offset each.
template <int kParts_>
struct Offset {
  static constexpr int kRows = kLanes, kColumns = 16, kParts = kParts_, kDwords = 64 / kParts;
  static constexpr int kStateBytes = codespec::kStateBytes;
  static constexpr bool kFetchesFar = true;
  static constexpr bool kAlwaysNear = false;
  using Sums = __m512;

  struct Weights {
    __m512i bytes[kParts][kDwords];
    __m512 scales[kParts];
    __m512i offsets[kParts / 2];  // of two parts in 16 bits each
    __m512 offset;                // their scale, negative
  };

  struct State {
    float scale;
    std::int16_t sums[kParts];
  };

  static State prepare(const std::byte* block) {
    State out{scale_of(block), {}};
    std::int16_t sums[16];
    __builtin_memcpy(sums, block + kStateSums, sizeof sums);
    for (int i = 0; i < 16; ++i) {
      std::int16_t& sum = out.sums[i * kParts / 16];
      sum = static_cast<std::int16_t>(sum + sums[i]);
    }
    return out;
  }

  template <int N>
  [[gnu::always_inline]] static inline void multiply(const Weights& weights,
                                                     const std::byte* column, std::int64_t stride,
                                                     const State* states, __m512* sums) {
    add<N>(weights, states, sums, [&](int s, int j) __attribute__((always_inline)) {
      const std::byte* numbers = column + kStateNumbers + 4 * kDwords * s;
      return dot<kDwords>(_mm512_setzero_si512(), weights.bytes[s], numbers + j * stride);
    });
  }

  // exact(part, column): sixteen rows' products with a column.
  template <int N>
  [[gnu::always_inline]] static inline void add(const Weights& weights, const State* states,
                                                __m512* sums, const auto& exact) {
    __m512 block[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      __m512i offsets = _mm512_setzero_si512();
#pragma GCC unroll 8
      for (int i = 0; i < kParts / 2; ++i) {
        const auto* pair = reinterpret_cast<const std::byte*>(states[j].sums + 2 * i);
        offsets = _mm512_dpwssd_epi32(offsets, weights.offsets[i], broadcast(pair));
      }
      block[j] = _mm512_mul_ps(_mm512_cvtepi32_ps(offsets), weights.offset);
    }
#pragma GCC unroll 1
    for (int s = 0; s < kParts; ++s) {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) {
        block[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact(s, j)), weights.scales[s], block[j]);
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      sums[j] = _mm512_fmadd_ps(block[j], _mm512_set1_ps(states[j].scale), sums[j]);
    }
  }

  static void store(float* out, __m512 sums, int skip) { store_rows(out, sums, skip); }

 protected:
  // scales, offsets: a byte each; those of both in the halves of `halves_of`.
  [[gnu::always_inline]] static inline void set_scales(const __m512i* scales,
                                                       const __m512i* offsets, __m512i halves_of,
                                                       Weights& out) {
    const __m512 scale = halves(halves_of);
    out.offset = _mm512_sub_ps(_mm512_setzero_ps(), halves(_mm512_srli_epi32(halves_of, 16)));
    const __m512i byte = _mm512_set1_epi32(255);
#pragma GCC unroll 16
    for (int s = 0; s < kParts; ++s) {
      const __m512i part = _mm512_srli_epi32(scales[s / 4], static_cast<unsigned>(8 * (s % 4)));
      out.scales[s] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_and_si512(part, byte)), scale);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kParts / 2; ++i) {
      const __m512i pair = _mm512_srli_epi32(offsets[i / 2], static_cast<unsigned>(16 * (i % 2)));
      const __m512i second =
          _mm512_slli_epi32(_mm512_and_si512(pair, _mm512_set1_epi32(0xff00)), 8);
      out.offsets[i] = _mm512_or_si512(_mm512_and_si512(pair, byte), second);
    }
  }
};

// Two scales in half precision, for scales and offsets of eight parts of 32; those, of 6 bits, in
// 12 bytes; with kHigh the fifth bits of all numbers in 32 bytes, a bit of each for every part;
// then four bits of each, two parts in 32 bytes.
template <bool kHigh>
struct Q45 : Offset<8> {
  static constexpr int kBlockBytes = kHigh ? 176 : 144;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
    Weights out;
    load_scales(block, stride, out);
    const __m512i four = _mm512_set1_epi8(15);
    [[maybe_unused]] __m512i high[8];
    if constexpr (kHigh) transpose32(block + 16, stride, high);
#pragma GCC unroll 4
    for (int i = 0; i < kParts / 2; ++i) {
      ahead(i, kParts / 2);
      __m512i both[8];
      transpose32(block + (kHigh ? 48 : 16) + 32 * i, stride, both);
#pragma GCC unroll 8
      for (int t = 0; t < 8; ++t) {
        out.bytes[2 * i][t] = _mm512_and_si512(both[t], four);
        out.bytes[2 * i + 1][t] = _mm512_and_si512(_mm512_srli_epi16(both[t], 4), four);
        if constexpr (kHigh) {
          const auto fifth = [&](__m512i bits) {  // bit s moved to the fifth, of each byte
            return _mm512_and_si512(bits, _mm512_set1_epi8(16));
          };
          const auto moved = [&](int s) {
            return s < 4 ? _mm512_slli_epi16(high[t], static_cast<unsigned>(4 - s))
                         : _mm512_srli_epi16(high[t], static_cast<unsigned>(s - 4));
          };
          out.bytes[2 * i][t] = _mm512_or_si512(out.bytes[2 * i][t], fifth(moved(2 * i)));
          out.bytes[2 * i + 1][t] =
              _mm512_or_si512(out.bytes[2 * i + 1][t], fifth(moved(2 * i + 1)));
        }
      }
    }
    return out;
  }

 private:
  // Of the 12 bytes, the first four have in their lower six bits the scales of parts 0 to 3, the
  // next four the offsets; the last four the lower four bits of both for parts 4 to 7, whose upper
  // two are those left over in the first eight.
  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Weights& out) {
    __m512i head[4];
    transpose16(block, stride, head);
    const __m512i six = _mm512_set1_epi8(63), four = _mm512_set1_epi8(15),
                  two = _mm512_set1_epi8(48);
    const auto upper = [&](__m512i low, __m512i rest) {
      return _mm512_or_si512(_mm512_and_si512(low, four),
                             _mm512_and_si512(_mm512_srli_epi16(rest, 2), two));
    };
    const __m512i scales[2] = {_mm512_and_si512(head[1], six), upper(head[3], head[1])};
    const __m512i offsets[2] = {_mm512_and_si512(head[2], six),
                                upper(_mm512_srli_epi16(head[3], 4), head[2])};
    set_scales(scales, offsets, head[0], out);
  }
};

// Parts with a scale each, whose numbers are kTooLarge too large.
template <int kParts_, int kTooLarge>
struct Parts {
  static constexpr int kRows = kLanes, kColumns = 16, kParts = kParts_, kDwords = 64 / kParts;
  static constexpr int kStateBytes = codespec::kStateBytes;
  static constexpr bool kFetchesFar = true;
  static constexpr bool kAlwaysNear = false;
  using Sums = __m512;

  struct Weights {
    __m512i bytes[kParts][kDwords];
    __m512 scales[kParts];
  };

  // biases take back what is too much.
  struct State {
    float scale;
    std::int32_t biases[kParts];
  };

  static State prepare(const std::byte* block) {
    State out{scale_of(block), {}};
    std::int16_t sums[16];
    __builtin_memcpy(sums, block + kStateSums, sizeof sums);
    for (int i = 0; i < 16; ++i) out.biases[i * kParts / 16] -= kTooLarge * sums[i];
    return out;
  }

  template <int N>
  [[gnu::always_inline]] static inline void multiply(const Weights& weights,
                                                     const std::byte* column, std::int64_t stride,
                                                     const State* states, __m512* sums) {
    add<N>(weights, states, sums, [&](int s, int j) __attribute__((always_inline)) {
      const std::byte* numbers = column + kStateNumbers + 4 * kDwords * s;
      return dot<kDwords>(_mm512_set1_epi32(states[j].biases[s]), weights.bytes[s],
                          numbers + j * stride);
    });
  }

  // exact(part, column): sixteen rows' products with a column.
  template <int N>
  [[gnu::always_inline]] static inline void add(const Weights& weights, const State* states,
                                                __m512* sums, const auto& exact) {
    __m512 block[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) block[j] = _mm512_setzero_ps();
#pragma GCC unroll 1
    for (int s = 0; s < kParts; ++s) {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) {
        block[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact(s, j)), weights.scales[s], block[j]);
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      sums[j] = _mm512_fmadd_ps(block[j], _mm512_set1_ps(states[j].scale), sums[j]);
    }
  }

  static void store(float* out, __m512 sums, int skip) { store_rows(out, sums, skip); }

 protected:
  // scales: a byte each, with its sign.
  [[gnu::always_inline]] static inline void set_scales(const __m512i* scales, __m512 scale,
                                                       Weights& out) {
#pragma GCC unroll 16
    for (int s = 0; s < kParts; ++s) {
      const __m512i up = _mm512_slli_epi32(scales[s / 4], static_cast<unsigned>(24 - 8 * (s % 4)));
      out.scales[s] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srai_epi32(up, 24)), scale);
    }
  }
};

// A scale in half precision; of the scales of eight parts, 32 too large, the upper two bits in two
// bytes and the lower four in four; then places in the table of iq4_nl.
struct XS : Parts<8, 128> {
  static constexpr int kBlockBytes = 136;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
    Weights out;
    __m512i head[4];
    transpose16(block, stride, head);
    const __m512 scale = halves(head[0]);
#pragma GCC unroll 8
    for (int s = 0; s < kParts; ++s) {
      ahead(s, kParts);
      load_fours(block + 8 + 16 * s, stride, out.bytes[s]);
      look_up(out.bytes[s]);
      const __m512i low = _mm512_and_si512(_mm512_srli_epi32(head[1], static_cast<unsigned>(4 * s)),
                                           _mm512_set1_epi32(15));
      const __m512i up = _mm512_and_si512(
          _mm512_srli_epi32(head[0], static_cast<unsigned>(16 + 2 * s)), _mm512_set1_epi32(3));
      const __m512i of_part =
          _mm512_sub_epi32(_mm512_or_si512(low, _mm512_slli_epi32(up, 4)), _mm512_set1_epi32(32));
      out.scales[s] = _mm512_mul_ps(_mm512_cvtepi32_ps(of_part), scale);
    }
    return out;
  }
};

}  // namespace
}  // namespace codespec
