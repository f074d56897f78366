// Half-precision matrices with AVX-512: what attention multiplies, keys with queries and values
// with weights. Rows are as short as a head or as long as the context, and next to each other in
// memory, so they are taken as they are: four rows by up to six columns at once, in float32.
#include <immintrin.h>

#include <array>
#include <utility>

#include "rows.h"

namespace codespec {
namespace {

constexpr int kTall = 4, kColumns = 6, kStep = 16;
constexpr int kLine = 32;    // half-precision numbers in a line of the cache
constexpr int kWidened = 4;  // from more panels on, to make rows float32 once is repaid

// How the numbers of a row are stored.
struct Half {
  static constexpr int kBytes = 2;
  static __m512 load(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512 load(const std::byte* p, __mmask16 some) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, p));
  }
};
struct Single {
  static constexpr int kBytes = 4;
  static __m512 load(const std::byte* p) { return _mm512_loadu_ps(p); }
  static __m512 load(const std::byte* p, __mmask16 some) { return _mm512_maskz_loadu_ps(some, p); }
};

// The sums of four registers, in the order of the registers.
[[gnu::always_inline]] inline __m128 totals(const __m512* sums) {
  const auto halved = [&](int r) {
    const __m256 low = _mm512_castps512_ps256(sums[r]);
    return _mm256_add_ps(low,
                         _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums[r]), 1)));
  };
  const __m256 pairs = _mm256_hadd_ps(halved(0), halved(1)),
               others = _mm256_hadd_ps(halved(2), halved(3));
  const __m256 quads = _mm256_hadd_ps(pairs, others);
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

struct Rows {
  const std::byte* first;
  std::int64_t stride;
  int n;  // 1 to kTall
};

// Columns are float32, `stride` numbers apart.
template <int N, class Kind>
void multiply(Rows rows, const float* columns, std::int64_t stride, std::int64_t length, float* out,
              std::int64_t out_stride) {
  __m512 sums[N][kTall]{};
  const std::byte* row[kTall];
  for (int r = 0; r < kTall; ++r) row[r] = rows.first + (r < rows.n ? r : 0) * rows.stride;
  const std::int64_t whole = length / kStep * kStep;
  for (std::int64_t k = 0; k < whole; k += kStep) {
    if (k % kLine == 0) {  // the rows of the next tile, as panels.h does
      for (int r = 0; r < kTall; ++r) {
        __builtin_prefetch(row[r] + kTall * rows.stride + k * Kind::kBytes);
      }
    }
    __m512 numbers[kTall];
    for (int r = 0; r < kTall; ++r) numbers[r] = Kind::load(row[r] + k * Kind::kBytes);
#pragma GCC unroll 6
    for (int j = 0; j < N; ++j) {
      const __m512 column = _mm512_loadu_ps(columns + j * stride + k);
      for (int r = 0; r < kTall; ++r) sums[j][r] = _mm512_fmadd_ps(numbers[r], column, sums[j][r]);
    }
  }
  if (whole < length) {
    const auto some = static_cast<__mmask16>((1 << (length - whole)) - 1);
    for (int j = 0; j < N; ++j) {
      const __m512 column = _mm512_maskz_loadu_ps(some, columns + j * stride + whole);
      for (int r = 0; r < kTall; ++r) {
        sums[j][r] =
            _mm512_fmadd_ps(Kind::load(row[r] + whole * Kind::kBytes, some), column, sums[j][r]);
      }
    }
  }
  const auto wanted = static_cast<__mmask8>((1 << rows.n) - 1);
  for (int j = 0; j < N; ++j) _mm_mask_storeu_ps(out + j * out_stride, wanted, totals(sums[j]));
}

// As float32, one row or column after the other.
void widen(const std::byte* from, std::int64_t stride, std::int64_t n, std::int64_t length,
           float* out) {
  for (std::int64_t i = 0; i < n; ++i, from += stride, out += length) {
    const std::int64_t whole = length / kStep * kStep;
    for (std::int64_t k = 0; k < whole; k += kStep)
      _mm512_storeu_ps(out + k, Half::load(from + 2 * k));
    if (whole < length) {
      const auto some = static_cast<__mmask16>((1 << (length - whole)) - 1);
      _mm512_mask_storeu_ps(out + whole, some, Half::load(from + 2 * whole, some));
    }
  }
}

template <class Kind, int... N>
constexpr auto all(std::integer_sequence<int, N...>) {
  return std::array{&multiply<N + 1, Kind>...};
}
template <class Kind>
constexpr auto kMultiply = all<Kind>(std::make_integer_sequence<int, kColumns>{});

// What the columns may take as float32, in numbers, to stay in a core's cache.
constexpr std::int64_t kCached = 1 << 16;

void multiply_some(const Product& p, std::int64_t start, std::int64_t n, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t length = p.n_blocks, n_panels = (n + kColumns - 1) / kColumns;
  const bool widens = n_panels > kWidened;
  auto* const numbers = reinterpret_cast<float*>(
      scratch(sizeof(float) * static_cast<std::size_t>((n + kTall) * length)));
  float* const columns = numbers + kTall * length;
  widen(p.states + start * p.states_stride, p.states_stride, n, length, columns);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const std::int64_t row = tile * kTall, left = p.n_rows - row;
    Rows rows{p.weights + row * p.weights_stride, p.weights_stride,
              static_cast<int>(left < kTall ? left : kTall)};
    if (widens) {
      widen(rows.first, rows.stride, rows.n, length, numbers);
      rows.first = reinterpret_cast<const std::byte*>(numbers);
      rows.stride = length * Single::kBytes;
    }
    for (std::int64_t i = 0; i < n_panels; ++i) {
      const std::int64_t first = n * i / n_panels, last = n * (i + 1) / n_panels;
      const auto width = static_cast<std::size_t>(last - first);
      const auto multiply = (widens ? kMultiply<Single> : kMultiply<Half>)[width - 1];
      float* const out = p.out + (start + first) * p.out_stride + row;
      multiply(rows, columns + first * length, length, length, out, p.out_stride);
    }
  }
}

}  // namespace

void multiply_f16(const Product& p) {
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
