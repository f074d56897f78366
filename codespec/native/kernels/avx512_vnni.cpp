// Sixteen rows at once: AVX-512 with VNNI (Intel from Cascade Lake, AMD from Zen 4).
#include "avx512_small.h"
#include "panels.h"
#include "rows.h"

namespace codespec {

void multiply_q8_0(const Product& p) {
  if (p.ordered != nullptr) {
    Panels<Q8_0, true>::multiply(p);
  } else {
    Panels<Q8_0>::multiply(p);
  }
}

void order_q8_0(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks,
                std::byte* out) {
  order<Q8_0>(weights, n_rows, n_blocks, out);
}

constinit const Kernels kAvx512Vnni{"avx512-vnni",   kLanes,         multiply_q8_0, order_q8_0,
                                    multiply_q4_0,   multiply_q4_1,  multiply_q5_0, multiply_q5_1,
                                    multiply_iq4_nl, multiply_mxfp4, multiply_q2_k, multiply_q3_k,
                                    multiply_q4_k,   multiply_q5_k,  multiply_q6_k, multiply_iq4_xs,
                                    multiply_f16,    multiply_bf16,  multiply_f32,  attend_avx512};

}  // namespace codespec
