// ggml's K-quants, blocks of 256 numbers in parts with a small scale each, in registers of 256
// bits. As ymm.h, to be included by files of one instruction set each.
//
// Weights are unsigned as they are stored, which is what one factor of the instructions must be. A
// block's sum, its parts times their scales, is exact in 32 bits.
#pragma once

#include "k_states.h"
#include "ymm.h"

namespace codespec {
namespace {

// Bytes `a` and `b` of each dword, with their signs, as two numbers of 16 bits.
[[gnu::always_inline]] inline __m256i pair(__m256i dwords, int a, int b) {
  const __m256i first =
      _mm256_setr_epi32(0, 4 << 8 | 4 << 24, 8 << 8 | 8 << 24, 12 << 8 | 12 << 24, 0,
                        4 << 8 | 4 << 24, 8 << 8 | 8 << 24, 12 << 8 | 12 << 24);
  const __m256i places = _mm256_or_si256(first, _mm256_set1_epi32(a << 8 | b << 24 | 0x00800080));
  return _mm256_srai_epi16(_mm256_shuffle_epi8(dwords, places), 8);
}

// The products of eight rows and a column, as many pairs of 16 bits of each.
template <int kPairs>
[[gnu::always_inline]] inline __m256i dot_pairs(const __m256i* weights, const void* numbers) {
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int i = 0; i < kPairs; ++i) {
    const __m256i both = _mm256_set1_epi32(dword(static_cast<const std::byte*>(numbers) + 4 * i));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(weights[i], both));
  }
  return sum;
}

// `Part`, of an instruction set, has: `scale`, byte i of each row as sums are multiplied with it;
// `add<N, kDwords, kMost>`, which adds a part's share to the sums of N columns, no weight above
// kMost; kGroup, for the sums of how many columns there are registers; kFused<kMost>, up to how
// many are multiplied sooner while a block is brought into order.
//
// Formats of blocks in kParts parts give: kMost; Scales, `load_scales`, and `each`, which gives a
// block's bytes to take(dword, bytes), four registers from that dword on; State, what is known of a
// column's block before, and `prepare`; `end`, which adds blocks' sums to those of N columns.

// Products with such blocks.
template <class Part, class Format>
struct InParts : Format, Groups<InParts<Part, Format>> {
  using Format::kParts, Format::kMost;
  using typename Format::Scales, typename Format::State;
  static constexpr int kRows = 8, kColumns = 17, kDwords = 64 / kParts, kGroup = Part::kGroup;
  static constexpr int kStateBytes = kStateBytesK;
  static constexpr int kFused = Part::template kFused<kMost>;
  static constexpr bool kFetchesFar = true;
  static constexpr bool kAlwaysNear = false;
  using Sums = __m256;

  struct Weights : Scales {
    __m256i bytes[kParts][kDwords];
  };

  [[gnu::noinline]] static Weights load(const std::byte* block, std::int64_t stride,
                                        const auto& ahead) {
    Weights out;
    Format::load_scales(block, stride, out);
    Format::each(block, stride, ahead,
                 [&](int dword, const __m256i* bytes) __attribute__((always_inline)) {
#pragma GCC unroll 4
                   for (int t = 0; t < 4; ++t)
                     out.bytes[dword / kDwords][dword % kDwords + t] = bytes[t];
                 });
    return out;
  }

  template <int N>
  [[gnu::noinline]] static void multiply_group(const Weights& weights, const std::byte* column,
                                               std::int64_t stride, const State* states,
                                               __m256* sums) {
    __m256i blocks[N]{};
#pragma GCC unroll 1
    for (int s = 0; s < kParts; ++s) {
      Part::template add<N, kDwords, kMost>(weights.bytes[s], weights.scales[s],
                                            column + kStateNumbers + 4 * kDwords * s, stride,
                                            blocks);
    }
    Format::template end<N>(weights, states, blocks, sums);
  }

  // load and multiply at once, to the bit.
  template <int N>
  [[gnu::noinline]] static void multiply_fused(const std::byte* rows, std::int64_t rows_stride,
                                               const auto& ahead, const std::byte* column,
                                               std::int64_t stride, const State* states,
                                               __m256* sums) {
    Scales scales;
    Format::load_scales(rows, rows_stride, scales);
    __m256i blocks[N]{};
    Format::each(rows, rows_stride, ahead,
                 [&](int dword, const __m256i* bytes) __attribute__((always_inline)) {
                   Part::template add<N, 4, kMost>(bytes, scales.scales[dword / kDwords],
                                                   column + kStateNumbers + 4 * dword, stride,
                                                   blocks);
                 });
    Format::template end<N>(scales, states, blocks, sums);
  }
};

// Parts with a scale and an offset each, and the scales of both in half precision.
template <class Part, int kParts_, int kMost_>
struct Offset : PartSums<kParts_> {
  using typename PartSums<kParts_>::State;
  static constexpr int kParts = kParts_, kMost = kMost_;

  struct Scales {
    __m256i scales[kParts];
    __m256i offsets[kParts / 2];  // of two parts in 16 bits each
    __m256 scale, offset;         // their scales, that of the offsets negative
  };

  template <int N>
  [[gnu::always_inline]] static inline void end(const Scales& scales, const State* states,
                                                const __m256i* blocks, __m256* sums) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      const __m256i offsets = dot_pairs<kParts / 2>(scales.offsets, states[j].sums);
      const __m256 block =
          _mm256_fmadd_ps(_mm256_cvtepi32_ps(offsets), scales.offset,
                          _mm256_mul_ps(_mm256_cvtepi32_ps(blocks[j]), scales.scale));
      sums[j] = _mm256_fmadd_ps(block, _mm256_set1_ps(states[j].scale), sums[j]);
    }
  }

 protected:
  // scales, offsets: a byte each; those of both at `halves_at`, next to each other.
  [[gnu::always_inline]] static inline void set_scales(const __m256i* scales,
                                                       const __m256i* offsets,
                                                       const std::byte* halves_at,
                                                       std::int64_t stride, Scales& out) {
#pragma GCC unroll 16
    for (int s = 0; s < kParts; ++s) out.scales[s] = Part::scale(scales[s / 4], s % 4);
#pragma GCC unroll 8
    for (int i = 0; i < kParts / 2; ++i) {
      out.offsets[i] = pair(offsets[i / 2], i % 2 * 2, i % 2 * 2 + 1);
    }
    out.scale = halves(halves_at, stride);
    out.offset = _mm256_sub_ps(_mm256_setzero_ps(), halves<true>(halves_at, stride));
  }
};

// Two scales in half precision, for scales and offsets of eight parts of 32; those, of 6 bits, in
// 12 bytes; with kHigh the fifth bits of all numbers in 32 bytes, a bit of each for every part;
// then four bits of each, two parts in 32 bytes.
template <class Part, bool kHigh>
struct Q45 : Offset<Part, 8, kHigh ? 31 : 15> {
  using Base = Offset<Part, 8, kHigh ? 31 : 15>;
  using typename Base::Scales;
  static constexpr int kBlockBytes = kHigh ? 176 : 144;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    [[maybe_unused]] __m256i high[8];
    if constexpr (kHigh) transpose32(block + 16, stride, high);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {  // 16 bytes: half of two parts
      ahead(i, 8);
      __m256i both[4], bytes[4];
      transpose16(block + (kHigh ? 48 : 16) + 16 * i, stride, both);
#pragma GCC unroll 2
      for (int up = 0; up < 2; ++up) {
        const int s = i / 2 * 2 + up;
#pragma GCC unroll 4
        for (int t = 0; t < 4; ++t) {
          const __m256i four = up == 0 ? both[t] : _mm256_srli_epi16(both[t], 4);
          bytes[t] = _mm256_and_si256(four, _mm256_set1_epi8(15));
          if constexpr (kHigh) {  // bit s, moved to the fifth
            const __m256i bits = high[i % 2 * 4 + t];
            const __m256i fifth =
                s < 4 ? _mm256_slli_epi16(bits, 4 - s) : _mm256_srli_epi16(bits, s - 4);
            bytes[t] = _mm256_or_si256(bytes[t], _mm256_and_si256(fifth, _mm256_set1_epi8(16)));
          }
        }
        take(8 * s + i % 2 * 4, bytes);
      }
    }
  }

  // Of the 12 bytes, the first four have in their lower six bits the scales of parts 0 to 3, the
  // next four the offsets; the last four the lower four bits of both for parts 4 to 7, whose upper
  // two are those left over in the first eight.
  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m256i head[4];
    transpose16(block, stride, head);
    const __m256i six = _mm256_set1_epi8(63), four = _mm256_set1_epi8(15),
                  two = _mm256_set1_epi8(48);
    const auto upper = [&](__m256i low, __m256i rest) {
      return _mm256_or_si256(_mm256_and_si256(low, four),
                             _mm256_and_si256(_mm256_srli_epi16(rest, 2), two));
    };
    const __m256i scales[2] = {_mm256_and_si256(head[1], six), upper(head[3], head[1])};
    const __m256i offsets[2] = {_mm256_and_si256(head[2], six),
                                upper(_mm256_srli_epi16(head[3], 4), head[2])};
    Base::set_scales(scales, offsets, block, stride, out);
  }
};

// Signed scales of kParts parts, and their scale in half precision; all numbers are 2^kPower too
// large.
template <class Part, int kParts_, int kPower>
struct Biased : PartSums<kParts_> {
  using typename PartSums<kParts_>::State;
  static constexpr int kParts = kParts_, kMost = (2 << kPower) - 1;

  struct Scales {
    __m256i scales[kParts];
    __m256i both[kParts / 2];  // scales of two parts in 16 bits each
    __m256 scale;
  };

  template <int N>
  [[gnu::always_inline]] static inline void end(const Scales& scales, const State* states,
                                                const __m256i* blocks, __m256* sums) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      const __m256i much = dot_pairs<kParts / 2>(scales.both, states[j].sums);
      const __m256i block = _mm256_sub_epi32(blocks[j], _mm256_slli_epi32(much, kPower));
      const __m256 scale = _mm256_mul_ps(scales.scale, _mm256_set1_ps(states[j].scale));
      sums[j] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(block), scale, sums[j]);
    }
  }

 protected:
  // scales: a byte each.
  [[gnu::always_inline]] static inline void set_scales(const __m256i* scales, __m256 scale,
                                                       Scales& out) {
#pragma GCC unroll 16
    for (int s = 0; s < kParts; ++s) out.scales[s] = Part::scale(scales[s / 4], s % 4);
#pragma GCC unroll 8
    for (int i = 0; i < kParts / 2; ++i) {
      out.both[i] = pair(scales[i / 2], i % 2 * 2, i % 2 * 2 + 1);
    }
    out.scale = scale;
  }
};

// Four bits of each number in 128 bytes, two more in 64, sixteen scales, and theirs, at the end. In
// each half of the block the lower four bits of 32 bytes are the first numbers, of the next 32 the
// second, then come the upper ones.
template <class Part>
struct Q6 : Biased<Part, 16, 5> {
  using Base = Biased<Part, 16, 5>;
  using typename Base::Scales;
  static constexpr int kBlockBytes = 210;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // 16 bytes of each kind: a part of each of four quarters
      ahead(i, 4);
      const int half = i / 2, place = 16 * (i % 2);
      __m256i four[2][4], high[4], bytes[4];
      transpose16(block + 64 * half + place, stride, four[0]);
      transpose16(block + 64 * half + 32 + place, stride, four[1]);
      transpose16(block + 128 + 32 * half + place, stride, high);
#pragma GCC unroll 4
      for (int quarter = 0; quarter < 4; ++quarter) {
#pragma GCC unroll 4
        for (int t = 0; t < 4; ++t) {
          const __m256i low = four[quarter % 2][t];
          const __m256i moved = quarter == 0   ? _mm256_slli_epi16(high[t], 4)
                                : quarter == 1 ? _mm256_slli_epi16(high[t], 2)
                                : quarter == 2 ? high[t]
                                               : _mm256_srli_epi16(high[t], 2);
          bytes[t] = _mm256_or_si256(
              _mm256_and_si256(quarter < 2 ? low : _mm256_srli_epi16(low, 4), _mm256_set1_epi8(15)),
              _mm256_and_si256(moved, _mm256_set1_epi8(48)));
        }
        take(4 * (8 * half + 2 * quarter + i % 2), bytes);
      }
    }
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m256i scales[4];
    transpose16(block + 192, stride, scales);
    // Four bytes of each row are read: the block's last ones, for nothing may lie behind it.
    Base::set_scales(scales, halves<true>(block + kBlockBytes - 4, stride), out);
  }
};

// A scale in half precision; of the scales of eight parts, 32 too large, the upper two bits in two
// bytes and the lower four in four; then places in the table of iq4_nl, whose numbers are moved up
// by 128.
template <class Part>
struct XS : Biased<Part, 8, 7> {
  using Base = Biased<Part, 8, 7>;
  using typename Base::Scales;
  static constexpr int kBlockBytes = 136;

  [[gnu::always_inline]] static inline void each(const std::byte* block, std::int64_t stride,
                                                 const auto& ahead, const auto& take) {
    const __m256i table = _mm256_xor_si256(
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kTable))),
        _mm256_set1_epi8(-128));
#pragma GCC unroll 8
    for (int s = 0; s < 8; ++s) {
      ahead(s, 8);
      __m256i bytes[8];
      load_fours(block + 8 + 16 * s, stride, bytes);
      for (__m256i& some : bytes) some = _mm256_shuffle_epi8(table, some);
      take(8 * s, bytes);
      take(8 * s + 4, bytes + 4);
    }
  }

  [[gnu::always_inline]] static inline void load_scales(const std::byte* block, std::int64_t stride,
                                                        Scales& out) {
    __m256i head[4];
    transpose16(block, stride, head);
    const __m256i up = _mm256_srli_epi32(head[0], 16);
    const __m256i even = of_parts(head[1], up),
                  odd = of_parts(_mm256_srli_epi32(head[1], 4), _mm256_srli_epi32(up, 2));
    const __m256 low = _mm256_castsi256_ps(_mm256_unpacklo_epi8(even, odd)),
                 high = _mm256_castsi256_ps(_mm256_unpackhi_epi8(even, odd));
    const __m256i scales[2] = {_mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88)),
                               _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd))};
    Base::set_scales(scales, halves(block, stride), out);
  }

 private:
  // The lower four bits of each byte are of one part in two, and so are the lower two of four bits.
  [[gnu::always_inline]] static inline __m256i of_parts(__m256i low, __m256i up) {
    __m256i out = _mm256_and_si256(low, _mm256_set1_epi8(15));
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      out = _mm256_or_si256(out, _mm256_and_si256(_mm256_slli_epi32(up, 4 * i + 4),
                                                  _mm256_set1_epi32(0x30 << 8 * i)));
    }
    return _mm256_sub_epi8(out, _mm256_set1_epi8(32));
  }
};

}  // namespace
}  // namespace codespec
