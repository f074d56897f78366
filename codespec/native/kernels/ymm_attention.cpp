// Attention in registers of 256 bits, for AVX2 and AVX-VNNI.
#include "attention.h"
#include "ymm.h"

namespace codespec {
namespace {

constexpr int kLine = 32;  // half-precision numbers in a line of the cache

struct Ymm {
  using Register = __m256;
  static constexpr int kLanes = 8, kTall = 3, kRegisters = 4, kSpare = kBlock / 2;

  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Register a) { _mm256_storeu_ps(p, a); }
  static Register halves(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Register all(float a) { return _mm256_set1_ps(a); }
  static float first(Register a) { return _mm256_cvtss_f32(a); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm256_mul_ps(a, b); }
  static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  static Register max(Register a, Register b) { return _mm256_max_ps(a, b); }
  static Register nearest(Register a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // 2 to the n, whole numbers from -126 on.
  static Register power_of_two(Register n) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  static Register zero_unless_above(float limit, Register x, Register a) {
    return _mm256_and_ps(a, _mm256_cmp_ps(x, all(limit), _CMP_GT_OQ));
  }

  static float highest(Register a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
  static float total(Register a) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }

  static bool is_open(const std::byte* mask, int n) {
    const __m256i shut = _mm256_set1_epi16(kMinusInfinity);
    for (int k = 0; k < n; k += 2 * kLanes) {
      const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask + 2 * k));
      if (_mm256_movemask_epi8(_mm256_cmpeq_epi16(some, shut)) != -1) return true;
    }
    return false;
  }

  // With keys in the lanes: a sum across lanes for each score would be as much work as its
  // products.
  static void score(int n, const std::byte* keys, std::int64_t stride, int n_keys,
                    const float* queries, std::int64_t length, float* scores, float* spare) {
    auto* const turned = reinterpret_cast<std::byte*>(spare);
    for (int r = 0; r < n_keys; r += kRows) turn(keys + r * stride, stride, length, turned + 2 * r);
    const Mixture<Ymm> products{.rows = turned,
                                .row_stride = 2 * kBlock,
                                .n_rows = static_cast<int>(length),
                                .weights = queries,
                                .weight_stride = length,
                                .factors = nullptr,
                                .out = scores,
                                .out_stride = kBlock};
    products.add(n, n_keys);
  }

  // Sixteen rows to columns of as many numbers, kBlock apart.
  static void turn(const std::byte* rows, std::int64_t stride, std::int64_t length,
                   std::byte* out) {
    static_assert(kRows == 16);
    for (std::int64_t d = 0; d < length; d += 8, rows += 16) {
      const auto row = [&](int r) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * stride));
      };
      if (d % kLine == 0) {  // the next rows
        for (int r = 0; r < kRows; ++r) __builtin_prefetch(rows + (kRows + r) * stride);
      }
      __m256i some[8], pairs[8];  // of rows r and r + 8, then of two, four and eight rows
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) {
        some[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(row(r)), row(r + 8), 1);
      }
#pragma GCC unroll 4
      for (int r = 0; r < 8; r += 2) {
        pairs[r] = _mm256_unpacklo_epi16(some[r], some[r + 1]);
        pairs[r + 1] = _mm256_unpackhi_epi16(some[r], some[r + 1]);
      }
#pragma GCC unroll 2
      for (int r = 0; r < 8; r += 4) {
        some[r] = _mm256_unpacklo_epi32(pairs[r], pairs[r + 2]);
        some[r + 1] = _mm256_unpackhi_epi32(pairs[r], pairs[r + 2]);
        some[r + 2] = _mm256_unpacklo_epi32(pairs[r + 1], pairs[r + 3]);
        some[r + 3] = _mm256_unpackhi_epi32(pairs[r + 1], pairs[r + 3]);
      }
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t, out += 4 * kBlock) {
        const auto low = _mm256_unpacklo_epi64(some[t], some[4 + t]);
        const auto high = _mm256_unpackhi_epi64(some[t], some[4 + t]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * kBlock), high);
      }
    }
  }
};

}  // namespace

void attend_ymm(const Attention& a) { Attend<Ymm>::run(a); }

}  // namespace codespec
