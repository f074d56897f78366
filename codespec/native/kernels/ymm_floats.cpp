// Matrices of half and single precision in registers of 256 bits, for AVX2 and AVX-VNNI; compare
// avx512_floats.cpp.
#include "ymm_dots.h"

namespace codespec {
namespace {

// Most float32 numbers of columns that stay in a core's cache.
constexpr std::int64_t kCached = 1 << 16;

// Columns as float32, one after the other.
template <class Kind>
void widen(const std::byte* from, std::int64_t stride, std::int64_t n, std::int64_t length,
           float* out) {
  const std::int64_t whole = length / kStep * kStep;
  for (std::int64_t i = 0; i < n; ++i, from += stride, out += padded(length)) {
    for (std::int64_t k = 0; k < whole; k += kStep)
      _mm256_storeu_ps(out + k, load<Kind>(from + k * Kind::kBytes));
    if (whole < length)
      _mm256_storeu_ps(out + whole, load<Kind>(from + whole * Kind::kBytes, length - whole));
  }
}

template <class Kind>
void multiply_some(const Product& p, std::int64_t start, std::int64_t n, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t length = p.n_blocks, n_panels = (n + kColumns - 1) / kColumns;
  auto* const columns = reinterpret_cast<float*>(
      scratch(sizeof(float) * static_cast<std::size_t>(n * padded(length))));
  widen<Kind>(p.states + start * p.states_stride, p.states_stride, n, length, columns);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const std::int64_t row = tile * kTall, left = p.n_rows - row;
    for (std::int64_t i = 0; i < n_panels; ++i) {
      const std::int64_t first = n * i / n_panels, last = n * (i + 1) / n_panels;
      kMultiply<Kind>[static_cast<std::size_t>(last - first - 1)](
          p.weights + row* p.weights_stride, p.weights_stride,
          static_cast<int>(left < kTall ? left : kTall), columns + first* padded(length), length,
          p.out + (start + first)* p.out_stride + row, p.out_stride);
    }
  }
}

template <class Kind>
void multiply(const Product& p) {
  const std::int64_t n_tiles = (p.n_rows + kTall - 1) / kTall;
  const std::int64_t begin = n_tiles * p.thread / p.n_threads,
                     end = n_tiles * (p.thread + 1) / p.n_threads;
  if (begin == end) return;
  const std::int64_t at_once = kCached / p.n_blocks > kColumns ? kCached / p.n_blocks : kColumns;
  for (std::int64_t start = 0; start < p.n_columns; start += at_once) {
    const std::int64_t left = p.n_columns - start;
    multiply_some<Kind>(p, start, left < at_once ? left : at_once, begin, end);
  }
}

}  // namespace

void multiply_f16_ymm(const Product& p) { multiply<Half>(p); }
void multiply_bf16_ymm(const Product& p) { multiply<Brain>(p); }
void multiply_f32_ymm(const Product& p) { multiply<Single>(p); }

}  // namespace codespec
