// Matrix products of a mixture of experts with the tokens that are routed to each.
#pragma once

#include <cstdint>

#include "product.h"

namespace codespec {

// A column of one expert: its slot among the experts of a token, and the token.
struct Place {
  std::int32_t slot, token;
};

// The n columns of one expert. A token has n_slots columns of activations, one for each slot or one
// for all. Strides of results are in floats. next: weights of the expert that follows, to be
// prefetched; null after the last.
struct Routes {
  std::int64_t n;
  const Place* places;
  std::int64_t n_slots;
  std::int64_t slot_stride, token_stride;
  const std::byte* next = nullptr;
};

// Computes the product of an expert's weights with its columns. p: activations and results of all
// tokens; its number of columns is not used. kernel takes min_rows rows at least.
void multiply_expert(Kernels::Kernel kernel, std::int64_t min_rows, Product p, const Routes&);

}  // namespace codespec
