// Probabilities of tokens by the logits of a pass.
#pragma once

#include <cstddef>
#include <span>

namespace codespec {

constexpr double kLeastLogProbability = -100.0;

// Natural logarithm of a token's probability under softmax of its row, whose largest logit is
// `top`: from kLeastLogProbability to 0, the least where no number is the largest.
double log_probability(std::span<const float> row, std::size_t token, float top);

}  // namespace codespec
