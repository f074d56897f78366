// Tiling of matrix products. Files of one instruction set each include this, so all of it is local
// to them: the linker must not merge code that was compiled for different processors.
//
// llama.cpp multiplies row by row, and for several columns column by column. Here as many rows as
// a register has lanes go together: dword t of row r's block is in lane r of register t, so a dword
// of a column, broadcast to all lanes, is multiplied with all rows at once, sums stay in their
// lanes, and the weights are brought into that order once for all columns. So the pass of a short
// draft takes little more time than to read the weights from memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ordered.h"
#include "product.h"

namespace codespec {
namespace {

constexpr std::int64_t kFar = 1 << 16;  // bytes of prefetch distance to the L2 cache
constexpr std::int64_t kStates = 128;   // columns that share one read of the weights

// `Format` has: Weights, kRows rows of one block, and `load`, which may prefetch piece by piece
// (ask_ahead), else all is prefetched before; State, values of a column's block that are computed
// once, and `prepare`; `multiply<N>`, which adds a block's share to the sums of N columns; where it
// has kFused, `multiply_fused<N>`, which loads and multiplies at once, for up to kFused columns, as
// storing the ordered weights takes as long as ordering them; kFetchesFar, whether weights are
// prefetched kFar ahead also where the next tile fits the L1 cache (if not, it has to fit well, as
// evicted lines are far away again); kAlwaysNear, whether a tile is prefetched to the L1 cache
// itself where that has no room for the next: faster than to decide, unless there is much other
// work; kIsOrdered, for weights in that order already, see ordered.h.
template <class Format, bool kIsOrdered = false>
class Panels {
  using Weights = typename Format::Weights;
  using State = typename Format::State;
  using Sums = typename Format::Sums;
  static constexpr int kRows = Format::kRows, kColumns = Format::kColumns;

 public:
  // n_rows must be kRows at least.
  static void multiply(const Product& p) {
    const auto [first, last] = share(p);
    if (first == last) return;
    for_parts(p, [&](std::int64_t start, std::int64_t n) {
      if (n <= kColumns) {
        narrow(p, first, last, start, static_cast<int>(n));
      } else {
        wide(p, first, last, start, n);
      }
    });
  }

 protected:
  // The tiles of this thread.
  static std::pair<std::int64_t, std::int64_t> share(const Product& p) {
    const std::int64_t n_tiles = (p.n_rows + kRows - 1) / kRows;
    return {n_tiles * p.thread / p.n_threads, n_tiles * (p.thread + 1) / p.n_threads};
  }

  // Columns are split evenly into groups that share one read of the weights.
  static void for_parts(const Product& p, const auto& multiply) {
    const std::int64_t n_parts = (p.n_columns + kStates - 1) / kStates;
    for (std::int64_t i = 0; i < n_parts; ++i) {
      const std::int64_t start = p.n_columns * i / n_parts;
      multiply(start, p.n_columns * (i + 1) / n_parts - start);
    }
  }

  // The last tile ends with the matrix and so may begin in the one before: `skip` rows are its.
  struct Place {
    std::int64_t row;
    int skip;
  };
  static Place place(const Product& p, std::int64_t tile) {
    const std::int64_t row = tile * kRows, end = p.n_rows - kRows;
    return row <= end ? Place{row, 0} : Place{end, static_cast<int>(row - end)};
  }

  // The weights of a tile. A block of all its rows takes kStep bytes, wherever they are.
  static constexpr int kStep = kRows * Format::kBlockBytes;
  struct Tile {
    const std::byte* begin;
    std::int64_t n_bytes, stride, n_blocks;
    bool is_long;          // larger than the L1 cache
    const std::byte* end;  // as in Product
    std::ptrdiff_t jump;

    [[gnu::always_inline]] Weights load(std::int64_t b) const {
      const auto ahead = ask_ahead(*this, b);
      if constexpr (kIsOrdered) {
        ahead(0, 1);
        return load_ordered<Format>(begin, b, n_blocks);
      } else {
        const std::byte* const block = begin + b * Format::kBlockBytes;
        if constexpr (requires { Format::load(block, stride, ahead); }) {
          return Format::load(block, stride, ahead);
        } else {
          ahead(0, 1);
          return Format::load(block, stride);
        }
      }
    }
  };
  static Tile tile(const Product& p, std::int64_t i, Place at) {
    if constexpr (kIsOrdered) {
      const std::int64_t n_bytes = ordered_bytes(kStep, p.n_blocks);
      return {p.ordered + i * n_bytes, n_bytes, 0, p.n_blocks, n_bytes > kNear, nullptr, 0};
    } else {
      const std::int64_t stride = p.weights_stride;
      const std::int64_t n_bytes = kRows * stride;
      const std::int64_t room = Format::kFetchesFar ? kNear : kNear / 3;
      return {
          p.weights + at.row * stride, n_bytes, stride, p.n_blocks, n_bytes > room, p.end, p.jump};
    }
  }

  // Hardware prefetchers follow one stream better than one a row: while block b of these rows is
  // read, a share of the next tile is prefetched, to the L1 cache if that has room for it; further
  // and larger ones go to the L2 cache. Returns a function that prefetches the i-th of n pieces: a
  // long block has more lines than can be in flight, and all later reads wait for them.
  [[gnu::always_inline]] static inline auto ask_ahead(const Tile& tile, std::int64_t b) {
    const std::int64_t far = tile.n_bytes > kFar ? tile.n_bytes : kFar;
    const std::byte* const read = tile.begin + b * kStep;
    const auto ahead = [&](std::int64_t n_bytes) {
      const std::byte* const place = read + n_bytes;
      return place + (place < tile.end ? 0 : tile.jump);
    };
    return [is_long = tile.is_long, to_second = ahead(far),
            to_first = ahead(tile.is_long ? 0 : tile.n_bytes)](int i, int n)
               __attribute__((always_inline)) {
                 constexpr int kLines = (kStep + kLine - 1) / kLine;
                 for (int line = kLines * i / n; line < kLines * (i + 1) / n; ++line) {
                   if (is_long || Format::kFetchesFar) fetch(to_second + line * kLine);
                   if (!is_long || Format::kAlwaysNear) __builtin_prefetch(to_first + line * kLine);
                 }
               };
  }

  // Brings a whole tile into order.
  static void load(const Product& p, std::int64_t i, Place at, Weights* out) {
    const Tile tile = Panels::tile(p, i, at);
    for (std::int64_t b = 0; b < p.n_blocks; ++b) out[b] = tile.load(b);
  }

  static void prepare(const Product& p, std::int64_t start, int n, State* out) {
    for (int j = 0; j < n; ++j) {
      const std::byte* column = p.states + (start + j) * p.states_stride;
      for (std::int64_t b = 0; b < p.n_blocks; ++b) {
        out[b * n + j] = Format::prepare(column + b * Format::kStateBytes);
      }
    }
  }

  template <int N>
  [[gnu::always_inline]] static inline void store(const Product& p, Place at, std::int64_t start,
                                                  const Sums* sums) {
#pragma GCC unroll 17
    for (int j = 0; j < N; ++j) {
      Format::store(p.out + (start + j) * p.out_stride + at.row, sums[j], at.skip);
    }
  }

  // One by one: GCC makes `{}` a loop over their memory.
  template <int N>
  [[gnu::always_inline]] static inline void clear(Sums* sums) {
#pragma GCC unroll 17
    for (int j = 0; j < N; ++j) sums[j] = Sums{};
  }

 private:
  // Few columns: weights go from memory through registers, once.
  static void narrow(const Product& p, std::int64_t first, std::int64_t last, std::int64_t start,
                     int n) {
    auto* states =
        reinterpret_cast<State*>(scratch(sizeof(State) * static_cast<std::size_t>(p.n_blocks * n)));
    prepare(p, start, n, states);
    kNarrow[static_cast<std::size_t>(n - 1)](p, first, last, start, states);
  }

  // Many: a tile is brought into order once, then all panels of columns take it from the cache.
  static void wide(const Product& p, std::int64_t first, std::int64_t last, std::int64_t start,
                   std::int64_t n) {
    const auto n_blocks = static_cast<std::size_t>(p.n_blocks),
               n_states = static_cast<std::size_t>(n);
    std::byte* memory = scratch(n_blocks * (sizeof(Weights) + sizeof(State) * n_states));
    auto* weights = reinterpret_cast<Weights*>(memory);
    auto* states = reinterpret_cast<State*>(memory + n_blocks * sizeof(Weights));
    const std::int64_t n_panels = (n + kColumns - 1) / kColumns;
    const auto begin = [&](std::int64_t panel) { return n * panel / n_panels; };  // even ones
    for (std::int64_t i = 0; i < n_panels; ++i) {
      prepare(p, start + begin(i), static_cast<int>(begin(i + 1) - begin(i)),
              states + begin(i) * p.n_blocks);
    }
    for (std::int64_t i = first; i < last; ++i) {
      const Place at = place(p, i);
      load(p, i, at, weights);
      for (std::int64_t k = 0; k < n_panels; ++k) {
        const auto width = static_cast<std::size_t>(begin(k + 1) - begin(k));
        kPanel[width - kLeast](p, at, start + begin(k), weights, states + begin(k) * p.n_blocks);
      }
    }
  }

  template <int N>
  static void narrow_panel(const Product& p, std::int64_t first, std::int64_t last,
                           std::int64_t start, const State* states) {
    const std::byte* columns = p.states + start * p.states_stride;
    for (std::int64_t i = first; i < last; ++i) {
      const Place at = place(p, i);
      const Tile tile = Panels::tile(p, i, at);
      Sums sums[N];
      clear<N>(sums);
      for (std::int64_t b = 0; b < p.n_blocks; ++b) {
        const std::byte* const column = columns + b * Format::kStateBytes;
        if constexpr (N <= fused()) {
          Format::template multiply_fused<N>(tile.begin + b * Format::kBlockBytes, tile.stride,
                                             ask_ahead(tile, b), column, p.states_stride,
                                             states + b * N, sums);
        } else {
          const Weights weights = tile.load(b);
          Format::template multiply<N>(weights, column, p.states_stride, states + b * N, sums);
        }
      }
      store<N>(p, at, start, sums);
    }
  }

  template <int N>
  static void panel(const Product& p, Place at, std::int64_t start, const Weights* weights,
                    const State* states) {
    const std::byte* columns = p.states + start * p.states_stride;
    Sums sums[N];
    clear<N>(sums);
    for (std::int64_t b = 0; b < p.n_blocks; ++b) {
      Format::template multiply<N>(weights[b], columns + b * Format::kStateBytes, p.states_stride,
                                   states + b * N, sums);
    }
    store<N>(p, at, start, sums);
  }

  static constexpr int fused() {
    if constexpr (requires { Format::kFused; }) return Format::kFused;
    return 0;
  }
  template <int... N>
  static constexpr auto narrow_panels(std::integer_sequence<int, N...>) {
    return std::array{&narrow_panel<N + 1>...};
  }
  template <int... N>
  static constexpr auto panels(std::integer_sequence<int, N...>) {
    return std::array{&panel<N + kLeast>...};
  }
  static constexpr int kLeast = (kColumns + 1) / 2;  // columns of even panels
  static constexpr auto kNarrow = narrow_panels(std::make_integer_sequence<int, kColumns>{});
  static constexpr auto kPanel = panels(std::make_integer_sequence<int, kColumns - kLeast + 1>{});
};

}  // namespace
}  // namespace codespec
