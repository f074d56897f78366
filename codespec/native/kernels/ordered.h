// A second copy of q8_0 weights, repacked into the order of products (panels.h): repacking takes
// four fifths of the time of a product with one column whose weights are in a cache. Only models
// that fit a cache are worth the memory (weights.cpp).
//
// A tile has the numbers of all its blocks first, register by register as `Format::load` returns
// them, then their scales in half precision; it is aligned to a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "product.h"

namespace codespec {
namespace {

constexpr int kScaleBytes = 2, kNumbers = 32;  // of a block

// Bytes of a tile whose blocks take `step` each.
constexpr std::int64_t ordered_bytes(std::int64_t step, std::int64_t n_blocks) {
  return (step * n_blocks + kLine - 1) / kLine * kLine;
}

// Format has: `load_ordered`, which loads a block of numbers and its scales.
template <class Format>
[[gnu::always_inline]] inline auto load_ordered(const std::byte* tile, std::int64_t b,
                                                std::int64_t n_blocks) {
  constexpr int kRows = Format::kRows, kBytes = kRows * kNumbers;
  return Format::load_ordered(tile + b * kBytes,
                              tile + n_blocks * kBytes + b * kRows * kScaleBytes);
}

// See Kernels::order.
template <class Format>
void order(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks, std::byte* out) {
  constexpr int kRows = Format::kRows, kBytes = kRows * kNumbers;
  const std::int64_t stride = n_blocks * Format::kBlockBytes;
  const std::int64_t n_bytes = ordered_bytes(kRows * Format::kBlockBytes, n_blocks);
  for (std::int64_t row = 0; row < n_rows; row += kRows, out += n_bytes) {
    const std::byte* const rows = weights + (row + kRows <= n_rows ? row : n_rows - kRows) * stride;
    std::byte* scales = out + n_blocks * kBytes;
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const std::byte* const block = rows + b * Format::kBlockBytes;
      const auto loaded = Format::load(block, stride);
      __builtin_memcpy(out + b * kBytes, &loaded.bytes, kBytes);
      for (int r = 0; r < kRows; ++r, scales += kScaleBytes) {
        __builtin_memcpy(scales, block + r * stride, kScaleBytes);
      }
    }
  }
}

}  // namespace
}  // namespace codespec
