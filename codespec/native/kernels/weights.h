// Weights of small models in the order of products (ordered.h), beside those that llama.cpp keeps
// as they are in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "product.h"

namespace codespec {

// A type of buffer like `theirs`, the one for the processor's memory: matrices of models that are
// loaded into it are brought into order when they are first multiplied, and that is forgotten with
// the model. The same address each time; null where `theirs` is not as expected.
BufferType* weights_buffer(BufferType* theirs, std::size_t (*size_of)(const Tensor*));

// The matrix that begins at `weights` and has that size, in the order of `kernels`, or null.
const std::byte* ordered(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks,
                         const Kernels& kernels);

// Matrices in order.
std::int64_t n_ordered();

}  // namespace codespec
