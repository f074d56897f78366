// Input and output of one pass: the arrays of its batch, and argmax over its logits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "tokens.h"

namespace codespec {

// The cells of a batch, one a token: llama.cpp's own arrays.
struct Batch {
  std::span<Token> tokens;
  std::span<std::int32_t> positions;
  std::span<std::int8_t> wanted;  // nonzero for tokens with logits

  // Fills in committed tokens from position `start` on and a chain after them. Logits are wanted
  // after the last committed token and each token of the chain.
  void lay(Tokens committed, Tokens chain, std::int32_t start, bool want) const {
    const std::size_t n = committed.size() + chain.size();
    std::ranges::copy(chain, std::ranges::copy(committed, tokens.begin()).out);
    for (std::size_t i = 0; i < n; ++i) {
      positions[i] = start + static_cast<std::int32_t>(i);
      wanted[i] = want && i + 1 >= committed.size() ? 1 : 0;
    }
  }
};

// The largest logit; NaN counts as the smallest.
inline float largest(std::span<const float> row) {
  constexpr std::size_t kLanes = 16;  // side by side: one comparison need not wait for another
  float best[kLanes];
  std::fill_n(best, kLanes, -std::numeric_limits<float>::infinity());
  const std::size_t n_whole = row.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < n_whole; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      best[j] = row[i + j] > best[j] ? row[i + j] : best[j];
    }
  }
  float top = *std::max_element(best, best + kLanes);
  for (const float x : row.subspan(n_whole)) top = x > top ? x : top;
  return top;
}

// The lowest index of the largest logit; 0 without any.
inline std::size_t argmax(std::span<const float> row) {
  constexpr std::size_t kPart = 512;  // only the part that holds it is gone through one by one
  std::size_t part = 0;
  float top = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < row.size(); i += kPart) {
    const float here = largest(row.subspan(i, std::min(kPart, row.size() - i)));
    if (here > top) {
      top = here;
      part = i;
    }
  }
  const auto rest = row.subspan(part);
  const auto found = std::ranges::find(rest, top);
  return found == rest.end() ? 0 : part + static_cast<std::size_t>(found - rest.begin());
}

}  // namespace codespec
