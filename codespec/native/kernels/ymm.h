// Eight rows at once, in registers of 256 bits: what AVX2 and AVX-VNNI have in common. All of it is
// local to the file that includes it, as in panels.h.
#pragma once

#include <immintrin.h>

#include "panels.h"

namespace codespec {

// ymm_floats.cpp
void multiply_f16_ymm(const Product&);
void multiply_bf16_ymm(const Product&);
void multiply_f32_ymm(const Product&);

// ymm_attention.cpp
void attend_ymm(const Attention&);

namespace {

[[gnu::always_inline]] inline int dword(const void* bytes) {
  int out;
  __builtin_memcpy(&out, bytes, sizeof out);
  return out;
}

// Half-precision numbers, one after the other.
[[gnu::always_inline]] inline __m256 load_halves(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

[[gnu::always_inline]] inline float half(const std::byte* bytes) {
  std::uint16_t out;
  __builtin_memcpy(&out, bytes, sizeof out);
  return _cvtsh_ss(out);
}

// Eight rows of 16 bytes: dword t of each in the lanes of register t.
[[gnu::always_inline]] inline void transpose16(const std::byte* rows, std::int64_t stride,
                                               __m256i* out) {
  const auto row = [&](int r) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * stride));
  };
  __m256i pairs[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    pairs[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(row(r)), row(r + 4), 1);
  }
  const __m256i low01 = _mm256_unpacklo_epi32(pairs[0], pairs[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(pairs[2], pairs[3]);
  const __m256i high01 = _mm256_unpackhi_epi32(pairs[0], pairs[1]);
  const __m256i high23 = _mm256_unpackhi_epi32(pairs[2], pairs[3]);
  out[0] = _mm256_unpacklo_epi64(low01, low23);
  out[1] = _mm256_unpackhi_epi64(low01, low23);
  out[2] = _mm256_unpacklo_epi64(high01, high23);
  out[3] = _mm256_unpackhi_epi64(high01, high23);
}

// Eight rows of 32 bytes, registers 0 to 7.
[[gnu::always_inline]] inline void transpose32(const std::byte* rows, std::int64_t stride,
                                               __m256i* out) {
  transpose16(rows, stride, out);
  transpose16(rows + 16, stride, out + 4);
}

// The half-precision number in the lower, or upper, half of the first dword of eight rows. No
// gather, which is slow where its leaks are mended.
template <bool kUpper = false>
[[gnu::always_inline]] inline __m256 halves(const std::byte* rows, std::int64_t stride) {
  const auto row = [&](int r) { return _mm_cvtsi32_si128(dword(rows + r * stride)); };
  const __m128i first =
      _mm_unpacklo_epi32(_mm_unpacklo_epi16(row(0), row(1)), _mm_unpacklo_epi16(row(2), row(3)));
  const __m128i last =
      _mm_unpacklo_epi32(_mm_unpacklo_epi16(row(4), row(5)), _mm_unpacklo_epi16(row(6), row(7)));
  return _mm256_cvtph_ps(kUpper ? _mm_unpackhi_epi64(first, last)
                                : _mm_unpacklo_epi64(first, last));
}

// Base of formats: columns are multiplied in even groups, of at most kGroup, which fit the
// registers.
template <class Format>
struct Groups {
  template <int N, class Weights, class State, class Sums>
  [[gnu::always_inline]] static inline void multiply(const Weights& weights,
                                                     const std::byte* column, std::int64_t stride,
                                                     const State* states, Sums* sums) {
    constexpr int kGroups = (N + Format::kGroup - 1) / Format::kGroup,
                  kFirst = (N + kGroups - 1) / kGroups;
    Format::template multiply_group<kFirst>(weights, column, stride, states, sums);
    if constexpr (N > kFirst) {
      multiply<N - kFirst>(weights, column + kFirst * stride, stride, states + kFirst,
                           sums + kFirst);
    }
  }

  static void store(float* out, __m256 sums, int skip) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(out, _mm256_cmpgt_epi32(lanes, _mm256_set1_epi32(skip - 1)), sums);
  }
};

// The numbers of eight rows, dword t of each in register t, as avx512_small.h has them of sixteen.

struct Eight {
  static constexpr int kBlockBytes = 34;
  static constexpr bool kHasMinimum = false;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m256i* out) {
    transpose32(block + 2, stride, out);
  }
};

[[gnu::always_inline]] inline void load_fours(const std::byte* bytes, std::int64_t stride,
                                              __m256i* out) {
  transpose16(bytes, stride, out);
  const __m256i four = _mm256_set1_epi8(15);
  for (int t = 0; t < 4; ++t) {
    out[t + 4] = _mm256_and_si256(_mm256_srli_epi16(out[t], 4), four);
    out[t] = _mm256_and_si256(out[t], four);
  }
}

template <bool kFromMinimum>
struct Fours {
  static constexpr int kBlockBytes = kFromMinimum ? 20 : 18;
  static constexpr bool kHasMinimum = kFromMinimum;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m256i* out) {
    load_fours(block + (kHasMinimum ? 4 : 2), stride, out);
    if constexpr (!kHasMinimum) {
      for (int t = 0; t < 8; ++t) out[t] = _mm256_sub_epi8(out[t], _mm256_set1_epi8(8));
    }
  }
};

[[gnu::always_inline]] inline void look_up(const std::int8_t* of, __m256i* bytes) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(of)));
  for (int t = 0; t < 8; ++t) bytes[t] = _mm256_shuffle_epi8(table, bytes[t]);
}

struct FoursOfTable {
  static constexpr int kBlockBytes = 18;
  static constexpr bool kHasMinimum = false;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m256i* out) {
    load_fours(block + 2, stride, out);
    look_up(kTable, out);
  }
};

// The first dwords of eight rows.
[[gnu::always_inline]] inline __m256i dwords_at(const std::byte* rows, std::int64_t stride) {
  const auto row = [&](int r) { return dword(rows + r * stride); };
  return _mm256_setr_epi32(row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7));
}

struct Floats {
  static constexpr int kBlockBytes = 17;
  static constexpr bool kHasMinimum = false;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m256i* out) {
    load_fours(block + 1, stride, out);
    look_up(kFloats, out);
  }

  [[gnu::always_inline]] static inline __m256 scales(const std::byte* block, std::int64_t stride) {
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i exponents = _mm256_and_si256(dwords_at(block, stride), _mm256_set1_epi32(255));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_sub_epi32(_mm256_max_epi32(exponents, one), one), 23));
  }
};

template <bool kFromMinimum>
struct Fives {
  static constexpr int kBlockBytes = kFromMinimum ? 24 : 22;
  static constexpr bool kHasMinimum = kFromMinimum;

  [[gnu::always_inline]] static inline void load(const std::byte* block, std::int64_t stride,
                                                 __m256i* out) {
    constexpr int kHead = kHasMinimum ? 4 : 2;
    load_fours(block + kHead + 4, stride, out);
    const __m256i high = dwords_at(block + kHead, stride);
    const __m256i lanes = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                            0x08080808, 0x0c0c0c0c);
    for (int t = 0; t < 8; ++t) {
      const __m256i byte = _mm256_set1_epi32(t / 2 * 0x01010101);  // that has the bits of dword t
      const __m256i bits =
          _mm256_set1_epi32(t % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
      const __m256i set =
          _mm256_and_si256(_mm256_shuffle_epi8(high, _mm256_or_si256(lanes, byte)), bits);
      const __m256i is_set = _mm256_cmpeq_epi8(set, bits), sixteen = _mm256_set1_epi8(16);
      out[t] = kHasMinimum ? _mm256_or_si256(out[t], _mm256_and_si256(is_set, sixteen))
                           : _mm256_sub_epi8(out[t], _mm256_andnot_si256(is_set, sixteen));
    }
  }
};

template <bool kHasMinimum>
struct Minimum {
  struct OfWeights {};
  struct OfState {};
};
template <>
struct Minimum<true> {
  struct OfWeights {
    __m256 minima;
  };
  struct OfState {
    float sum;
  };
};

// ggml's block of 32 numbers with a scale in half precision, as Numbers has them.
//
// `Dot` gives: State, what is known of a column's numbers before, its `prepare`, and `begin`, where
// its sum starts; `ready`, bytes of the weights as they are kept, and `factor`, as they are
// multiplied; `add`, which adds the product with dword t of a column; kColumns, and kGroup, for the
// sums of how many columns there are registers.
template <class Dot, class Numbers>
struct Small : Groups<Small<Dot, Numbers>> {
  static constexpr bool kHasMinimum = Numbers::kHasMinimum;
  static constexpr int kRows = 8, kColumns = Dot::kColumns;
  static constexpr int kBlockBytes = Numbers::kBlockBytes;
  static constexpr int kNumbersAt = kHasMinimum ? 4 : 2;  // in a column's block
  static constexpr int kStateBytes = kNumbersAt + 32;
  static constexpr int kGroup = Dot::kGroup;
  static constexpr bool kFetchesFar = false;  // from four columns on a tenth slower
  static constexpr bool kAlwaysNear = false;
  using Sums = __m256;

  struct State : Dot::State, Minimum<kHasMinimum>::OfState {};

  struct Weights : Minimum<kHasMinimum>::OfWeights {
    __m256i bytes[8];
    __m256 scales;
  };

  static State prepare(const std::byte* block) {
    State out{Dot::prepare(half(block), block + kNumbersAt), {}};
    if constexpr (kHasMinimum) out.sum = half(block + 2);
    return out;
  }

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    Weights out;
    Numbers::load(block, stride, out.bytes);
    for (__m256i& bytes : out.bytes) bytes = Dot::ready(bytes);
    if constexpr (requires { Numbers::scales(block, stride); }) {
      out.scales = Numbers::scales(block, stride);
    } else {
      out.scales = halves(block, stride);
    }
    if constexpr (kHasMinimum) out.minima = halves(block + 2, stride);
    return out;
  }

  [[gnu::always_inline]] static inline Weights load_ordered(const std::byte* numbers,
                                                            const std::byte* scales) {
    Weights out;
    for (int t = 0; t < 8; ++t)
      out.bytes[t] = _mm256_load_si256(reinterpret_cast<const __m256i*>(numbers + 32 * t));
    out.scales = load_halves(scales);
    return out;
  }

  template <int N>
  [[gnu::always_inline]] static inline void multiply_group(const Weights& weights,
                                                           const std::byte* column,
                                                           std::int64_t stride, const State* states,
                                                           __m256* sums) {
    __m256i dots[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) dots[j] = Dot::begin(states[j]);
#pragma GCC unroll 8
    for (int t = 0; t < 8; ++t) {
      const auto factor = Dot::factor(weights.bytes[t]);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        dots[j] = Dot::add(dots[j], factor, column + j * stride + kNumbersAt, states[j], t);
        // In this order: column by column, the compiler would fetch all weights for each again.
        asm("" : "+x"(dots[j]));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) add(weights, states[j], dots[j], sums[j]);
  }

  [[gnu::always_inline]] static inline void add(const Weights& weights, const State& state,
                                                __m256i dot, __m256& sum) {
    const __m256 scale = _mm256_mul_ps(weights.scales, _mm256_set1_ps(state.scale));
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sum);
    if constexpr (kHasMinimum) {
      sum = _mm256_fmadd_ps(weights.minima, _mm256_set1_ps(state.sum), sum);
    }
  }
};

}  // namespace
}  // namespace codespec
