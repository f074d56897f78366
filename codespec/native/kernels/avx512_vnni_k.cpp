// Products of K-quants with AVX-512 and VNNI.
#include "avx512_k.h"
#include "panels.h"
#include "rows.h"

namespace codespec {
namespace {

// Four bits of each number in 128 bytes, two more in 64, sixteen signed scales of parts of 16, and
// their scale in half precision; all numbers are 32 too large. In each half of the block the lower
// four bits of 32 bytes are the first numbers, of the next 32 the second, then come the upper ones.
struct Q6 : Biased<16, 32> {
  static constexpr int kFused = 4;
  static constexpr int kBlockBytes = 210;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m512i four[2][8], high[8];
      transpose32(block + 64 * half, stride, four[0]);
      transpose32(block + 64 * half + 32, stride, four[1]);
      transpose32(block + 128 + 32 * half, stride, high);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        ahead(8 * half + i, 16);
        const int quarter = i / 2, first = i % 2 * 4;
        __m512i bytes[4];
#pragma GCC unroll 4
        for (int t = 0; t < 4; ++t) {
          const __m512i low = four[quarter % 2][first + t], up = high[first + t];
          const __m512i moved = quarter == 0   ? _mm512_slli_epi16(up, 4)
                                : quarter == 1 ? _mm512_slli_epi16(up, 2)
                                : quarter == 2 ? up
                                               : _mm512_srli_epi16(up, 2);
          bytes[t] = _mm512_or_si512(
              _mm512_and_si512(quarter < 2 ? low : _mm512_srli_epi16(low, 4), _mm512_set1_epi8(15)),
              _mm512_and_si512(moved, _mm512_set1_epi8(48)));
        }
        take(8 * half + i, bytes);
      }
    }
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m512i scales[4];
    transpose16(block + 192, stride, scales);
    set_scales(scales, halves_at(block + kBlockBytes - 2, stride), out);
  }
};

// Two bits of each number in 64 bytes: 32 have four of 128, the lowest two of the first 32. To
// take(part, twos) go parts of 16, four registers, in whose bytes are others above the two bits.
[[gnu::always_inline]] inline void each_two(const std::byte* bytes, std::int64_t stride,
                                            const auto& ahead, const auto& take) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m512i both[8];
    transpose32(bytes + 32 * half, stride, both);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      ahead(8 * half + i, 16);
      __m512i twos[4];
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) {
        twos[t] = _mm512_srli_epi16(both[i % 2 * 4 + t], static_cast<unsigned>(i / 2 * 2));
      }
      take(8 * half + i, twos);
    }
  }
}

// The third bits of all numbers in 32 bytes, a bit of each for every 32; two bits of each in 64;
// the scales, 32 too large, in 12: of each the lower four bits in eight bytes, two in each, the
// upper two in four; their scale. All numbers are 4 too large.
struct Q3 : Biased<16, 4> {
  static constexpr int kFused = 4;
  static constexpr int kBlockBytes = 110;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    __m512i high[8];
    transpose32(block, stride, high);
    each_two(
        block + 32, stride, ahead, [&](int s, const __m512i* twos) __attribute__((always_inline)) {
          const int bit = s / 2;
          __m512i bytes[4];
#pragma GCC unroll 4
          for (int t = 0; t < 4; ++t) {
            const __m512i up = high[s % 2 * 4 + t];
            const __m512i third = bit < 2 ? _mm512_slli_epi16(up, static_cast<unsigned>(2 - bit))
                                          : _mm512_srli_epi16(up, static_cast<unsigned>(bit - 2));
            bytes[t] = _mm512_or_si512(_mm512_and_si512(twos[t], _mm512_set1_epi8(3)),
                                       _mm512_and_si512(third, _mm512_set1_epi8(4)));
          }
          take(s, bytes);
        });
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m512i last[4], scales[4];  // the block's last 16 bytes: two more, the 12, two of their scale
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
      scales[i] = _mm512_sub_epi8(_mm512_or_si512(_mm512_and_si512(fours, _mm512_set1_epi8(15)),
                                                  _mm512_and_si512(twos, _mm512_set1_epi8(48))),
                                  _mm512_set1_epi8(32));
    }
    set_scales(scales, halves_at(block + kBlockBytes - 2, stride), out);
  }
};

// Scales and offsets of sixteen parts, four bits of a byte each; two bits of each number in 64
// bytes; their scales in half precision.
struct Q2 : Offset<16> {
  static constexpr int kFused = 5;
  static constexpr int kBlockBytes = 84;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    each_two(block + 16, stride, ahead,
             [&](int s, const __m512i* twos) __attribute__((always_inline)) {
               __m512i bytes[4];
#pragma GCC unroll 4
               for (int t = 0; t < 4; ++t)
                 bytes[t] = _mm512_and_si512(twos[t], _mm512_set1_epi8(3));
               take(s, bytes);
             });
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m512i both[4], scales[4], offsets[4];
    transpose16(block, stride, both);
    const __m512i four = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      scales[i] = _mm512_and_si512(both[i], four);
      offsets[i] = _mm512_and_si512(_mm512_srli_epi16(both[i], 4), four);
    }
    set_scales(scales, offsets, dwords_at(block + kBlockBytes - 4, stride), out);
  }
};

}  // namespace

void multiply_q2_k(const Product& p) { Panels<InParts<Q2>>::multiply(p); }
void multiply_q3_k(const Product& p) { Panels<InParts<Q3>>::multiply(p); }
void multiply_q4_k(const Product& p) { Panels<InParts<Q45<false>>>::multiply(p); }
void multiply_q5_k(const Product& p) { Panels<InParts<Q45<true>>>::multiply(p); }
void multiply_q6_k(const Product& p) { Panels<InParts<Q6>>::multiply(p); }
void multiply_iq4_xs(const Product& p) { Panels<InParts<XS>>::multiply(p); }

}  // namespace codespec
