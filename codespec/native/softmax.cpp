#include "softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace codespec {
namespace {

// e to the power of x, from -87 to 0, within a millionth of it: a polynomial for the fraction of
// its power of two, the bits of a float for the rest.
float exp_of(float x) {
  constexpr float kRounds = 12582912.0F;  // 1.5 * 2^23: adding it leaves a whole number
  const float power = x * 1.44269504F;
  const float rounded = power + kRounds;  // which its lowest bits are
  const float f = power - (rounded - kRounds);
  const float low = 0.0555041087F + f * (0.00961812911F + f * 0.00133335581F);
  const float part = 1.0F + f * (0.693147181F + f * (0.240226507F + f * low));
  return part * std::bit_cast<float>((std::bit_cast<std::uint32_t>(rounded) << 23) + 0x3F800000U);
}

// The sum of e^(x - top) over a row whose largest logit is `top`. Of a part at a time, in loops
// that compilers make vectors of.
float sum_of_exp(std::span<const float> row, float top) {
  constexpr std::size_t kPart = 256, kLanes = 16;
  constexpr float kLeast = -87.0F;  // about the smallest normal float; NaN counts as it
  float sums[kLanes] = {};
  float part[kPart];
  for (std::size_t i = 0; i < row.size(); i += kPart) {
    const std::size_t n = std::min(kPart, row.size() - i);
    for (std::size_t j = 0; j < n; ++j) part[j] = std::max(kLeast, row[i + j] - top);
    for (std::size_t j = n; j < kPart; ++j) part[j] = kLeast;
    for (float& x : part) x = exp_of(x);
    for (std::size_t j = 0; j < kPart; j += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) sums[k] += part[j + k];
    }
  }
  float sum = 0.0F;
  for (const float lane : sums) sum += lane;
  return sum;
}

}  // namespace

double log_probability(std::span<const float> row, std::size_t token, float top) {
  const double found = row[token] - top - std::log(sum_of_exp(row, top));
  return found > kLeastLogProbability ? std::min(found, 0.0) : kLeastLogProbability;
}

}  // namespace codespec
