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

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
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
        ahead(8 * half + t, 16);
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
    set_scales(scales, halves_at(block + 208, stride), out);
    return out;
  }
};

// Two bits of each of 128 numbers in 32 bytes, the lowest of the first 32 numbers. By parts of 16:
// take(part, t, bits) gets dword t of each in the lowest two bits of its bytes; above are others.
[[gnu::always_inline]] inline void each_two(const std::byte* bytes, std::int64_t stride,
                                            const auto& take) {
  __m512i twos[8];
  transpose32(bytes, stride, twos);
#pragma GCC unroll 8
  for (int t = 0; t < 8; ++t) {
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; ++quarter) {
      take(2 * quarter + t / 4, t % 4,
           _mm512_srli_epi16(twos[t], static_cast<unsigned>(2 * quarter)));
    }
  }
}

// The third bits of all numbers in 32 bytes, a bit of each for every 32; two bits of each in 64;
// the scales, 32 too large, in 12: of each the lower four bits in eight bytes, two in each, the
// upper two in four; their scale. All numbers are 4 too large.
struct Q3 : Parts<16, 4> {
  static constexpr int kBlockBytes = 110;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
    Weights out;
    const __m512i two = _mm512_set1_epi8(3), third = _mm512_set1_epi8(4);
    __m512i high[8];
    transpose32(block, stride, high);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      each_two(block + 32 + 32 * half, stride,
               [&](int part, int t, __m512i low) __attribute__((always_inline)) {
                 if (part < 2) ahead(8 * half + 4 * part + t, 16);
                 const int bit = 4 * half + part / 2;
                 const __m512i bits = high[part % 2 * 4 + t];
                 const __m512i up = bit < 2
                                        ? _mm512_slli_epi16(bits, static_cast<unsigned>(2 - bit))
                                        : _mm512_srli_epi16(bits, static_cast<unsigned>(bit - 2));
                 out.bytes[8 * half + part][t] =
                     _mm512_or_si512(_mm512_and_si512(low, two), _mm512_and_si512(up, third));
               });
    }
    __m512i scales[4];
    load_scales(block, stride, scales);
    set_scales(scales, halves_at(block + kBlockBytes - 2, stride), out);
    return out;
  }

 private:
  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        __m512i* out) {
    __m512i last[4];  // the block's last 16 bytes: two more, the 12, two of their scale
    transpose16(block + kBlockBytes - 16, stride, last);
    const auto dword = [&](int i) {
      return _mm512_or_si512(_mm512_srli_epi32(last[i], 16), _mm512_slli_epi32(last[i + 1], 16));
    };
    const __m512i low[2] = {dword(0), dword(1)}, up = dword(2);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i fours = i < 2 ? low[i] : _mm512_srli_epi16(low[i - 2], 4);
      const __m512i twos = i < 2 ? _mm512_slli_epi16(up, static_cast<unsigned>(4 - 2 * i))
                                 : _mm512_srli_epi16(up, static_cast<unsigned>(2 * i - 4));
      out[i] = _mm512_sub_epi8(_mm512_or_si512(_mm512_and_si512(fours, _mm512_set1_epi8(15)),
                                               _mm512_and_si512(twos, _mm512_set1_epi8(48))),
                               _mm512_set1_epi8(32));
    }
  }
};

// Scales and offsets of sixteen parts, four bits of a byte each; two bits of each number in 64
// bytes; their scales in half precision.
struct Q2 : Offset<16> {
  static constexpr int kBlockBytes = 84;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
    Weights out;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      each_two(block + 16 + 32 * half, stride,
               [&](int part, int t, __m512i low) __attribute__((always_inline)) {
                 if (part < 2) ahead(8 * half + 4 * part + t, 16);
                 out.bytes[8 * half + part][t] = _mm512_and_si512(low, _mm512_set1_epi8(3));
               });
    }
    __m512i both[4], scales[4], offsets[4];
    transpose16(block, stride, both);
    const __m512i four = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      scales[i] = _mm512_and_si512(both[i], four);
      offsets[i] = _mm512_and_si512(_mm512_srli_epi16(both[i], 4), four);
    }
    set_scales(scales, offsets, dwords_at(block + kBlockBytes - 4, stride), out);
    return out;
  }
};

}  // namespace

void multiply_q2_k(const Product& p) { Panels<Q2>::multiply(p); }
void multiply_q3_k(const Product& p) { Panels<Q3>::multiply(p); }
void multiply_q4_k(const Product& p) { Panels<Q45<false>>::multiply(p); }
void multiply_q5_k(const Product& p) { Panels<Q45<true>>::multiply(p); }
void multiply_q6_k(const Product& p) { Panels<Q6>::multiply(p); }
void multiply_iq4_xs(const Product& p) { Panels<XS>::multiply(p); }

}  // namespace codespec
