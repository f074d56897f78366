// Products of rows and columns of 256 bits: four rows, or two and two, by up to six columns at
// once. As panels.h, local to the file that includes it.
#pragma once

#include <array>
#include <utility>

#include "ymm.h"

namespace codespec {
namespace {

constexpr int kTall = 4, kColumns = 6, kStep = 8;
constexpr int kSums = 12;  // for so many there are registers

// How the numbers of a row are stored.
struct Half {
  static constexpr int kBytes = 2;
  static __m256 load(const std::byte* p) { return load_halves(p); }
};
struct Brain {  // the upper half of single precision
  static constexpr int kBytes = 2;
  static __m256 load(const std::byte* p) {
    const __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(low, 16));
  }
};
struct Single {
  static constexpr int kBytes = 4;
  static __m256 load(const std::byte* p) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  }
};

template <class Kind>
[[gnu::always_inline]] inline __m256 load(const std::byte* p) {
  return Kind::load(p);
}
// The last ones, which do not fill a register.
template <class Kind>
[[gnu::always_inline]] inline __m256 load(const std::byte* p, std::int64_t n) {
  std::byte some[kStep * Kind::kBytes]{};
  __builtin_memcpy(some, p, static_cast<std::size_t>(n * Kind::kBytes));
  return Kind::load(some);
}

// Columns are padded with zeros to whole registers.
constexpr std::int64_t padded(std::int64_t length) { return (length + kStep - 1) / kStep * kStep; }

// The sums of four registers, in the order of the registers.
[[gnu::always_inline]] inline __m128 totals(const __m256* sums) {
  const __m256 pairs = _mm256_hadd_ps(sums[0], sums[1]), others = _mm256_hadd_ps(sums[2], sums[3]);
  const __m256 quads = _mm256_hadd_ps(pairs, others);
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

// The sums of kRows rows and N columns, those of a column kTall apart.
template <class Kind, int kRows, int N>
[[gnu::always_inline]] inline void add_up(const std::byte* const* rows, std::int64_t ahead,
                                          const float* columns, std::int64_t length, __m256* out) {
  __m256 sums[N][kRows]{};
  const std::int64_t whole = length / kStep * kStep;
  const auto add = [&](std::int64_t k, auto... some) {
    const auto numbers = [&](int r) { return load<Kind>(rows[r] + k * Kind::kBytes, some...); };
    const auto column = [&](int j) { return _mm256_loadu_ps(columns + j * padded(length) + k); };
    // The fewer of both stay in registers.
    if constexpr (N < kRows) {
      __m256 few[N];
      for (int j = 0; j < N; ++j) few[j] = column(j);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m256 many = numbers(r);
        for (int j = 0; j < N; ++j) sums[j][r] = _mm256_fmadd_ps(many, few[j], sums[j][r]);
      }
    } else {
      __m256 few[kRows];
      for (int r = 0; r < kRows; ++r) few[r] = numbers(r);
#pragma GCC unroll 6
      for (int j = 0; j < N; ++j) {
        const __m256 many = column(j);
        for (int r = 0; r < kRows; ++r) sums[j][r] = _mm256_fmadd_ps(few[r], many, sums[j][r]);
      }
    }
  };
  for (std::int64_t k = 0; k < whole; k += kStep) {
    if (k * Kind::kBytes % kLine == 0) {  // the rows of the tile after the next, as panels.h does
      for (int r = 0; r < kRows; ++r) fetch(rows[r] + ahead + k * Kind::kBytes);
    }
    add(k);
  }
  if (whole < length) add(whole, length - whole);
  for (int j = 0; j < N; ++j) {
    for (int r = 0; r < kRows; ++r) out[j * kTall + r] = sums[j][r];
  }
}

// Only n_rows rows of a tile are written.
template <class Kind, int N>
void multiply(const std::byte* first, std::int64_t stride, int n_rows, const float* columns,
              std::int64_t length, float* out, std::int64_t out_stride) {
  constexpr int kAtOnce = kTall * N <= kSums ? kTall : kTall / 2;
  const std::byte* rows[kTall];
  for (int r = 0; r < kTall; ++r) rows[r] = first + (r < n_rows ? r : 0) * stride;
  __m256 sums[N * kTall];
  for (int r = 0; r < kTall; r += kAtOnce) {
    add_up<Kind, kAtOnce, N>(rows + r, 2 * kTall * stride, columns, length, sums + r);
  }
  for (int j = 0; j < N; ++j) {
    float total[kTall];
    _mm_storeu_ps(total, totals(sums + j * kTall));
    for (int r = 0; r < n_rows; ++r) out[j * out_stride + r] = total[r];
  }
}

template <class Kind, int... N>
constexpr auto all(std::integer_sequence<int, N...>) {
  return std::array{&multiply<Kind, N + 1>...};
}
template <class Kind>
constexpr auto kMultiply = all<Kind>(std::make_integer_sequence<int, kColumns>{});

}  // namespace
}  // namespace codespec
