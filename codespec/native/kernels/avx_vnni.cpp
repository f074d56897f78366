// Eight rows at once: AVX-VNNI (Intel from Alder Lake, AMD from Zen 5).
#include "ymm_k_few.h"

namespace codespec {
namespace {

struct Dot {
  static constexpr int kColumns = 17, kGroup = 8;

  // bias takes back what moving the weights up adds.
  struct State {
    float scale;
    std::int32_t bias;
  };

  static State prepare(float scale, const std::byte* numbers) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers));
    const __m256i by_lane =
        _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(by_lane), _mm256_extracti128_si256(by_lane, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return {scale, -128 * _mm_cvtsi128_si32(sum)};
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

struct Part {
  static constexpr int kGroup = 6;
  template <int kMost>
  static constexpr int kFused = 3;

  [[gnu::always_inline]] static inline __m256i scale(__m256i dwords, int i) {
    return _mm256_srai_epi32(_mm256_slli_epi32(dwords, 24 - 8 * i), 24);
  }

  template <int N, int kDwords, int kMost>
  [[gnu::always_inline]] static inline void add(const __m256i* weights, __m256i scale,
                                                const std::byte* numbers, std::int64_t stride,
                                                __m256i* blocks) {
    __m256i sums[N]{};
#pragma GCC unroll 8
    for (int t = 0; t < kDwords; ++t) {
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        sums[j] = _mm256_dpbusd_avx_epi32(sums[j], weights[t],
                                          _mm256_set1_epi32(dword(numbers + j * stride + 4 * t)));
        asm("" : "+x"(sums[j]));  // in this order, as in ymm.h
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      blocks[j] = _mm256_add_epi32(blocks[j], _mm256_mullo_epi32(sums[j], scale));
    }
  }
};

using Q8_0 = Small<Dot, Eight>;

void multiply_q8_0(const Product& p) {
  if (p.ordered != nullptr) {
    Panels<Q8_0, true>::multiply(p);
  } else {
    Panels<Q8_0>::multiply(p);
  }
}

}  // namespace

constinit const Kernels kAvxVnni{
    "avx-vnni",
    Q8_0::kRows,
    multiply_q8_0,
    order<Q8_0>,
    Panels<Small<Dot, Fours<false>>>::multiply,
    Panels<Small<Dot, Fours<true>>>::multiply,
    Panels<Small<Dot, Fives<false>>>::multiply,
    Panels<Small<Dot, Fives<true>>>::multiply,
    Panels<Small<Dot, FoursOfTable>>::multiply,
    Panels<Small<Dot, Floats>>::multiply,
    Panels<InParts<Part, Q2<Part>>>::multiply,
    Panels<InParts<Part, Q3<Part>>>::multiply,
    Panels<InParts<Part, Q45<Part, false>>>::multiply,
    Panels<InParts<Part, Q45<Part, true>>>::multiply,
    Panels<InParts<Part, Q6<Part>>>::multiply,
    Panels<InParts<Part, XS<Part>>>::multiply,
    multiply_f16_ymm,
    multiply_bf16_ymm,
    multiply_f32_ymm,
    attend_ymm,
};

}  // namespace codespec
