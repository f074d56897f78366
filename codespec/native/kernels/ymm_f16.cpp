// Half-precision matrices in registers of 256 bits, for AVX2 and AVX-VNNI: what attention
// multiplies, keys with queries and values with weights. Rows are as short as a head or as long as
// the context, and next to each other in memory, so they are taken as they are: four rows, or two
// and two, by up to six columns at once, in float32.
#include <array>
#include <utility>

#include "ymm.h"

namespace codespec {
namespace {

constexpr int kTall = 4, kColumns = 6, kStep = 8;
constexpr int kSums = 12;  // for so many there are registers
constexpr int kLine = 32;  // half-precision numbers in a line of the cache

// What the columns may take as float32, in numbers, to stay in a core's cache.
constexpr std::int64_t kCached = 1 << 16;

// Numbers of a row or column.
inline __m256 load(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
// The last ones, which do not fill a register.
inline __m256 load(const std::byte* p, std::int64_t n) {
  std::byte some[2 * kStep]{};
  __builtin_memcpy(some, p, static_cast<std::size_t>(2 * n));
  return load(some);
}

// Columns are padded with zeros to whole registers.
constexpr std::int64_t padded(std::int64_t length) { return (length + kStep - 1) / kStep * kStep; }

// Columns as float32, one after the other.
void widen(const std::byte* from, std::int64_t stride, std::int64_t n, std::int64_t length,
           float* out) {
  const std::int64_t whole = length / kStep * kStep;
  for (std::int64_t i = 0; i < n; ++i, from += stride, out += padded(length)) {
    for (std::int64_t k = 0; k < whole; k += kStep) _mm256_storeu_ps(out + k, load(from + 2 * k));
    if (whole < length) _mm256_storeu_ps(out + whole, load(from + 2 * whole, length - whole));
  }
}

// The sums of four registers, in the order of the registers.
[[gnu::always_inline]] inline __m128 totals(const __m256* sums) {
  const __m256 pairs = _mm256_hadd_ps(sums[0], sums[1]), others = _mm256_hadd_ps(sums[2], sums[3]);
  const __m256 quads = _mm256_hadd_ps(pairs, others);
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

// The sums of kRows rows and N columns, those of a column kTall apart.
template <int kRows, int N>
[[gnu::always_inline]] inline void add_up(const std::byte* const* rows, std::int64_t ahead,
                                          const float* columns, std::int64_t length, __m256* out) {
  __m256 sums[N][kRows]{};
  const std::int64_t whole = length / kStep * kStep;
  const auto add = [&](std::int64_t k, auto... some) {
    const auto numbers = [&](int r) { return load(rows[r] + 2 * k, some...); };
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
    if (k % kLine == 0) {  // the rows of the next tile, as panels.h does
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(rows[r] + ahead + 2 * k);
    }
    add(k);
  }
  if (whole < length) add(whole, length - whole);
  for (int j = 0; j < N; ++j) {
    for (int r = 0; r < kRows; ++r) out[j * kTall + r] = sums[j][r];
  }
}

// Of a tile n_rows count.
template <int N>
void multiply(const std::byte* first, std::int64_t stride, int n_rows, const float* columns,
              std::int64_t length, float* out, std::int64_t out_stride) {
  constexpr int kAtOnce = kTall * N <= kSums ? kTall : kTall / 2;
  const std::byte* rows[kTall];
  for (int r = 0; r < kTall; ++r) rows[r] = first + (r < n_rows ? r : 0) * stride;
  __m256 sums[N * kTall];
  for (int r = 0; r < kTall; r += kAtOnce) {
    add_up<kAtOnce, N>(rows + r, kTall * stride, columns, length, sums + r);
  }
  for (int j = 0; j < N; ++j) {
    float total[kTall];
    _mm_storeu_ps(total, totals(sums + j * kTall));
    for (int r = 0; r < n_rows; ++r) out[j * out_stride + r] = total[r];
  }
}

template <int... N>
constexpr auto all(std::integer_sequence<int, N...>) {
  return std::array{&multiply<N + 1>...};
}
constexpr auto kMultiply = all(std::make_integer_sequence<int, kColumns>{});

void multiply_some(const Product& p, std::int64_t start, std::int64_t n, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t length = p.n_blocks, n_panels = (n + kColumns - 1) / kColumns;
  auto* const columns = reinterpret_cast<float*>(
      scratch(sizeof(float) * static_cast<std::size_t>(n * padded(length))));
  widen(p.states + start * p.states_stride, p.states_stride, n, length, columns);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const std::int64_t row = tile * kTall, left = p.n_rows - row;
    for (std::int64_t i = 0; i < n_panels; ++i) {
      const std::int64_t first = n * i / n_panels, last = n * (i + 1) / n_panels;
      kMultiply[static_cast<std::size_t>(last - first - 1)](
          p.weights + row * p.weights_stride, p.weights_stride,
          static_cast<int>(left < kTall ? left : kTall), columns + first * padded(length), length,
          p.out + (start + first) * p.out_stride + row, p.out_stride);
    }
  }
}

}  // namespace

void multiply_f16_ymm(const Product& p) {
  const std::int64_t n_tiles = (p.n_rows + kTall - 1) / kTall;
  const std::int64_t begin = n_tiles * p.thread / p.n_threads,
                     end = n_tiles * (p.thread + 1) / p.n_threads;
  if (begin == end) return;
  const std::int64_t at_once = kCached / p.n_blocks > kColumns ? kCached / p.n_blocks : kColumns;
  for (std::int64_t start = 0; start < p.n_columns; start += at_once) {
    const std::int64_t left = p.n_columns - start;
    multiply_some(p, start, left < at_once ? left : at_once, begin, end);
  }
}

}  // namespace codespec
