// Matrices of half and single precision with AVX-512: what attention multiplies, keys with queries
// and values with weights, and what says to which experts a token is routed. Rows are as short as a
// head or as long as the context, and next to each other in memory, so they are taken as they are,
// in float32.
#include "avx512_dots.h"

namespace codespec {
namespace {

constexpr int kShare = 8;  // rows that a thread takes at least

// Columns as float32, one after the other.
template <class Kind>
void widen(const std::byte* from, std::int64_t stride, std::int64_t n, std::int64_t length,
           float* out) {
  for (std::int64_t i = 0; i < n; ++i, from += stride, out += length) {
    const std::int64_t whole = length / kStep * kStep;
    for (std::int64_t k = 0; k < whole; k += kStep)
      _mm512_storeu_ps(out + k, Kind::load(from + k * Kind::kBytes));
    if (whole < length) {
      const auto some = static_cast<__mmask16>((1 << (length - whole)) - 1);
      _mm512_mask_storeu_ps(out + whole, some, Kind::load(from + whole * Kind::kBytes, some));
    }
  }
}

// What the columns may take as float32, in numbers, to stay in a core's cache.
constexpr std::int64_t kCached = 1 << 16;

// Rows from `begin` to `end` by n columns.
template <class Kind>
void multiply_some(const Product& p, std::int64_t start, std::int64_t n, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t length = p.n_blocks, n_panels = (n + kColumns - 1) / kColumns;
  const Panels& panel = panels<Kind>(length);
  auto* const columns =
      reinterpret_cast<float*>(scratch(sizeof(float) * static_cast<std::size_t>(n * length)));
  widen<Kind>(p.states + start * p.states_stride, p.states_stride, n, length, columns);
  for (std::int64_t row = begin; row < end; row += kSums) {
    // The last ones end with the matrix, and so may begin before `row`.
    const std::int64_t first = row + kSums <= p.n_rows ? row : p.n_rows - kSums;
    const std::int64_t stop = end - first < kSums ? end - first : kSums;
    const auto wanted = static_cast<__mmask16>((1 << stop) - (1 << (row - first)));
    for (std::int64_t i = 0; i < n_panels; ++i) {
      const std::int64_t left = n * i / n_panels, right = n * (i + 1) / n_panels;
      panel[static_cast<std::size_t>(right - left - 1)](
          p.weights + first * p.weights_stride, p.weights_stride, columns + left * length, length,
          p.out + (start + left) * p.out_stride + first, p.out_stride, wanted);
    }
  }
}

template <class Kind>
void multiply(const Product& p) {
  const std::int64_t n_shares = (p.n_rows + kShare - 1) / kShare;
  const std::int64_t begin = kShare * (n_shares * p.thread / p.n_threads),
                     stop = kShare * (n_shares * (p.thread + 1) / p.n_threads),
                     end = stop < p.n_rows ? stop : p.n_rows;
  if (begin >= end) return;
  const std::int64_t at_once = kCached / p.n_blocks > kColumns ? kCached / p.n_blocks : kColumns;
  for (std::int64_t start = 0; start < p.n_columns; start += at_once) {
    const std::int64_t left = p.n_columns - start;
    multiply_some<Kind>(p, start, left < at_once ? left : at_once, begin, end);
  }
}

}  // namespace

void multiply_f16(const Product& p) { p.n_rows < kSums ? multiply_f16_ymm(p) : multiply<Half>(p); }
void multiply_bf16(const Product& p) {
  p.n_rows < kSums ? multiply_bf16_ymm(p) : multiply<Brain>(p);
}
void multiply_f32(const Product& p) {
  p.n_rows < kSums ? multiply_f32_ymm(p) : multiply<Single>(p);
}

}  // namespace codespec
