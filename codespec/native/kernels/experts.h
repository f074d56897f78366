// Products of a mixture's experts with the tokens that are routed to them.
#pragma once

#include <cstdint>

#include "product.h"

namespace codespec {

// A column of one expert: the slot that it has among the experts of a token, and the token.
struct Place {
  std::int32_t slot, token;
};

// The columns of one expert, n of them. A token has n_slots columns of states, one for each slot or
// one for all. Strides of results are in floats. next: the weights of the expert whose turn comes
// then, null after the last.
struct Routes {
  std::int64_t n;
  const Place* places;
  std::int64_t n_slots;
  std::int64_t slot_stride, token_stride;
  const std::byte* next = nullptr;
};

// The product of an expert's weights with its columns. p: states and results are those of all
// tokens, their number is not looked at. kernel takes min_rows rows at least.
void multiply_expert(Kernels::Kernel kernel, std::int64_t min_rows, Product p, const Routes&);

}  // namespace codespec
