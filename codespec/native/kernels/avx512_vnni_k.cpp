// Products of K-quants with AVX-512 and VNNI.
#include "avx512_k.h"
#include "panels.h"
#include "rows.h"

namespace codespec {
namespace {

// Four bits of each number in 128 bytes, two more in 64, sixteen signed scales of parts of 16, and
// their scale in half precision; all numbers are 32 too large. In each half of the block the lower
// four bits of 32 bytes are the first numbers, of the next 32 the second, then come the upper ones.
struct Q6 : Parts<16, 32> {
  static constexpr int kBlockBytes = 210;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    Weights out;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m512i first[8], second[8], high[8];
      transpose32(block + 64 * half, stride, first);
      transpose32(block + 64 * half + 32, stride, second);
      transpose32(block + 128 + 32 * half, stride, high);
      const __m512i four = _mm512_set1_epi8(15), two = _mm512_set1_epi8(48);
#pragma GCC unroll 8
      for (int t = 0; t < 8; ++t) {
        const auto put = [&](int quarter, __m512i low, __m512i up) {
          out.bytes[8 * half + 2 * quarter + t / 4][t % 4] =
              _mm512_or_si512(_mm512_and_si512(low, four), _mm512_and_si512(up, two));
        };
        put(0, first[t], _mm512_slli_epi16(high[t], 4));
        put(1, second[t], _mm512_slli_epi16(high[t], 2));
        put(2, _mm512_srli_epi16(first[t], 4), high[t]);
        put(3, _mm512_srli_epi16(second[t], 4), _mm512_srli_epi16(high[t], 2));
      }
    }
    __m512i scales[4];
    transpose16(block + 192, stride, scales);
    const __m512 scale = halves_at(block + 208, stride);
#pragma GCC unroll 16
    for (int s = 0; s < kParts; ++s) {
      const __m512i up = _mm512_slli_epi32(scales[s / 4], static_cast<unsigned>(24 - 8 * (s % 4)));
      out.scales[s] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srai_epi32(up, 24)), scale);
    }
    return out;
  }
};

}  // namespace

void multiply_q4_k(const Product& p) { Panels<Q45<false>>::multiply(p); }
void multiply_q5_k(const Product& p) { Panels<Q45<true>>::multiply(p); }
void multiply_q6_k(const Product& p) { Panels<Q6>::multiply(p); }
void multiply_iq4_xs(const Product& p) { Panels<XS>::multiply(p); }

}  // namespace codespec
