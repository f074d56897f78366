// Interface of the kernels: products of quantised weights with the activations of a few tokens, and
// attention.
#pragma once

#include <cstddef>
#include <cstdint>

namespace codespec {

constexpr int kLine = 64;  // bytes in a line of the cache

// Bytes of weights that the L1 cache has room for.
extern const std::int64_t kNear;

// Prefetches a line to the L2 cache, which can have more lines in flight than the L1 cache.
[[gnu::always_inline]] inline void fetch(const std::byte* line) { __builtin_prefetch(line, 0, 2); }

// out[column * out_stride + row] = sum over k of weights[row][k] * states[column][k].
//
// A row is n_blocks of ggml's blocks, strides of rows and columns are in bytes, of `out` in floats.
// The rows are shared by n_threads calls, each with its own `thread`.
// ordered: the weights repacked by `Kernels::order`, or null. Prefetches at or behind `end` go
// `jump` bytes further on, where the next weights are.
struct Product {
  int thread, n_threads;
  std::int64_t n_rows, n_columns, n_blocks;
  const std::byte* weights;
  std::int64_t weights_stride;
  const std::byte* states;
  std::int64_t states_stride;
  float* out;
  std::int64_t out_stride;
  const std::byte* ordered = nullptr;
  const std::byte* end = nullptr;
  std::ptrdiff_t jump = 0;
};

// Attention: out[query][head] = the mean of values, weighted by softmax(scale * query . key +
// mask).
//
// Queries and results are float32; keys, values and the mask half precision. All have `length`
// numbers, a multiple of 16; n_keys is one, too. Strides are in bytes, of `out` in floats. As many
// heads as n_heads / n_key_heads, one after the other, share keys and values. The mask is for a
// query and a key; there may be none (null). n_threads calls share the work.
struct Attention {
  int thread, n_threads;
  std::int64_t length, n_heads, n_key_heads, n_queries, n_keys;
  float scale;
  const std::byte* queries;
  std::int64_t query_stride, query_head_stride;
  const std::byte* keys;
  std::int64_t key_stride, key_head_stride;
  const std::byte* values;
  std::int64_t value_stride, value_head_stride;
  const std::byte* mask;
  std::int64_t mask_stride;
  float* out;
  std::int64_t out_stride, out_head_stride;
};

// The numbers that four bits of iq4_nl encode.
constexpr std::int8_t kTable[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

// Twice the numbers that four bits of mxfp4 encode, a sign, an exponent and a mantissa bit.
constexpr std::int8_t kFloats[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The kernels of one instruction set. A result depends on its row and its column alone, never on
// the number of columns: a token gets the same logits, to the bit, whatever is verified with it.
struct Kernels {
  using Kernel = void (*)(const Product&);
  // Repacks weights without gaps between rows into the order of products, from a cache line on.
  using Order = void (*)(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks,
                         std::byte* out);
  const char* name;
  int min_rows;
  Kernel q8_0;                                   // activations are q8_0, too
  Order order;                                   // of q8_0
  Kernel q4_0, q4_1, q5_0, q5_1, iq4_nl, mxfp4;  // activations are q8_0, with a minimum q8_1
  Kernel q2_k, q3_k, q4_k, q5_k, q6_k, iq4_xs;   // activations are q8_K
  Kernel f16, bf16, f32;                         // activations are the same; any number of rows
  void (*attend)(const Attention&);
};

extern const Kernels kAmx, kAvx512Vnni, kAvxVnni, kAvx2;

// At least so many bytes, aligned to a cache line, of the calling thread's own; the next call in
// the thread may return the same.
std::byte* scratch(std::size_t n_bytes);

}  // namespace codespec
