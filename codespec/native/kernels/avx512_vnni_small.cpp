// Products of blocks of 32 numbers of less than a byte with AVX-512 and VNNI.
#include "avx512_small.h"
#include "panels.h"
#include "rows.h"

namespace codespec {

void multiply_q4_0(const Product& p) { Panels<Small<Four>>::multiply(p); }
void multiply_q5_0(const Product& p) { Panels<Small<Five>>::multiply(p); }
void multiply_iq4_nl(const Product& p) { Panels<Small<FourOfTable>>::multiply(p); }

}  // namespace codespec
