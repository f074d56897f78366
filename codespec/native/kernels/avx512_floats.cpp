// Matrices of half and single precision with AVX-512: what attention multiplies, keys with queries
// and values with weights, and what says to which experts a token is routed. Rows are as short as a
// head or as long as the context, and next to each other in memory, so they are taken as they are,
// in float32.
#include <cpuid.h>

#include "avx512_dots.h"

namespace codespec {
namespace {

#if defined(CODESPEC_AVX512_BF16)
// Not all compilers know the name.
bool has_pairs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 5)) != 0;
}
#endif

}  // namespace

void multiply_f16(const Product& p) { p.n_rows < kSums ? multiply_f16_ymm(p) : multiply<Half>(p); }
void multiply_bf16(const Product& p) {
  if (p.n_rows < kSums) return multiply_bf16_ymm(p);
#if defined(CODESPEC_AVX512_BF16)
  static const bool in_pairs = has_pairs();
  if (in_pairs) return multiply_bf16_pairs(p);
#endif
  multiply<Brain>(p);
}
void multiply_f32(const Product& p) {
  p.n_rows < kSums ? multiply_f32_ymm(p) : multiply<Single>(p);
}

}  // namespace codespec
