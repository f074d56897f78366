// Eight rows at once: AVX2 (Intel from Haswell, AMD from Zen).
#include "ymm_k_few.h"

namespace codespec {
namespace {

// Two products of 16 bits in each lane: those of bytes overflow in AVX2. A byte of the weights goes
// in the upper half of 16 bits, which takes one instruction; sums come out 256 times too large.
struct Dot {
  static constexpr int kColumns = 6, kGroup = 6;  // more go in Pairs

  struct State {
    float scale;
    std::int16_t numbers[32];  // four by four: those at even places, then those at odd ones
  };

  static State prepare(float scale, const std::byte* bytes) {
    State out;
    out.scale = scale / 256;
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0,
                                           1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    for (int i = 0; i < 32; i += 16) {
      const __m256i numbers =
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.numbers + i),
                          _mm256_shuffle_epi8(numbers, order));
    }
    return out;
  }

  struct Factor {
    __m256i even, odd;
  };

  [[gnu::always_inline]] static inline __m256i ready(__m256i weights) { return weights; }
  [[gnu::always_inline]] static inline __m256i begin(const State&) {
    return _mm256_setzero_si256();
  }
  [[gnu::always_inline]] static inline Factor factor(__m256i weights) {
    return {_mm256_slli_epi16(weights, 8), _mm256_and_si256(weights, _mm256_set1_epi16(-256))};
  }
  [[gnu::always_inline]] static inline __m256i add(__m256i sum, const Factor& weights,
                                                   const std::byte*, const State& state, int t) {
    const __m256i even = _mm256_set1_epi32(dword(state.numbers + 4 * t));
    const __m256i odd = _mm256_set1_epi32(dword(state.numbers + 4 * t + 2));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(weights.even, even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(weights.odd, odd));
  }
};

// The same for two tiles of rows at once, which share the loads of a column's numbers. With few
// columns products are not the bottleneck: sixteen rows are then more memory streams than hardware
// prefetchers follow, and more than the registers hold.
template <class Numbers>
struct Pairs : Groups<Pairs<Numbers>> {
  using Half = Small<Dot, Numbers>;
  static constexpr int kRows = 2 * Half::kRows, kColumns = 17, kGroup = 4;
  static constexpr bool kFetchesFar = Half::kFetchesFar;
  static constexpr bool kAlwaysNear = Half::kAlwaysNear;
  static constexpr int kBlockBytes = Half::kBlockBytes, kStateBytes = Half::kStateBytes;
  using State = typename Half::State;

  struct Sums {
    __m256 first, second;
  };
  struct Weights {
    typename Half::Weights first, second;
  };

  static State prepare(const std::byte* block) { return Half::prepare(block); }

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    return {Half::load(block, stride), Half::load(block + Half::kRows * stride, stride)};
  }

  // Called: inlined for each group, it is more than the processor's cache of decoded instructions
  // holds, of which another thread on the core has a half.
  template <int N>
  [[gnu::noinline]] static void multiply_group(const Weights& weights, const std::byte*,
                                               std::int64_t, const State* states, Sums* sums) {
    __m256i first[N]{}, second[N]{};
#pragma GCC unroll 8
    for (int t = 0; t < 8; ++t) {
      const auto factor1 = Dot::factor(weights.first.bytes[t]),
                 factor2 = Dot::factor(weights.second.bytes[t]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        first[j] = Dot::add(first[j], factor1, nullptr, states[j], t);
        second[j] = Dot::add(second[j], factor2, nullptr, states[j], t);
        asm("" : "+x"(first[j]), "+x"(second[j]));  // in this order, as in ymm.h
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      Half::add(weights.first, states[j], first[j], sums[j].first);
      Half::add(weights.second, states[j], second[j], sums[j].second);
    }
  }

  static void store(float* out, const Sums& sums, int skip) {
    Groups<Pairs>::store(out, sums.first, skip);
    Groups<Pairs>::store(out + Half::kRows, sums.second, skip - Half::kRows);
  }
};

template <class Numbers>
void multiply(const Product& p) {
  if (p.n_columns > Dot::kColumns) {
    Panels<Pairs<Numbers>>::multiply(p);
  } else {
    Panels<Small<Dot, Numbers>>::multiply(p);
  }
}

void multiply_q8_0(const Product& p) {
  if (p.n_columns <= Dot::kColumns && p.ordered != nullptr) {
    Panels<Small<Dot, Eight>, true>::multiply(p);
  } else {
    multiply<Eight>(p);
  }
}

// Two products of bytes fit in 16 bits where one factor has fewer than eight, and so do a few of
// their sums; else one at a time.
struct Part {
  static constexpr int kGroup = 6;
  template <int kMost>
  static constexpr int kFused = kMost < 128 ? 1 : 0;

  [[gnu::always_inline]] static inline __m256i scale(__m256i dwords, int i) {
    return pair(dwords, i, i);
  }

  template <int N, int kDwords, int kMost>
  [[gnu::always_inline]] static inline void add(const __m256i* weights, __m256i scale,
                                                const std::byte* numbers, std::int64_t stride,
                                                __m256i* blocks) {
    constexpr int kFit = 32767 / (2 * 128 * kMost), kStep = kFit < kDwords ? kFit : kDwords;
    if constexpr (kFit == 0) {
      add_one_by_one<N, kDwords>(weights, scale, numbers, stride, blocks);
    } else {
      static_assert(kDwords % kStep == 0);
#pragma GCC unroll 8
      for (int t = 0; t < kDwords; t += kStep) {
        __m256i sums[N];
#pragma GCC unroll 8
        for (int u = t; u < t + kStep; ++u) {
#pragma GCC unroll 8
          for (int j = 0; j < N; ++j) {
            const __m256i both = _mm256_maddubs_epi16(
                weights[u], _mm256_set1_epi32(dword(numbers + j * stride + 4 * u)));
            sums[j] = u == t ? both : _mm256_add_epi16(sums[j], both);
            asm("" : "+x"(sums[j]));  // in this order, as in ymm.h
          }
        }
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
          blocks[j] = _mm256_add_epi32(blocks[j], _mm256_madd_epi16(sums[j], scale));
        }
      }
    }
  }

 private:
  template <int N, int kDwords>
  [[gnu::always_inline]] static inline void add_one_by_one(const __m256i* weights, __m256i scale,
                                                           const std::byte* numbers,
                                                           std::int64_t stride, __m256i* blocks) {
    static_assert(255 * 128 <= 32767);
    const __m256i first = _mm256_set1_epi16(255);
#pragma GCC unroll 8
    for (int t = 0; t < kDwords; ++t) {
      const __m256i even = _mm256_and_si256(weights[t], first),
                    odd = _mm256_andnot_si256(first, weights[t]);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        const __m256i column = _mm256_set1_epi32(dword(numbers + j * stride + 4 * t));
        const __m256i both =
            _mm256_add_epi32(_mm256_madd_epi16(_mm256_maddubs_epi16(even, column), scale),
                             _mm256_madd_epi16(_mm256_maddubs_epi16(odd, column), scale));
        blocks[j] = _mm256_add_epi32(blocks[j], both);
        asm("" : "+x"(blocks[j]));  // in this order, as in ymm.h
      }
    }
  }
};

}  // namespace

constinit const Kernels kAvx2{
    "avx2",
    Pairs<Eight>::kRows,
    multiply_q8_0,
    order<Small<Dot, Eight>>,
    multiply<Fours<false>>,
    multiply<Fours<true>>,
    multiply<Fives<false>>,
    multiply<Fives<true>>,
    multiply<FoursOfTable>,
    multiply<Floats>,
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
