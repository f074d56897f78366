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
#include "k_states.h"
#include "rows.h"

namespace codespec {
namespace {

// Formats of blocks in kParts parts give: Scales, `load_scales`, and `each`, which gives a block's
// bytes part by part to take(part, bytes), kDwords registers; State, what is known of a column's
// block before, and `prepare`; `begin`, where a column's share begins; `bias`, where a part's sum;
// kFused, for how many columns there are registers while a block is brought into order.

// Parts with a scale and an offset each.
template <int kParts_>
struct Offset : PartSums<kParts_> {
  using typename PartSums<kParts_>::State;
  static constexpr int kParts = kParts_, kDwords = 64 / kParts;

  struct Scales {
    __m512 scales[kParts];
    __m512i offsets[kParts / 2];  // of two parts in 16 bits each
    __m512 offset;                // their scale, negative
  };

  [[gnu::always_inline]] static inline __m512 begin(const Scales& scales, const State& state) {
    __m512i offsets = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < kParts / 2; ++i) {
      const auto* pair = reinterpret_cast<const std::byte*>(state.sums + 2 * i);
      offsets = _mm512_dpwssd_epi32(offsets, scales.offsets[i], broadcast(pair));
    }
    return _mm512_mul_ps(_mm512_cvtepi32_ps(offsets), scales.offset);
  }
  [[gnu::always_inline]] static inline __m512i bias(const State&, int) {
    return _mm512_setzero_si512();
  }

 protected:
  // scales, offsets: a byte each; those of both in the halves of `halves_of`.
  [[gnu::always_inline]] static inline void set_scales(const __m512i* scales,
                                                       const __m512i* offsets, __m512i halves_of,
                                                       Scales& out) {
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

// Parts with a scale each, whose numbers are kTooLarge too large.
template <int kParts_, int kTooLarge>
struct Biased {
  static constexpr int kParts = kParts_, kDwords = 64 / kParts;

  struct Scales {
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

  [[gnu::always_inline]] static inline __m512 begin(const Scales&, const State&) {
    return _mm512_setzero_ps();
  }
  [[gnu::always_inline]] static inline __m512i bias(const State& state, int s) {
    return _mm512_set1_epi32(state.biases[s]);
  }

 protected:
  // scales: a byte each, with its sign.
  [[gnu::always_inline]] static inline void set_scales(const __m512i* scales, __m512 scale,
                                                       Scales& out) {
#pragma GCC unroll 16
    for (int s = 0; s < kParts; ++s) {
      const __m512i up = _mm512_slli_epi32(scales[s / 4], static_cast<unsigned>(24 - 8 * (s % 4)));
      out.scales[s] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srai_epi32(up, 24)), scale);
    }
  }
};

// Products with such blocks.
template <class Format>
struct InParts : Format {
  using Format::kParts, Format::kDwords;
  using typename Format::Scales, typename Format::State;
  static constexpr int kRows = kLanes, kColumns = 16;
  static constexpr int kStateBytes = kStateBytesK;
  static constexpr bool kFetchesFar = true;
  static constexpr bool kAlwaysNear = false;
  using Sums = __m512;

  struct Weights : Scales {
    __m512i bytes[kParts][kDwords];
  };

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
    Weights out;
    Format::load_scales(block, stride, out);
    Format::each(block, stride, ahead,
                 [&](int s, const __m512i* bytes) __attribute__((always_inline)) {
#pragma GCC unroll 8
                   for (int t = 0; t < kDwords; ++t) out.bytes[s][t] = bytes[t];
                 });
    return out;
  }

  template <int N>
  [[gnu::always_inline]] static inline void multiply(const Weights& weights,
                                                     const std::byte* column, std::int64_t stride,
                                                     const State* states, __m512* sums) {
    add<N>(weights, states, sums, [&](int s, int j) __attribute__((always_inline)) {
      __m512i sum = Format::bias(states[j], s);
#pragma GCC unroll 8
      for (int t = 0; t < kDwords; ++t) {
        sum = _mm512_dpbusd_epi32(sum, weights.bytes[s][t],
                                  broadcast(numbers(column + j * stride, s, t)));
      }
      return sum;
    });
  }

  // exact(part, column): sixteen rows' products with a column.
  template <int N>
  [[gnu::always_inline]] static inline void add(const Weights& weights, const State* states,
                                                __m512* sums, const auto& exact) {
    __m512 block[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) block[j] = Format::begin(weights, states[j]);
#pragma GCC unroll 1
    for (int s = 0; s < kParts; ++s) {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) block[j] = scaled(exact(s, j), weights.scales[s], block[j]);
    }
    end<N>(block, states, sums);
  }

  // load and multiply at once, to the bit.
  template <int N>
  [[gnu::always_inline]] static inline void multiply_fused(
      const std::byte* rows, std::int64_t rows_stride, const auto& ahead, const std::byte* column,
      std::int64_t stride, const State* states, __m512* sums) {
    Scales scales;
    Format::load_scales(rows, rows_stride, scales);
    __m512 block[N];
#pragma GCC unroll 5
    for (int j = 0; j < N; ++j) block[j] = Format::begin(scales, states[j]);
    Format::each(rows, rows_stride, ahead,
                 [&](int s, const __m512i* bytes) __attribute__((always_inline)) {
                   __m512i exact[N];
#pragma GCC unroll 5
                   for (int j = 0; j < N; ++j) exact[j] = Format::bias(states[j], s);
#pragma GCC unroll 8
                   for (int t = 0; t < kDwords; ++t) {
#pragma GCC unroll 5
                     for (int j = 0; j < N; ++j) {
                       exact[j] = _mm512_dpbusd_epi32(
                           exact[j], bytes[t], broadcast(numbers(column + j * stride, s, t)));
                       asm("" : "+v"(exact[j]));  // in this order: each waits for the one before it
                     }
                   }
#pragma GCC unroll 5
                   for (int j = 0; j < N; ++j)
                     block[j] = scaled(exact[j], scales.scales[s], block[j]);
                 });
    end<N>(block, states, sums);
  }

  static void store(float* out, __m512 sums, int skip) { store_rows(out, sums, skip); }

 private:
  [[gnu::always_inline]] static inline const std::byte* numbers(const std::byte* column, int s,
                                                                int t) {
    return column + kStateNumbers + 4 * (kDwords * s + t);
  }
  [[gnu::always_inline]] static inline __m512 scaled(__m512i exact, __m512 scale, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, sum);
  }
  template <int N>
  [[gnu::always_inline]] static inline void end(const __m512* block, const State* states,
                                                __m512* sums) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      sums[j] = _mm512_fmadd_ps(block[j], _mm512_set1_ps(states[j].scale), sums[j]);
    }
  }
};

// Two scales in half precision, for scales and offsets of eight parts of 32; those, of 6 bits, in
// 12 bytes; with kHigh the fifth bits of all numbers in 32 bytes, a bit of each for every part;
// then four bits of each, two parts in 32 bytes.
template <bool kHigh>
struct Q45 : Offset<8> {
  static constexpr int kFused = 5;
  static constexpr int kBlockBytes = kHigh ? 176 : 144;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    [[maybe_unused]] __m512i high[8];
    if constexpr (kHigh) transpose32(block + 16, stride, high);
#pragma GCC unroll 4
    for (int i = 0; i < kParts / 2; ++i) {
      ahead(i, kParts / 2);
      __m512i both[8], bytes[8];
      transpose32(block + (kHigh ? 48 : 16) + 32 * i, stride, both);
#pragma GCC unroll 2
      for (int up = 0; up < 2; ++up) {
        const int s = 2 * i + up;
#pragma GCC unroll 8
        for (int t = 0; t < 8; ++t) {
          const __m512i four = up == 0 ? both[t] : _mm512_srli_epi16(both[t], 4);
          bytes[t] = _mm512_and_si512(four, _mm512_set1_epi8(15));
          if constexpr (kHigh) {  // bit s, moved to the fifth
            const __m512i fifth = s < 4 ? _mm512_slli_epi16(high[t], static_cast<unsigned>(4 - s))
                                        : _mm512_srli_epi16(high[t], static_cast<unsigned>(s - 4));
            bytes[t] = _mm512_or_si512(bytes[t], _mm512_and_si512(fifth, _mm512_set1_epi8(16)));
          }
        }
        take(s, bytes);
      }
    }
  }

  // Of the 12 bytes, the first four have in their lower six bits the scales of parts 0 to 3, the
  // next four the offsets; the last four the lower four bits of both for parts 4 to 7, whose upper
  // two are those left over in the first eight.
  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
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

// A scale in half precision; of the scales of eight parts, 32 too large, the upper two bits in two
// bytes and the lower four in four; then places in the table of iq4_nl.
struct XS : Biased<8, 128> {
  static constexpr int kFused = 5;
  static constexpr int kBlockBytes = 136;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
#pragma GCC unroll 8
    for (int s = 0; s < kParts; ++s) {
      ahead(s, kParts);
      __m512i bytes[kDwords];
      load_fours(block + 8 + 16 * s, stride, bytes);
      look_up(kTable, bytes);
      take(s, bytes);
    }
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m512i head[4];
    transpose16(block, stride, head);
    const __m512 scale = halves(head[0]);
#pragma GCC unroll 8
    for (int s = 0; s < kParts; ++s) {
      const __m512i low = _mm512_and_si512(_mm512_srli_epi32(head[1], static_cast<unsigned>(4 * s)),
                                           _mm512_set1_epi32(15));
      const __m512i up = _mm512_and_si512(
          _mm512_srli_epi32(head[0], static_cast<unsigned>(16 + 2 * s)), _mm512_set1_epi32(3));
      const __m512i of_part =
          _mm512_sub_epi32(_mm512_or_si512(low, _mm512_slli_epi32(up, 4)), _mm512_set1_epi32(32));
      out.scales[s] = _mm512_mul_ps(_mm512_cvtepi32_ps(of_part), scale);
    }
  }
};

}  // namespace
}  // namespace codespec
