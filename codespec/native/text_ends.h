// Probability that a completion ends: mostly behind a line, and the sooner the fewer tokens it has.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace codespec {

// P(a completion ends behind a token), by the token's kind (line end or other) and the number of
// tokens before it. Drafted tokens beyond the end are useless, however likely they are accepted.
class TextEnds {
 public:
  float probability(bool is_line_end, std::size_t n_before) const {
    const Cell& cell = cells_[is_line_end][step(n_before)];
    return (cell.n_ended + (is_line_end ? kExpected * kDoubt : 0.0f)) / (cell.n + kDoubt);
  }

  void learn(bool is_line_end, std::size_t n_before, bool ended) {
    Cell& cell = cells_[is_line_end][step(n_before)];
    if (cell.n >= kMemory) cell = {cell.n / 2, cell.n_ended / 2};
    cell.n += 1;
    cell.n_ended += ended ? 1.0f : 0.0f;
  }

 private:
  static constexpr std::size_t kSteps = 8;
  static constexpr float kMemory = 128;
  // Prior: share of line ends that end a text, and its weight in texts.
  static constexpr float kExpected = 0.5f, kDoubt = 4.0f;
  struct Cell {
    float n = 0, n_ended = 0;
  };

  static std::size_t step(std::size_t n_before) {
    return std::min(static_cast<std::size_t>(std::bit_width(n_before)), kSteps - 1);
  }

  std::array<std::array<Cell, kSteps>, 2> cells_{};
};

}  // namespace codespec
