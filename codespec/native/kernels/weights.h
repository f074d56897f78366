// Repacked weights of small models, in the order of products (ordered.h), beside llama.cpp's own as
// they are in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "product.h"

namespace codespec {

// A ggml buffer type like `theirs`, the one for CPU memory: matrices of models that are loaded into
// it are repacked when they are first multiplied, and freed with the model. Returns the same
// address each time; null where `theirs` has an unexpected layout.
BufferType* weights_buffer(BufferType* theirs, std::size_t (*size_of)(const Tensor*));

// The repacked matrix of `kernels` for the one at `weights` with that size; null without one.
const std::byte* ordered(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks,
                         const Kernels& kernels);

// Number of repacked matrices.
std::int64_t n_ordered();

}  // namespace codespec
