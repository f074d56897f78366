// Products of rows and columns of AVX-512: sixteen at once, of which each has a register for its
// sums. These are added up together, as a sum over the lanes of one register takes as many
// instructions as all of a short row's products. As panels.h, local to the file that includes it.
#pragma once

#include <immintrin.h>

#include <array>
#include <utility>

#include "rows.h"

namespace codespec {
namespace {

constexpr int kSums = 16, kStep = 16;
constexpr int kColumns = 4;  // of a panel, at most

// How the numbers of a row are stored.
struct Half {
  static constexpr int kBytes = 2;
  static __m512 load(const std::byte* p) { return load_halves(p); }
  static __m512 load(const std::byte* p, __mmask16 some) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, p));
  }
};
struct Brain {  // the upper half of single precision
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
struct Single {
  static constexpr int kBytes = 4;
  static __m512 load(const std::byte* p) { return _mm512_loadu_ps(p); }
  static __m512 load(const std::byte* p, __mmask16 some) { return _mm512_maskz_loadu_ps(some, p); }
};

// Where the register must be whose total comes out in lane i.
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

// As many rows by N columns as there are sums for. kLength: of all rows, 0 for any.
template <int N, class Kind, int kLength>
struct Tile {
  static constexpr bool kIsLong = kLength == 0;
  // Sixteen long rows a page apart, as values are, would put each other out of the cache.
  static constexpr int kRows = N >= 3 ? 4 : N == 1 && !kIsLong ? kSums : 8;

  // Columns are float32, `n` numbers each. What is wanted of the rows is written.
  static void multiply(const std::byte* rows, std::int64_t stride, const float* columns,
                       std::int64_t n, float* out, std::int64_t out_stride, __mmask16 wanted) {
    const std::int64_t length = kIsLong ? n : kLength;
    __m512 sums[kSums];
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_setzero_ps();  // GCC calls for a loop of stores else
    const std::byte* fours[kRows / 4];
    for (int i = 0; i < kRows / 4; ++i) fours[i] = rows + 4 * i * stride;
    const auto row = [&](int r) { return fours[r / 4] + r % 4 * stride; };
    const auto add = [&](int r, std::int64_t k, auto... some) {
      const __m512 numbers = Kind::load(row(r) + k * Kind::kBytes, some...);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        const __m512 column =
            Single::load(reinterpret_cast<const std::byte*>(columns + j * length + k), some...);
        __m512& sum = sums[place_of(j * kRows + r)];
        sum = _mm512_fmadd_ps(numbers, column, sum);
      }
    };
    // Rows without gaps are weights, from memory: the tile after the next is fetched, as in
    // panels.h.
    const std::int64_t ahead = stride == length * Kind::kBytes ? 2 * kRows * stride : 0;
    // All of a line at once, lest it be gone from the cache when the other half's turn comes.
    std::int64_t k = 0;
    for (; k + 2 * kStep <= length; k += 2 * kStep) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        for (int line = 0; kIsLong && line < 2 * kStep * Kind::kBytes; line += kLine) {
          fetch(row(r) + k * Kind::kBytes + ahead + line);
        }
        add(r, k);
        add(r, k + kStep);
      }
    }
    if constexpr (kIsLong) {
      for (; k < length; k += kStep) {
        const std::int64_t left = length - k;
        const auto some = static_cast<__mmask16>(left < kStep ? (1 << left) - 1 : 0xffff);
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
using Multiply = void (*)(const std::byte* rows, std::int64_t stride, const float* columns,
                          std::int64_t length, float* out, std::int64_t out_stride,
                          __mmask16 wanted);

template <int N, class Kind, int kLength>
void multiply(const std::byte* rows, std::int64_t stride, const float* columns, std::int64_t length,
              float* out, std::int64_t out_stride, __mmask16 wanted) {
  using Tile = codespec::Tile<N, Kind, kLength>;
  for (int r = 0; r < kSums; r += Tile::kRows) {
    const auto some = static_cast<__mmask16>(wanted >> r & ((1 << Tile::kRows) - 1));
    if (some != 0) {
      Tile::multiply(rows + r * stride, stride, columns, length, out + r, out_stride, some);
    }
  }
}

// By the number of columns, less one.
using Panels = std::array<Multiply, kColumns>;
template <class Kind, int kLength>
constexpr Panels kPanels{&multiply<1, Kind, kLength>, &multiply<2, Kind, kLength>,
                         &multiply<3, Kind, kLength>, &multiply<4, Kind, kLength>};

// Heads are nearly always that long, and a tile of theirs short.
template <class Kind>
const Panels& panels(std::int64_t length) {
  return length == 64 ? kPanels<Kind, 64> : length == 128 ? kPanels<Kind, 128> : kPanels<Kind, 0>;
}

}  // namespace
}  // namespace codespec
