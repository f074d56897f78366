// Products of rows and columns of AVX-512: sixteen at once, of which each has a register for its
// sums. These are added up together, as a sum over the lanes of one register takes as many
// instructions as all of a short row's products. As panels.h, local to the file that includes it.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#include "rows.h"

namespace codespec {
namespace {

constexpr int kSums = 16;
constexpr int kColumns = 4;  // of a panel, at most

// How the numbers of a row are stored, and how a register of them is multiplied: one by one, by
// columns that are float32.
struct OneByOne {
  using Column = float;
  using Mask = __mmask16;
  static constexpr int kStep = 16;   // numbers
  static constexpr int kAhead = 2;   // tiles that are fetched ahead, of weights from memory
  static constexpr int kPanels = 1;  // that columns come in, at least
  static __m512 column(const float* p) { return _mm512_loadu_ps(p); }
  static __m512 column(const float* p, Mask some) { return _mm512_maskz_loadu_ps(some, p); }
  static __m512 add(__m512 sum, __m512 numbers, __m512 column) {
    return _mm512_fmadd_ps(numbers, column, sum);
  }
};
struct Half : OneByOne {
  static constexpr int kBytes = 2;
  static __m512 load(const std::byte* p) { return load_halves(p); }
  static __m512 load(const std::byte* p, __mmask16 some) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, p));
  }
};
struct Brain : OneByOne {  // the upper half of single precision
  static constexpr int kBytes = 2;
  static __m512 load(const std::byte* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512 load(const std::byte* p, __mmask16 some) {
    return widen(_mm256_maskz_loadu_epi16(some, p));
  }

 private:
  static __m512 widen(__m256i numbers) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
  }
};
struct Single : OneByOne {
  static constexpr int kBytes = 4;
  static __m512 load(const std::byte* p) { return _mm512_loadu_ps(p); }
  static __m512 load(const std::byte* p, __mmask16 some) { return _mm512_maskz_loadu_ps(some, p); }
};

// Place of the register whose total ends up in lane i.
constexpr int place_of(int i) {
  constexpr int kLane[] = {0, 8, 4, 12}, kWithin[] = {0, 2, 1, 3};
  return kLane[i / 4] + kWithin[i % 4];
}

// The totals of sixteen registers. Halves are added, then their halves, as far as single lanes;
// the two of a pair go into one register.
[[gnu::always_inline]] inline __m512 totals(const __m512* sums) {
  __m512 eight[8], four[4], two[2];
  for (int i = 0; i < 8; ++i) {
    const __m512d a = _mm512_castps_pd(sums[i]), b = _mm512_castps_pd(sums[i + 8]);
    eight[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_insertf64x4(a, _mm512_castpd512_pd256(b), 1)),
                             _mm512_castpd_ps(_mm512_shuffle_f64x2(a, b, 0xee)));
  }
  for (int i = 0; i < 4; ++i) {
    four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(eight[i], eight[i + 4], 0x88),
                            _mm512_shuffle_f32x4(eight[i], eight[i + 4], 0xdd));
  }
  for (int i = 0; i < 2; ++i) {
    const __m512d a = _mm512_castps_pd(four[i]), b = _mm512_castps_pd(four[i + 2]);
    two[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                           _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  return _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88),
                       _mm512_shuffle_ps(two[0], two[1], 0xdd));
}

// Products of kRows rows by N columns at a time. kLength: numbers of a row, 0 for any.
template <int N, class Kind, int kLength>
struct Tile {
  static constexpr bool kIsLong = kLength == 0;
  // Sixteen long rows a page apart, as values are, would put each other out of the cache.
  static constexpr int kRows = N >= 3 ? 4 : N == 1 && !kIsLong ? kSums : 8;

  static constexpr int kStep = Kind::kStep, kWhole = 32;  // two bytes each make a line
  using Column = typename Kind::Column;

  // Columns have `n` numbers each. Only the wanted rows are written.
  static void multiply(const std::byte* rows, std::int64_t stride, const Column* columns,
                       std::int64_t n, float* out, std::int64_t out_stride, __mmask16 wanted) {
    const std::int64_t length = kIsLong ? n : kLength;
    __m512 sums[kSums];
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_setzero_ps();  // GCC calls for a loop of stores else
    const std::byte* fours[kRows / 4];
    for (int i = 0; i < kRows / 4; ++i) fours[i] = rows + 4 * i * stride;
    const auto row = [&](int r) { return fours[r / 4] + r % 4 * stride; };
    const auto add = [&](int r, std::int64_t k, auto... some) {
      const auto numbers = Kind::load(row(r) + k * Kind::kBytes, some...);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        __m512& sum = sums[place_of(j * kRows + r)];
        sum = Kind::add(sum, numbers, Kind::column(columns + j * length + k, some...));
      }
    };
    // Rows without gaps are weights, from memory, and fetched ahead as in panels.h.
    const bool is_weights = stride == length * Kind::kBytes;
    const std::byte* const next = rows + (is_weights ? Kind::kAhead * kRows * stride : 0);
    const std::int64_t pace = is_weights ? kRows : 0;
    // All of a line at once, lest it be gone from the cache when the other half's turn comes. What
    // is fetched comes as it lies in memory, whatever rows are at their turn.
    std::int64_t k = 0;
    for (; k + kWhole <= length; k += kWhole) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        for (int line = 0; kIsLong && line < kWhole * Kind::kBytes; line += kLine) {
          fetch(next + (k * pace + kWhole * r) * Kind::kBytes + line);
        }
        for (int i = 0; i < kWhole; i += kStep) add(r, k + i);
      }
    }
    if constexpr (kIsLong) {
      for (; k < length; k += kStep) {
        const std::int64_t left = length - k;
        const auto some =
            static_cast<typename Kind::Mask>(left < kStep ? (std::int64_t{1} << left) - 1 : -1);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) add(r, k, some);
      }
    }
    store(totals(sums), out, out_stride, wanted, std::make_integer_sequence<int, N>{});
  }

 private:
  template <int... J>
  static void store(__m512 all, float* out, std::int64_t out_stride, __mmask16 wanted,
                    std::integer_sequence<int, J...>) {
    if constexpr (kRows == kSums) {
      _mm512_mask_storeu_ps(out, wanted, all);
    } else if constexpr (kRows == 8) {
      const auto half = [&](auto which) {
        return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), which));
      };
      const auto some = static_cast<__mmask8>(wanted);
      (_mm256_mask_storeu_ps(out + J * out_stride, some, half(std::integral_constant<int, J>{})),
       ...);
    } else {
      const auto some = static_cast<__mmask8>(wanted);
      (_mm_mask_storeu_ps(out + J * out_stride, some, _mm512_extractf32x4_ps(all, J)), ...);
    }
  }
};

// kSums rows by up to kColumns columns.
template <class Kind>
using Multiply = void (*)(const std::byte* rows, std::int64_t stride,
                          const typename Kind::Column* columns, std::int64_t length, float* out,
                          std::int64_t out_stride, __mmask16 wanted);

template <int N, class Kind, int kLength>
void multiply(const std::byte* rows, std::int64_t stride, const typename Kind::Column* columns,
              std::int64_t length, float* out, std::int64_t out_stride, __mmask16 wanted) {
  using Tile = codespec::Tile<N, Kind, kLength>;
  for (int r = 0; r < kSums; r += Tile::kRows) {
    const auto some = static_cast<__mmask16>(wanted >> r & ((1 << Tile::kRows) - 1));
    if (some != 0) {
      Tile::multiply(rows + r * stride, stride, columns, length, out + r, out_stride, some);
    }
  }
}

// By the number of columns, less one.
template <class Kind>
using Panels = std::array<Multiply<Kind>, kColumns>;
template <class Kind, int kLength>
constexpr Panels<Kind> kPanels{&multiply<1, Kind, kLength>, &multiply<2, Kind, kLength>,
                               &multiply<3, Kind, kLength>, &multiply<4, Kind, kLength>};

// Heads are nearly always that long, and a tile of theirs short.
template <class Kind>
const Panels<Kind>& panels(std::int64_t length) {
  return length == 64 ? kPanels<Kind, 64> : length == 128 ? kPanels<Kind, 128> : kPanels<Kind, 0>;
}

constexpr int kShare = 8;  // rows that a thread takes at least

// Columns as they are multiplied, one after the other.
template <class Kind>
void bring_together(const std::byte* from, std::int64_t stride, std::int64_t n, std::int64_t length,
                    float* out) {
  constexpr int kStep = Kind::kStep;
  for (std::int64_t i = 0; i < n; ++i, from += stride, out += length) {
    const std::int64_t whole = length / kStep * kStep;
    for (std::int64_t k = 0; k < whole; k += kStep)
      _mm512_storeu_ps(out + k, Kind::load(from + k * Kind::kBytes));
    if (whole < length) {
      const auto some = static_cast<__mmask16>((1 << (length - whole)) - 1);
      _mm512_mask_storeu_ps(out + whole, some, Kind::load(from + whole * Kind::kBytes, some));
    }
  }
}
template <class Kind>
void bring_together(const std::byte* from, std::int64_t stride, std::int64_t n, std::int64_t length,
                    std::uint16_t* out) {
  for (std::int64_t i = 0; i < n; ++i, from += stride, out += length)
    std::memcpy(out, from, sizeof *out * static_cast<std::size_t>(length));
}

// Most numbers of columns that stay in a core's cache.
constexpr std::int64_t kCached = 1 << 16;

// Rows from `begin` to `end` by n columns.
template <class Kind>
void multiply_some(const Product& p, std::int64_t start, std::int64_t n, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t length = p.n_blocks, fewest = n < Kind::kPanels ? n : Kind::kPanels;
  const std::int64_t full = (n + kColumns - 1) / kColumns, n_panels = full < fewest ? fewest : full;
  const Panels<Kind>& panel = panels<Kind>(length);
  using Column = typename Kind::Column;
  auto* const columns =
      reinterpret_cast<Column*>(scratch(sizeof(Column) * static_cast<std::size_t>(n * length)));
  bring_together<Kind>(p.states + start * p.states_stride, p.states_stride, n, length, columns);
  for (std::int64_t row = begin; row < end; row += kSums) {
    // The last ones end with the matrix, and so may begin before `row`.
    const std::int64_t first = row + kSums <= p.n_rows ? row : p.n_rows - kSums;
    const std::int64_t stop = end - first < kSums ? end - first : kSums;
    const auto wanted = static_cast<__mmask16>((1 << stop) - (1 << (row - first)));
    for (std::int64_t i = 0; i < n_panels; ++i) {
      const std::int64_t left = n * i / n_panels, right = n * (i + 1) / n_panels;
      panel[static_cast<std::size_t>(right - left - 1)](
          p.weights + first * p.weights_stride, p.weights_stride, columns + left * length, length,
          p.out + (start + left) * p.out_stride + first, p.out_stride, wanted);
    }
  }
}

// Needs at least kSums rows.
template <class Kind>
void multiply(const Product& p) {
  const std::int64_t n_shares = (p.n_rows + kShare - 1) / kShare;
  const std::int64_t begin = kShare * (n_shares * p.thread / p.n_threads),
                     stop = kShare * (n_shares * (p.thread + 1) / p.n_threads),
                     end = stop < p.n_rows ? stop : p.n_rows;
  if (begin >= end) return;
  const std::int64_t at_once = kCached / p.n_blocks > kColumns ? kCached / p.n_blocks : kColumns;
  for (std::int64_t start = 0; start < p.n_columns; start += at_once) {
    const std::int64_t left = p.n_columns - start;
    multiply_some<Kind>(p, start, left < at_once ? left : at_once, begin, end);
  }
}

}  // namespace
}  // namespace codespec
