// Sixteen rows at once: AVX-512 with VNNI (Intel from Cascade Lake, AMD from Zen 4).
#include <immintrin.h>

#include "panels.h"

namespace codespec {
namespace {

// ggml's block of 32 numbers: a scale in half precision, then as many signed bytes.
struct Q8_0 {
  static constexpr int kRows = 16, kColumns = 16, kBlockBytes = 34, kStateBytes = 34;
  using Sums = __m512;

  // Bytes are moved up by 128, as one factor of the instruction is unsigned.
  struct Weights {
    __m512i bytes[8];
    __m512 scales;
  };

  // bias takes back what moving the weights up adds.
  struct State {
    float scale;
    std::int32_t bias;
  };

  static State prepare(const std::byte* block) {
    std::uint16_t scale;
    __builtin_memcpy(&scale, block, sizeof scale);
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2));
    const __m256i by_lane = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(by_lane), _mm256_extracti128_si256(by_lane, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return {_cvtsh_ss(scale), -128 * _mm_cvtsi128_si32(sum)};
  }

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    Weights out;
    transpose(block + 2, stride, out.bytes);
    for (__m512i& bytes : out.bytes) bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
    out.scales = halves(block, stride);
    return out;
  }

  template <int N>
  [[gnu::always_inline]] static inline void multiply(const Weights& weights,
                                                     const std::byte* column, std::int64_t stride,
                                                     const State* states, __m512* sums) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      __m512i dot = _mm512_set1_epi32(states[j].bias);
#pragma GCC unroll 8
      for (int t = 0; t < 8; ++t) {
        int dword;
        __builtin_memcpy(&dword, column + j * stride + 2 + 4 * t, sizeof dword);
        dot = _mm512_dpbusd_epi32(dot, weights.bytes[t], _mm512_set1_epi32(dword));
      }
      const __m512 scale = _mm512_mul_ps(weights.scales, _mm512_set1_ps(states[j].scale));
      sums[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, sums[j]);
    }
  }

  static void store(float* out, __m512 sums, int skip) {
    _mm512_mask_storeu_ps(out, static_cast<__mmask16>(0xffff << skip), sums);
  }

 private:
  // Sixteen rows of 32 bytes: dword t of each in the lanes of register t.
  [[gnu::always_inline]] static inline void transpose(const std::byte* rows, std::int64_t stride,
                                                      __m512i* out) {
    const auto row = [&](int r) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + r * stride));
    };
    __m512i quads[8];  // lane by lane of 128 bits: a dword of four rows
    for (int half = 0; half < 2; ++half) {
      __m512i pairs[4];
      for (int r = 0; r < 4; ++r) {
        pairs[r] =
            _mm512_inserti64x4(_mm512_castsi256_si512(row(8 * half + r)), row(8 * half + r + 4), 1);
      }
      const __m512i low01 = _mm512_unpacklo_epi32(pairs[0], pairs[1]);
      const __m512i low23 = _mm512_unpacklo_epi32(pairs[2], pairs[3]);
      const __m512i high01 = _mm512_unpackhi_epi32(pairs[0], pairs[1]);
      const __m512i high23 = _mm512_unpackhi_epi32(pairs[2], pairs[3]);
      quads[4 * half + 0] = _mm512_unpacklo_epi64(low01, low23);
      quads[4 * half + 1] = _mm512_unpackhi_epi64(low01, low23);
      quads[4 * half + 2] = _mm512_unpacklo_epi64(high01, high23);
      quads[4 * half + 3] = _mm512_unpackhi_epi64(high01, high23);
    }
    for (int t = 0; t < 4; ++t) {
      out[t] = _mm512_shuffle_i32x4(quads[t], quads[4 + t], 0x88);      // lanes 0 and 2 of both
      out[t + 4] = _mm512_shuffle_i32x4(quads[t], quads[4 + t], 0xdd);  // lanes 1 and 3
    }
  }

  // The half-precision number at the beginning of sixteen rows.
  [[gnu::always_inline]] static inline __m512 halves(const std::byte* rows, std::int64_t stride) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(stride)));
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_i32gather_epi32(places, rows, 1)));
  }
};

}  // namespace

constinit const Kernels kAvx512Vnni{"avx512-vnni", Q8_0::kRows, Panels<Q8_0>::multiply};

}  // namespace codespec
