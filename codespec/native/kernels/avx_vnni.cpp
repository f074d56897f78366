// Eight rows at once: AVX-VNNI (Intel from Alder Lake, AMD from Zen 5).
#include "ymm.h"

namespace codespec {
namespace {

struct Dot {
  static constexpr int kGroup = 8;

  // bias takes back what moving the weights up adds.
  struct State {
    float scale;
    std::int32_t bias;
  };

  static State prepare(const std::byte* block) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2));
    const __m256i by_lane =
        _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(by_lane), _mm256_extracti128_si256(by_lane, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return {half(block), -128 * _mm_cvtsi128_si32(sum)};
  }

  // Bytes are moved up by 128, as one factor of the instruction is unsigned.
  [[gnu::always_inline]] static inline __m256i ready(__m256i weights) {
    return _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
  }
  [[gnu::always_inline]] static inline __m256i begin(const State& state) {
    return _mm256_set1_epi32(state.bias);
  }
  [[gnu::always_inline]] static inline __m256i factor(__m256i weights) { return weights; }
  [[gnu::always_inline]] static inline __m256i add(__m256i sum, __m256i weights,
                                                   const std::byte* column, const State&, int t) {
    return _mm256_dpbusd_avx_epi32(sum, weights, _mm256_set1_epi32(dword(column + 4 * t)));
  }
};

}  // namespace

constinit const Kernels kAvxVnni{"avx-vnni", Q8_0<Dot>::kRows, Panels<Q8_0<Dot>>::multiply};

}  // namespace codespec
