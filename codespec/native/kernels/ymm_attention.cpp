// Attention in registers of 256 bits, for AVX2 and AVX-VNNI.
#include "attention.h"
#include "ymm.h"

namespace codespec {
namespace {

struct Ymm {
  using Register = __m256;
  static constexpr int kLanes = 8, kTall = 3, kRegisters = 4;

  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Register a) { _mm256_storeu_ps(p, a); }
  static Register halves(const std::byte* p) { return load_halves(p); }
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
};

}  // namespace

void attend_ymm(const Attention& a) { Attend<Ymm>::run(a); }

}  // namespace codespec
