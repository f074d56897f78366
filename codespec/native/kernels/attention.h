// Attention over half-precision keys and values, a block of keys at a time, so that neither scores
// nor weights go through memory (Dao et al. 2022, "FlashAttention"; the running maximum is that of
// Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"). As panels.h, included by
// files of one instruction set each, and local to them.
//
// The columns of a tile are the queries of some tokens in all heads that share keys, so that keys
// and values are brought from memory and made float32 once for all of them. Blocks of which no
// token of a tile may see anything are passed over. Of a column, each sum is made in the order of
// the keys' places in the cache, whatever the tile: its result does not depend on who else is
// there.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "product.h"

namespace codespec {
namespace {

constexpr int kRows = 16;                                    // keys are a multiple of it
constexpr int kBlock = 64;                                   // keys at a time
constexpr auto kMinusInfinity = static_cast<short>(0xfc00);  // in half precision

// exp(x), x at most 0: of 2^n * exp(rest) with |rest| <= ln(2) / 2, the latter by its power series,
// to 2e-7. Nothing below -87, where float32 ends.
template <class V>
[[gnu::always_inline]] inline typename V::Register exp_of(typename V::Register x) {
  const auto n = V::nearest(V::mul(x, V::all(1.44269504F)));
  // ln(2) in two parts, the first so short that its product with n is exact.
  const auto rest = V::fma(n, V::all(-1.42860677e-6F), V::fma(n, V::all(-0.693145752F), x));
  auto sum = V::all(1.0F / 720);
  for (const float factor : {1.0F / 120, 1.0F / 24, 1.0F / 6, 1.0F / 2, 1.0F, 1.0F}) {
    sum = V::fma(sum, rest, V::all(factor));
  }
  return V::zero_unless_above(-87, x, V::mul(sum, V::power_of_two(n)));
}

// Rows of half-precision numbers, each times its weight, added up for some columns of weights:
// out[column][i] = the sum over k of weights[column][k] * rows[k][i], to which out[column][i] times
// the column's factor is added where there are factors.
//
// `V` is an instruction set: Register, kLanes floats, with what can be done to them; `halves`,
// loaded as float32; and room for the sums of kRegisters of a row by kTall columns. Strides of rows
// are in bytes, others in floats.
template <class V>
class Mixture {
  using Register = typename V::Register;
  static constexpr int kLanes = V::kLanes;

 public:
  const std::byte* rows;
  std::int64_t row_stride;
  int n_rows, n_ahead;  // how many, and how many ahead of their use they are fetched
  const float* weights;
  std::int64_t weight_stride;
  const float* factors;  // or null
  float* out;
  std::int64_t out_stride;

  // length: of a row, a multiple of kLanes.
  void add(int n_columns, std::int64_t length) const {
    const int n_panels = (n_columns + V::kTall - 1) / V::kTall;
    constexpr int kStep = kLanes * V::kRegisters;
    for (std::int64_t i = 0; i < length; i += kStep) {
      const std::int64_t left = length - i;
      const int n_registers = static_cast<int>((left < kStep ? left : kStep) / kLanes);
      for (int panel = 0; panel < n_panels; ++panel) {
        const int begin = n_columns * panel / n_panels, end = n_columns * (panel + 1) / n_panels;
        kAdd[static_cast<std::size_t>(V::kRegisters * (end - begin - 1) + n_registers - 1)](
            *this, begin, i);
      }
    }
  }

 private:
  // N columns from `first` on, kWide registers of each row from number `from` on.
  template <int N, int kWide>
  static void add(const Mixture& m, int first, std::int64_t from) {
    const std::byte* row = m.rows + 2 * from;
    const float* const weights = m.weights + first * m.weight_stride;
    float* const out = m.out + first * m.out_stride + from;
    Register sums[N][kWide];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
#pragma GCC unroll 8
      for (int i = 0; i < kWide; ++i) {
        sums[j][i] = m.factors == nullptr ? V::all(0)
                                          : V::mul(V::load(out + j * m.out_stride + i * kLanes),
                                                   V::all(m.factors[first + j]));
      }
    }
    for (int k = 0; k < m.n_rows; ++k, row += m.row_stride) {
      for (int i = 0; i < 2 * kWide * kLanes; i += kLine) {
        fetch(row + m.n_ahead * m.row_stride + i);
      }
      const auto weight = [&](int j) { return V::all(weights[j * m.weight_stride + k]); };
      const auto number = [&](int i) { return V::halves(row + 2 * i * kLanes); };
      // The fewer of both stay in registers.
      if constexpr (N < kWide) {
        Register few[N];
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) few[j] = weight(j);
#pragma GCC unroll 8
        for (int i = 0; i < kWide; ++i) {
          const Register many = number(i);
#pragma GCC unroll 8
          for (int j = 0; j < N; ++j) sums[j][i] = V::fma(many, few[j], sums[j][i]);
        }
      } else {
        Register few[kWide];
#pragma GCC unroll 8
        for (int i = 0; i < kWide; ++i) few[i] = number(i);
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
          const Register many = weight(j);
#pragma GCC unroll 8
          for (int i = 0; i < kWide; ++i) sums[j][i] = V::fma(few[i], many, sums[j][i]);
        }
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
#pragma GCC unroll 8
      for (int i = 0; i < kWide; ++i) V::store(out + j * m.out_stride + i * kLanes, sums[j][i]);
    }
  }

  template <int... I>
  static constexpr auto adds(std::integer_sequence<int, I...>) {
    return std::array{&add<I / V::kRegisters + 1, I % V::kRegisters + 1>...};
  }
  static constexpr auto kAdd = adds(std::make_integer_sequence<int, V::kTall * V::kRegisters>{});
};

// Sixteen rows to columns of as many numbers, kBlock apart.
inline void turn(const std::byte* rows, std::int64_t stride, std::int64_t length, std::byte* out) {
  static_assert(kRows == 16);
  for (std::int64_t d = 0; d < length; d += 8, rows += 16) {
    const auto row = [&](int r) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * stride));
    };
    if (2 * d % kLine == 0) {  // of the next block
      for (int r = 0; r < kRows; ++r) fetch(rows + (kBlock + r) * stride);
    }
    __m256i some[8], pairs[8];  // of rows r and r + 8, then of two, four and eight rows
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      some[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(row(r)), row(r + 8), 1);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 8; r += 2) {
      pairs[r] = _mm256_unpacklo_epi16(some[r], some[r + 1]);
      pairs[r + 1] = _mm256_unpackhi_epi16(some[r], some[r + 1]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < 8; r += 4) {
      some[r] = _mm256_unpacklo_epi32(pairs[r], pairs[r + 2]);
      some[r + 1] = _mm256_unpackhi_epi32(pairs[r], pairs[r + 2]);
      some[r + 2] = _mm256_unpacklo_epi32(pairs[r + 1], pairs[r + 3]);
      some[r + 3] = _mm256_unpackhi_epi32(pairs[r + 1], pairs[r + 3]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t, out += 4 * kBlock) {
      const auto low = _mm256_unpacklo_epi64(some[t], some[4 + t]);
      const auto high = _mm256_unpackhi_epi64(some[t], some[4 + t]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), low);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * kBlock), high);
    }
  }
}

// `V` also has `is_open`: true if any of some halves is above minus infinity.
template <class V>
class Attend {
  using Register = typename V::Register;
  static constexpr int kLanes = V::kLanes, kColumns = 32;
  static_assert(kBlock % kRows == 0 && kRows % kLanes == 0);
  static constexpr float kLowest = -1e30F;  // finite: minus infinity less itself is no number

  // Work memory of a tile, one array after the other, in floats.
  struct Memory {
    float *queries, *out, *scores, *sums, *highest, *factors;
    std::byte* keys;  // half-precision numbers

    static std::size_t size(std::int64_t length) {
      return static_cast<std::size_t>(kColumns * (2 * length + kBlock + kLanes + 2) +
                                      kBlock / 2 * length);
    }
    Memory(float* first, std::int64_t length)
        : queries(first),
          out(queries + kColumns * length),
          scores(out + kColumns * length),
          sums(scores + kColumns * kBlock),
          highest(sums + kColumns * kLanes),
          factors(highest + kColumns),
          keys(reinterpret_cast<std::byte*>(factors + kColumns)) {}
  };

 public:
  static void run(const Attention& a) {
    const std::int64_t group = a.n_heads / a.n_key_heads, n_columns = group * a.n_queries;
    std::int64_t n_tiles = (n_columns + kColumns - 1) / kColumns;
    const std::int64_t wanted = (a.n_threads + a.n_key_heads - 1) / a.n_key_heads;
    if (n_tiles < wanted) n_tiles = wanted < n_columns ? wanted : n_columns;
    const Memory memory(reinterpret_cast<float*>(scratch(sizeof(float) * Memory::size(a.length))),
                        a.length);
    // In turns: later tokens see more.
    for (std::int64_t i = a.thread; i < n_tiles * a.n_key_heads; i += a.n_threads) {
      const std::int64_t head = i / n_tiles, tile = i % n_tiles;
      const std::int64_t first = n_columns * tile / n_tiles,
                         last = n_columns * (tile + 1) / n_tiles;
      Attend(a, memory, head, group, first, static_cast<int>(last - first)).run();
    }
  }

 private:
  const Attention& a_;
  const Memory& m_;
  const std::int64_t head_, group_, first_;
  const int n_;

  Attend(const Attention& a, const Memory& memory, std::int64_t head, std::int64_t group,
         std::int64_t first, int n)
      : a_(a), m_(memory), head_(head), group_(group), first_(first), n_(n) {}

  std::int64_t token(int column) const { return (first_ + column) / group_; }
  std::int64_t head(int column) const { return head_ * group_ + (first_ + column) % group_; }

  void run() const {
    begin();
    for (std::int64_t start = 0; start < a_.n_keys; start += kBlock) {
      const std::int64_t left = a_.n_keys - start;
      const int n_keys = static_cast<int>(left < kBlock ? left : kBlock);
      if (!is_open(start, n_keys)) continue;
      score(start, n_keys);
      weigh(start, n_keys);
      add_values(start, n_keys);
    }
    end();
  }

  void begin() const {
    const Register scale = V::all(a_.scale);
    for (int j = 0; j < n_; ++j) {
      const float* query = reinterpret_cast<const float*>(a_.queries + token(j) * a_.query_stride +
                                                          head(j) * a_.query_head_stride);
      for (std::int64_t d = 0; d < a_.length; d += kLanes) {
        V::store(m_.queries + j * a_.length + d, V::mul(V::load(query + d), scale));
        V::store(m_.out + j * a_.length + d, V::all(0));
      }
      V::store(m_.sums + j * kLanes, V::all(0));
      m_.highest[j] = kLowest;
    }
  }

  bool is_open(std::int64_t start, int n_keys) const {
    if (a_.mask == nullptr) return true;
    for (std::int64_t t = token(0); t <= token(n_ - 1); ++t) {
      if (V::is_open(a_.mask + t * a_.mask_stride + 2 * start, n_keys)) return true;
    }
    return false;
  }

  // With keys in the lanes: a sum across lanes for each score would be as much work as its
  // products.
  void score(std::int64_t start, int n_keys) const {
    const std::byte* const keys = a_.keys + head_ * a_.key_head_stride + start * a_.key_stride;
    for (int k = 0; k < n_keys; k += kRows) {
      turn(keys + k * a_.key_stride, a_.key_stride, a_.length, m_.keys + 2 * k);
    }
    const Mixture<V> products{.rows = m_.keys,
                              .row_stride = 2 * kBlock,
                              .n_rows = static_cast<int>(a_.length),
                              .n_ahead = 0,
                              .weights = m_.queries,
                              .weight_stride = a_.length,
                              .factors = nullptr,
                              .out = m_.scores,
                              .out_stride = kBlock};
    products.add(n_, n_keys);
  }

  // Scores to weights, of which the highest so far would be 1. Column by column, each would wait
  // for its highest score.
  void weigh(std::int64_t start, int n_keys) const {
    for (int j = 0; j < n_; ++j) {
      float* const scores = m_.scores + j * kBlock;
      const std::byte* const mask =
          a_.mask == nullptr ? nullptr : a_.mask + token(j) * a_.mask_stride + 2 * start;
      Register highest = V::all(m_.highest[j]);
      for (int k = 0; k < n_keys; k += kLanes) {
        Register some = V::load(scores + k);
        if (mask != nullptr) {
          some = V::add(some, V::halves(mask + 2 * k));
          V::store(scores + k, some);
        }
        highest = V::max(highest, some);
      }
      const float top = V::highest(highest), before = m_.highest[j];
      // Seldom higher than before after a few blocks, and to find that out takes less.
      m_.factors[j] = top == before ? 1 : V::first(exp_of<V>(V::sub(V::all(before), V::all(top))));
      m_.highest[j] = top;
    }
    for (int j = 0; j < n_; ++j) {
      float* const scores = m_.scores + j * kBlock;
      const Register now = V::all(m_.highest[j]);
      Register sum = V::mul(V::load(m_.sums + j * kLanes), V::all(m_.factors[j]));
      for (int k = 0; k < n_keys; k += kLanes) {
        const Register weights = exp_of<V>(V::sub(V::load(scores + k), now));
        V::store(scores + k, weights);
        sum = V::add(sum, weights);
      }
      V::store(m_.sums + j * kLanes, sum);
    }
  }

  void add_values(std::int64_t start, int n_keys) const {
    const std::byte* const values =
        a_.values + head_ * a_.value_head_stride + start * a_.value_stride;
    const Mixture<V> mean{.rows = values,
                          .row_stride = a_.value_stride,
                          .n_rows = n_keys,
                          .n_ahead = kBlock,
                          .weights = m_.scores,
                          .weight_stride = kBlock,
                          .factors = m_.factors,
                          .out = m_.out,
                          .out_stride = a_.length};
    mean.add(n_, a_.length);
  }

  void end() const {
    for (int j = 0; j < n_; ++j) {
      const float sum = V::total(V::load(m_.sums + j * kLanes));
      const Register share = V::all(sum > 0 ? 1 / sum : 0);
      float* const out = a_.out + token(j) * a_.out_stride + head(j) * a_.out_head_stride;
      for (std::int64_t d = 0; d < a_.length; d += kLanes) {
        V::store(out + d, V::mul(V::load(m_.out + j * a_.length + d), share));
      }
    }
  }
};

}  // namespace
}  // namespace codespec
