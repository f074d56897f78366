// Matrices of bfloat16 where the processor multiplies them itself (Intel from Cooper Lake, AMD from
// Zen 4): two numbers of a row by two of a column in each lane, twice as many as one by one, and
// neither is widened before.
#include "avx512_dots.h"

namespace codespec {
namespace {

struct Pairs {
  using Column = std::uint16_t;
  using Mask = __mmask32;
  static constexpr int kBytes = 2, kStep = 32;
  // Few columns take less time than to read their rows from memory. Running ahead of the prefetch
  // slows it down; a second panel, whose rows are in the cache, gives it time.
  static constexpr int kAhead = 4, kPanels = 2;
  static __m512i load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static __m512i load(const std::byte* p, Mask some) { return _mm512_maskz_loadu_epi16(some, p); }
  static __m512i column(const std::uint16_t* p) { return _mm512_loadu_si512(p); }
  static __m512i column(const std::uint16_t* p, Mask some) {
    return _mm512_maskz_loadu_epi16(some, p);
  }
  static __m512 add(__m512 sum, __m512i numbers, __m512i column) {
    return _mm512_dpbf16_ps(sum, (__m512bh)numbers, (__m512bh)column);
  }
};

}  // namespace

void multiply_bf16_pairs(const Product& p) { multiply<Pairs>(p); }

}  // namespace codespec
