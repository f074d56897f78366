// Where llama.cpp's CPU backend meets these kernels: `llamafile_sgemm`, which it asks about each
// product of matrices before it makes it itself, and `ggml_compute_forward_mul_mat_tiled`, which it
// asks before that. Loaded before the backend, with its symbols visible to all (RTLD_GLOBAL), this
// library is the one that is asked; what it does not take it passes on.
//
// The order of the arguments is ggml's (ggml-cpu/llamafile/sgemm.h), as are the numbers of types.
#include <cpuid.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "product.h"

namespace codespec {
namespace {

constexpr int kF32 = 0, kF16 = 1, kQ8_0 = 8, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kQ8_K = 15;
constexpr std::size_t kLine = 64;

// Weights of a type by states of another: bytes of their blocks, and who multiplies them.
struct Kind {
  int type, state_type;
  std::int64_t bytes, state_bytes;
  Kernels::Kernel Kernels::* kernel;
};
constexpr Kind kKinds[] = {
    {kF16, kF16, 2, 2, &Kernels::f16},        {kQ8_0, kQ8_0, 34, 34, &Kernels::q8_0},
    {kQ4_K, kQ8_K, 144, 292, &Kernels::q4_k}, {kQ5_K, kQ8_K, 176, 292, &Kernels::q5_k},
    {kQ6_K, kQ8_K, 210, 292, &Kernels::q6_k},
};

// What its first fields are to ggml.
struct ComputeParams {
  int ith, nth;
};

using Sgemm = bool (*)(const ComputeParams*, std::int64_t, std::int64_t, std::int64_t, const void*,
                       std::int64_t, const void*, std::int64_t, void*, std::int64_t, int, int, int);

using Tiled = bool (*)(const ComputeParams*, std::byte*);

std::atomic<Sgemm> next{nullptr};
std::atomic<Tiled> next_tiled{nullptr};
std::atomic<std::size_t> source_place{0};  // of the weights' pointer in a ggml_tensor
std::atomic<const Kernels*> in_use{nullptr};
std::atomic<std::int64_t> n_products{0};

// Not all compilers know the name of this one. That the system keeps the registers is what comes
// with AVX2.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}

// What this processor has, the best first; the rest null.
std::array<const Kernels*, 3> find() {
  std::array<const Kernels*, 3> out{};
  std::size_t n = 0;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    out[n++] = &kAvx512Vnni;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
#if defined(CODESPEC_AVX_VNNI)
    if (has_avx_vnni()) out[n++] = &kAvxVnni;
#endif
    out[n++] = &kAvx2;
  }
  return out;
}

const std::array<const Kernels*, 3> found = find();

// Null where they multiply no such weights, or there are none.
const Kind* kind_of(const Kernels* kernels, int type) {
  if (kernels == nullptr) return nullptr;
  for (const Kind& kind : kKinds) {
    if (kind.type == type) return &kind;
  }
  return nullptr;
}

struct Free {
  void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kLine}); }
};

}  // namespace

std::byte* scratch(std::size_t n_bytes) {
  static thread_local std::unique_ptr<std::byte, Free> memory;
  static thread_local std::size_t n_held = 0;
  if (n_bytes > n_held) {
    memory.reset();
    n_held = 0;
    memory.reset(static_cast<std::byte*>(::operator new(n_bytes, std::align_val_t{kLine})));
    n_held = n_bytes;
  }
  return memory.get();
}

}  // namespace codespec

#define CODESPEC_API extern "C" __attribute__((visibility("default")))

// The instruction sets that this processor and they have, the best first; null after the last.
CODESPEC_API const char* codespec_kernels_name(std::size_t i) {
  const bool is_there = i < codespec::found.size() && codespec::found[i] != nullptr;
  return is_there ? codespec::found[i]->name : nullptr;
}

// The backend's own functions, null where it has none. place: offset of the pointer to a product's
// weights in its ggml_tensor, whose type comes first in theirs; 0 where it is not known, and
// `tiled` then makes what it can.
CODESPEC_API void codespec_kernels_connect(codespec::Sgemm sgemm, codespec::Tiled tiled,
                                           std::size_t place) {
  codespec::next = sgemm;
  codespec::next_tiled = tiled;
  codespec::source_place = place;
}

// From now on those of that name, or none.
CODESPEC_API void codespec_kernels_use(const char* name) {
  codespec::in_use = nullptr;
  for (const codespec::Kernels* kernels : codespec::found) {
    if (kernels != nullptr && std::strcmp(kernels->name, name) == 0) codespec::in_use = kernels;
  }
}

// Products made by them.
CODESPEC_API std::int64_t codespec_kernels_count() { return codespec::n_products; }

CODESPEC_API bool llamafile_sgemm(const codespec::ComputeParams* params, std::int64_t m,
                                  std::int64_t n, std::int64_t k, const void* a, std::int64_t lda,
                                  const void* b, std::int64_t ldb, void* c, std::int64_t ldc,
                                  int a_type, int b_type, int c_type) {
  using namespace codespec;
  const Kernels* const kernels = in_use.load(std::memory_order_relaxed);
  const Kind* const kind = kind_of(kernels, a_type);
  if (kind != nullptr && b_type == kind->state_type && c_type == kF32 && m >= kernels->min_rows) {
    if (params->ith == 0) n_products.fetch_add(1, std::memory_order_relaxed);
    (kernels->*kind->kernel)({params->ith, params->nth, m, n, k, static_cast<const std::byte*>(a),
                              lda * kind->bytes, static_cast<const std::byte*>(b),
                              ldb * kind->state_bytes, static_cast<float*>(c), ldc});
    return true;
  }
  const Sgemm original = next.load(std::memory_order_relaxed);
  return original != nullptr &&
         original(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type);
}

// Makes a product of eight columns and more from K-quants, before anyone else is asked. Not those
// that are ours: a column's result must not depend on how many there are.
CODESPEC_API bool ggml_compute_forward_mul_mat_tiled(const codespec::ComputeParams* params,
                                                     std::byte* product) {
  using namespace codespec;
  if (const std::size_t place = source_place.load(std::memory_order_relaxed); place != 0) {
    const std::byte* weights;
    int type;
    std::memcpy(&weights, product + place, sizeof weights);
    std::memcpy(&type, weights, sizeof type);
    if (kind_of(in_use.load(std::memory_order_relaxed), type) != nullptr) return false;
  }
  const Tiled original = next_tiled.load(std::memory_order_relaxed);
  return original != nullptr && original(params, product);
}
