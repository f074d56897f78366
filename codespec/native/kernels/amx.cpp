// Sixteen rows by sixteen columns in one instruction: the tiles of Intel's AMX (Xeon, from Sapphire
// Rapids), for prompts.
//
// Weights in the order of panels.h are a tile as they are. A tile's integer products are exact;
// they go through the L1 cache to code that scales and sums them as other products, so results are
// the same to the bit. With few columns most of the time is ordering the weights, which tiles do
// not save.
//
// The instructions are inline assembly: not all compilers have intrinsics for them, and GCC 12's
// lack their reads and writes of memory.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "avx512_k.h"
#include "avx512_small.h"
#include "panels.h"
#include "rows.h"

namespace codespec {
namespace {

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18: palette 1.
struct TileConfig {
  std::uint8_t palette = 1, start = 0, unused[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t n_rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles of two products, one begun after the other: sums in tiles 0 and 1, columns in 4 and 5,
// weights in 6 and 7. This thread owns all tiles while the object lives.
class Tiles {
 public:
  Tiles(int n_columns, int column_bytes) {
    TileConfig config;
    const auto set = [&](int tile, int n_rows, int row_bytes) {
      config.n_rows[tile] = static_cast<std::uint8_t>(n_rows);
      config.row_bytes[tile] = static_cast<std::uint16_t>(row_bytes);
    };
    for (int i = 0; i < 2; ++i) {
      set(i, n_columns, kLine);
      set(4 + i, n_columns, column_bytes);
      set(6 + i, column_bytes / 4, kLine);
    }
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  // Columns are signed. The result of the other product is stored to `other` meanwhile.
  template <int kWhich, bool kIsSigned>
  [[gnu::always_inline]] static inline void multiply(const std::byte* columns,
                                                     std::int64_t column_bytes,
                                                     const std::byte* weights, void* other) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(columns), "r"(column_bytes), "i"(4 + kWhich)
                 : "memory");
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(weights), "r"(kStride), "i"(6 + kWhich)
                 : "memory");
    asm volatile("tilezero %%tmm%c0" ::"i"(kWhich));
    if constexpr (kIsSigned) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kWhich), "i"(4 + kWhich),
                   "i"(6 + kWhich));
    } else {
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kWhich), "i"(4 + kWhich),
                   "i"(6 + kWhich));
    }
    store<1 - kWhich>(other);
  }

  template <int kWhich>
  [[gnu::always_inline]] static inline void store(void* out) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(out), "r"(kStride), "i"(kWhich) : "memory");
  }

 private:
  static constexpr std::int64_t kStride = kLine;
};

// Format gives, besides what is in panels.h: kFew, which multiplies few columns; kParts of a block,
// of kPartBytes each in a column, the first at kNumbersAt; kIsSigned, whether weights are; `add`,
// which makes sums of the parts' exact products.
template <class Format, bool kIsOrdered = false>
class TilePanels : Panels<Format, kIsOrdered> {
  using Base = Panels<Format, kIsOrdered>;
  using Weights = typename Format::Weights;
  using State = typename Format::State;
  static constexpr int kColumns = 16, kFrom = 24;  // columns at once, and where it begins to pay
  static constexpr int kAhead = 3, kUnderWay = 4;  // products that are begun before they are used
  static constexpr std::int64_t kParts = Format::kParts, kPartBytes = Format::kPartBytes;
  static constexpr std::int64_t kPanelBytes = kColumns * kPartBytes;
  static_assert(kColumns == kLanes);  // so a part of the weights takes as many bytes

 public:
  static void multiply(const Product& p) {
    if (p.n_columns < kFrom) {
      Format::kFew(p);
      return;
    }
    const auto [first, last] = Base::share(p);
    if (first == last) return;
    const Tiles tiles(kColumns, kPartBytes);
    Base::for_parts(p, [&](std::int64_t start, std::int64_t n) { wide(p, first, last, start, n); });
  }

 private:
  static void wide(const Product& p, std::int64_t first, std::int64_t last, std::int64_t start,
                   std::int64_t n) {
    const std::int64_t n_panels = (n + kColumns - 1) / kColumns;
    const std::int64_t weights_bytes = p.n_blocks * std::int64_t{sizeof(Weights)};
    const std::int64_t numbers_bytes = p.n_blocks * kParts * kPanelBytes;  // of a panel
    const std::int64_t n_states = p.n_blocks * kColumns;                   // of one, too
    std::byte* const memory = scratch(static_cast<std::size_t>(
        weights_bytes + n_panels * (numbers_bytes + n_states * std::int64_t{sizeof(State)})));
    auto* const weights = reinterpret_cast<Weights*>(memory);
    std::byte* const numbers = memory + weights_bytes;
    auto* const states = reinterpret_cast<State*>(numbers + n_panels * numbers_bytes);
    // The last panel ends with the columns and so may begin in the one before.
    const auto begin = [&](std::int64_t k) {
      return start + (kColumns * (k + 1) <= n ? kColumns * k : n - kColumns);
    };
    for (std::int64_t k = 0; k < n_panels; ++k) {
      Base::prepare(p, begin(k), kColumns, states + k * n_states);
      pack(p, begin(k), numbers + k * numbers_bytes);
    }
    for (std::int64_t i = first; i < last; ++i) {
      const auto at = Base::place(p, i);
      Base::load(p, i, at, weights);
      for (std::int64_t k = 0; k < n_panels; ++k) {
        panel(p, at, begin(k), weights, numbers + k * numbers_bytes, states + k * n_states);
      }
    }
  }

  // The numbers of a panel, all columns of a part one after the other: in as few lines as can be.
  static void pack(const Product& p, std::int64_t start, std::byte* out) {
    for (std::int64_t b = 0; b < p.n_blocks; ++b) {
      for (std::int64_t s = 0; s < kParts; ++s) {
        const std::int64_t place = b * Format::kStateBytes + Format::kNumbersAt + s * kPartBytes;
        for (std::int64_t j = 0; j < kColumns; ++j, out += kPartBytes) {
          __builtin_memcpy(out, p.states + (start + j) * p.states_stride + place, kPartBytes);
        }
      }
    }
  }

  static void panel(const Product& p, typename Base::Place at, std::int64_t start,
                    const Weights* weights, const std::byte* numbers, const State* states) {
    alignas(kLine) std::int32_t exact[kUnderWay][kColumns][kLanes];
    const std::int64_t n = p.n_blocks * kParts;
    const auto begin = [&](std::int64_t i) __attribute__((always_inline)) {
      const std::byte* const columns = numbers + i * kPanelBytes;
      void* const before = exact[(i + kUnderWay - 1) % kUnderWay];
      if (i < n) {
        const auto* const part = reinterpret_cast<const std::byte*>(weights[i / kParts].bytes) +
                                 i % kParts * kPanelBytes;
        if (i % 2 == 0) {
          Tiles::multiply<0, Format::kIsSigned>(columns, kPartBytes, part, before);
        } else {
          Tiles::multiply<1, Format::kIsSigned>(columns, kPartBytes, part, before);
        }
      } else if (i == n) {
        if (i % 2 == 0) {
          Tiles::store<1>(before);
        } else {
          Tiles::store<0>(before);
        }
      }
    };
    for (std::int64_t i = 0; i < kAhead; ++i) begin(i);
    __m512 sums[kColumns];
    Base::template clear<kColumns>(sums);
    for (std::int64_t b = 0; b < p.n_blocks; ++b) {
      Format::template add<kColumns>(weights[b], states + b * kColumns, sums,
                                     [&](int s, int j) __attribute__((always_inline)) {
                                       const std::int64_t i = b * kParts + s;
                                       if (j == 0) begin(i + kAhead);
                                       return _mm512_load_si512(exact[i % kUnderWay][j]);
                                     });
    }
    Base::template store<kColumns>(p, at, start, sums);
  }
};

// Numbers that were moved up by 128, signed again, as both factors may be.
[[gnu::always_inline]] inline void move_back(__m512i* bytes) {
  for (int t = 0; t < 8; ++t) bytes[t] = _mm512_xor_si512(bytes[t], _mm512_set1_epi8(-128));
}

template <class Numbers, Kernels::Kernel kMultiplyFew>
struct SmallTiles : Small<Numbers> {
  static constexpr Kernels::Kernel kFew = kMultiplyFew;
  static constexpr int kParts = 1, kPartBytes = 32;
  static constexpr bool kIsSigned = true;
  using Base = Small<Numbers>;
  using Weights = typename Base::Weights;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride) {
    return back(Base::load(block, stride));
  }
  [[gnu::always_inline]] static inline Weights load_ordered(const std::byte* numbers,
                                                            const std::byte* scales) {
    return back(Base::load_ordered(numbers, scales));
  }

 private:
  [[gnu::always_inline]] static inline Weights back(Weights out) {
    move_back(out.bytes);
    return out;
  }
};

template <bool kHigh>
struct Q45Tiles : InParts<Q45<kHigh>> {
  static constexpr Kernels::Kernel kFew = kHigh ? multiply_q5_k : multiply_q4_k;
  static constexpr int kPartBytes = 32, kNumbersAt = kStateNumbers;
  static constexpr bool kIsSigned = false;
};

struct XSTiles : InParts<XS> {
  static constexpr Kernels::Kernel kFew = multiply_iq4_xs;
  static constexpr int kPartBytes = 32, kNumbersAt = kStateNumbers;
  static constexpr bool kIsSigned = true;

  [[gnu::always_inline]] static inline Weights load(const std::byte* block, std::int64_t stride,
                                                    const auto& ahead) {
    Weights out = InParts<XS>::load(block, stride, ahead);
    for (auto& part : out.bytes) move_back(part);
    return out;
  }
};

using Q8_0Tiles = SmallTiles<Eight, multiply_q8_0>;

void multiply_q8_0_by_tiles(const Product& p) {
  if (p.ordered != nullptr) {
    TilePanels<Q8_0Tiles, true>::multiply(p);
  } else {
    TilePanels<Q8_0Tiles>::multiply(p);
  }
}

}  // namespace

// Parts of q2_k, q3_k and q6_k are too short: a product of half the length takes as long.
constinit const Kernels kAmx{"amx-int8",
                             kLanes,
                             multiply_q8_0_by_tiles,
                             order_q8_0,
                             TilePanels<SmallTiles<Fours<false>, multiply_q4_0>>::multiply,
                             TilePanels<SmallTiles<Fours<true>, multiply_q4_1>>::multiply,
                             TilePanels<SmallTiles<Fives<false>, multiply_q5_0>>::multiply,
                             TilePanels<SmallTiles<Fives<true>, multiply_q5_1>>::multiply,
                             TilePanels<SmallTiles<FoursOfTable, multiply_iq4_nl>>::multiply,
                             TilePanels<SmallTiles<Floats, multiply_mxfp4>>::multiply,
                             multiply_q2_k,
                             multiply_q3_k,
                             TilePanels<Q45Tiles<false>>::multiply,
                             TilePanels<Q45Tiles<true>>::multiply,
                             multiply_q6_k,
                             TilePanels<XSTiles>::multiply,
                             multiply_f16,
                             multiply_bf16,
                             multiply_f32,
                             attend_avx512};

}  // namespace codespec
