// Sixteen rows of a matrix in the lanes of AVX-512 registers. As panels.h, to be included by files
// of one instruction set each.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "product.h"

namespace codespec {

// ymm_floats.cpp
void multiply_f16_ymm(const Product&);
void multiply_bf16_ymm(const Product&);
void multiply_f32_ymm(const Product&);

// avx512_bf16.cpp
void multiply_bf16_pairs(const Product&);

// avx512_floats.cpp
void multiply_f16(const Product&);
void multiply_bf16(const Product&);
void multiply_f32(const Product&);

// avx512_attention.cpp
void attend_avx512(const Attention&);

// avx512_vnni.cpp
void multiply_q8_0(const Product&);
void order_q8_0(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks,
                std::byte* out);

// avx512_vnni_small.cpp
void multiply_q4_0(const Product&);
void multiply_q4_1(const Product&);
void multiply_q5_0(const Product&);
void multiply_q5_1(const Product&);
void multiply_iq4_nl(const Product&);
void multiply_mxfp4(const Product&);

// avx512_vnni_k.cpp
void multiply_q2_k(const Product&);
void multiply_q3_k(const Product&);
void multiply_q4_k(const Product&);
void multiply_q5_k(const Product&);
void multiply_q6_k(const Product&);
void multiply_iq4_xs(const Product&);

namespace {

constexpr int kLanes = 16;

inline float half(const std::byte* bytes) {
  std::uint16_t out;
  __builtin_memcpy(&out, bytes, sizeof out);
  return _cvtsh_ss(out);
}

// Half-precision numbers, one after the other.
[[gnu::always_inline]] inline __m512 load_halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// Sixteen rows by four pointers: as many of them as rows would not fit into the registers.
class SixteenRows {
 public:
  SixteenRows(const std::byte* first, std::int64_t stride)
      : fours_{first, first + 4 * stride, first + 8 * stride, first + 12 * stride},
        stride_(stride) {}
  [[gnu::always_inline]] const std::byte* operator[](int r) const {
    return fours_[r / 4] + r % 4 * stride_;
  }

 private:
  const std::byte* fours_[4];
  std::int64_t stride_;
};

// Both halves of a register. Not an insertion, which is a shuffle: those are what there are too few
// ports for here.
[[gnu::always_inline]] inline __m512i upper(__m256i low, __m256i high) {
  return _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(low), 0xf0, high);
}

// Four dwords of four rows in each lane of 128 bits: dword t of all in register t.
[[gnu::always_inline]] inline void transpose_lanes(const __m512i* in, __m512i* out) {
  const __m512i low01 = _mm512_unpacklo_epi32(in[0], in[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(in[2], in[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(in[0], in[1]);
  const __m512i high23 = _mm512_unpackhi_epi32(in[2], in[3]);
  out[0] = _mm512_unpacklo_epi64(low01, low23);
  out[1] = _mm512_unpackhi_epi64(low01, low23);
  out[2] = _mm512_unpacklo_epi64(high01, high23);
  out[3] = _mm512_unpackhi_epi64(high01, high23);
}

// Sixteen rows of 16 bytes: dword t of each in the lanes of register t, 0 to 3.
[[gnu::always_inline]] inline void transpose16(const std::byte* rows, std::int64_t stride,
                                               __m512i* out) {
  const SixteenRows at(rows, stride);
  const auto row = [&](int r) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[r])); };
  __m512i quads[4];
  for (int r = 0; r < 4; ++r) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(row(r)), row(r + 4), 1);
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(row(r + 8)), row(r + 12), 1);
    quads[r] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  transpose_lanes(quads, out);
}

// Sixteen rows of 32 bytes, registers 0 to 7.
[[gnu::always_inline]] inline void transpose32(const std::byte* rows, std::int64_t stride,
                                               __m512i* out) {
  const SixteenRows at(rows, stride);
  const auto row = [&](int r) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at[r]));
  };
  __m512i quads[8];
  for (int half = 0; half < 2; ++half) {
    __m512i pairs[4];
    for (int r = 0; r < 4; ++r) {
      pairs[r] = upper(row(8 * half + r), row(8 * half + r + 4));
    }
    transpose_lanes(pairs, quads + 4 * half);
  }
  for (int t = 0; t < 4; ++t) {
    out[t] = _mm512_shuffle_i32x4(quads[t], quads[4 + t], 0x88);      // lanes 0 and 2 of both
    out[t + 4] = _mm512_shuffle_i32x4(quads[t], quads[4 + t], 0xdd);  // lanes 1 and 3
  }
}

// The half-precision numbers at the beginning of sixteen rows, brought together outside of the
// vector registers. No gather: it is slow on processors of AMD, and on those of Intel that had to
// be guarded against its leaks.
[[gnu::always_inline]] inline __m512 halves_at(const std::byte* rows, std::int64_t stride) {
  const SixteenRows at(rows, stride);
  const auto half = [&](int r) {
    std::uint16_t value;
    __builtin_memcpy(&value, at[r], sizeof value);
    return static_cast<std::uint64_t>(value);
  };
  const auto four = [&](int r) {
    return static_cast<long long>(half(r) | half(r + 1) << 16 | half(r + 2) << 32 |
                                  half(r + 3) << 48);
  };
  return _mm512_cvtph_ps(_mm256_set_epi64x(four(12), four(8), four(4), four(0)));
}

// The dwords at the beginning of sixteen rows, likewise.
[[gnu::always_inline]] inline __m512i dwords_at(const std::byte* rows, std::int64_t stride) {
  const SixteenRows at(rows, stride);
  const auto two = [&](int r) {
    std::uint32_t low, high;
    __builtin_memcpy(&low, at[r], sizeof low);
    __builtin_memcpy(&high, at[r + 1], sizeof high);
    return static_cast<long long>(low | std::uint64_t{high} << 32);
  };
  return _mm512_set_epi64(two(14), two(12), two(10), two(8), two(6), two(4), two(2), two(0));
}

// The half-precision number in the lower half of each lane.
[[gnu::always_inline]] inline __m512 halves(__m512i dwords) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(dwords));
}

[[gnu::always_inline]] inline __m512i broadcast(const std::byte* dword) {
  int value;
  __builtin_memcpy(&value, dword, sizeof value);
  return _mm512_set1_epi32(value);
}

inline void store_rows(float* out, __m512 sums, int skip) {
  _mm512_mask_storeu_ps(out, static_cast<__mmask16>(0xffff << skip), sums);
}

}  // namespace
}  // namespace codespec
