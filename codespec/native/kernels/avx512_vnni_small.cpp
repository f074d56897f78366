// Products of blocks of 32 numbers of less than a byte with AVX-512 and VNNI.
#include "avx512_small.h"
#include "panels.h"
#include "rows.h"

namespace codespec {

void multiply_q4_0(const Product& p) { Panels<Small<Fours<false>>>::multiply(p); }
void multiply_q4_1(const Product& p) { Panels<Small<Fours<true>>>::multiply(p); }
void multiply_q5_0(const Product& p) { Panels<Small<Fives<false>>>::multiply(p); }
void multiply_q5_1(const Product& p) { Panels<Small<Fives<true>>>::multiply(p); }
void multiply_iq4_nl(const Product& p) { Panels<Small<FoursOfTable>>::multiply(p); }
void multiply_mxfp4(const Product& p) { Panels<Small<Floats>>::multiply(p); }

}  // namespace codespec
