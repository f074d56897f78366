// Attention with AVX-512.
#include "attention.h"
#include "rows.h"

namespace codespec {
namespace {

struct Avx512 {
  using Register = __m512;
  static constexpr int kLanes = 16, kTall = 7, kRegisters = 4;

  static Register load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Register a) { _mm512_storeu_ps(p, a); }
  static Register halves(const std::byte* p) { return load_halves(p); }
  static Register all(float a) { return _mm512_set1_ps(a); }
  static float first(Register a) { return _mm512_cvtss_f32(a); }
  static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm512_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm512_mul_ps(a, b); }
  static Register fma(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
  static Register max(Register a, Register b) { return _mm512_max_ps(a, b); }
  static float highest(Register a) { return _mm512_reduce_max_ps(a); }
  static float total(Register a) { return _mm512_reduce_add_ps(a); }

  static Register nearest(Register a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Register power_of_two(Register n) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
  }
  static Register zero_unless_above(float limit, Register x, Register a) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, all(limit), _CMP_GT_OQ), a);
  }

  static bool is_open(const std::byte* mask, int n) {
    for (int k = 0; k < n; k += kLanes) {
      const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask + 2 * k));
      if (_mm256_cmpneq_epi16_mask(some, _mm256_set1_epi16(kMinusInfinity)) != 0) {
        return true;
      }
    }
    return false;
  }
};

}  // namespace

void attend_avx512(const Attention& a) { Attend<Avx512>::run(a); }

}  // namespace codespec
