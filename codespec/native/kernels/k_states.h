// Activations that K-quants are multiplied with, ggml's q8_K: a column's block of 256 numbers. As
// panels.h, local to the file that includes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace codespec {
namespace {

// A float, the scale; 256 signed bytes; their sums by 16, in 16 bits.
constexpr int kStateBytesK = 292, kStateNumbers = 4, kStateSums = 260;

inline float scale_of(const std::byte* state) {
  float scale;
  __builtin_memcpy(&scale, state, sizeof scale);
  return scale;
}

// State of formats that need a block's sums, by their kParts parts.
template <int kParts>
struct PartSums {
  struct State {
    float scale;
    std::int16_t sums[kParts];
  };

  static State prepare(const std::byte* block) {
    State out{scale_of(block), {}};
    std::int16_t sums[16];
    __builtin_memcpy(sums, block + kStateSums, sizeof sums);
    for (int i = 0; i < 16; ++i) {
      std::int16_t& sum = out.sums[i * kParts / 16];
      sum = static_cast<std::int16_t>(sum + sums[i]);
    }
    return out;
  }
};

}  // namespace
}  // namespace codespec
