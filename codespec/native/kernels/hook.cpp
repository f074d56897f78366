// Where llama.cpp's CPU backend meets these kernels: `llamafile_sgemm`, which it asks about each
// product of matrices before it makes it itself. Loaded before the backend, with its symbols
// visible to all (RTLD_GLOBAL), this library is the one that is asked; what it does not take it
// passes on.
//
// The order of the arguments is ggml's (ggml-cpu/llamafile/sgemm.h), as are the numbers of types.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "product.h"

namespace codespec {
namespace {

constexpr int kF32 = 0, kQ8_0 = 8;
constexpr std::int64_t kQ8_0Bytes = 34;
constexpr std::size_t kLine = 64;

// What its first fields are to ggml.
struct ComputeParams {
  int ith, nth;
};

using Sgemm = bool (*)(const ComputeParams*, std::int64_t, std::int64_t, std::int64_t, const void*,
                       std::int64_t, const void*, std::int64_t, void*, std::int64_t, int, int, int);

std::atomic<Sgemm> next{nullptr};
std::atomic<bool> is_on{false};
std::atomic<std::int64_t> n_products{0};

const Kernels* find() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    return &kAvx512Vnni;
  }
#endif
  return nullptr;
}

const Kernels* const kernels = find();

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

// The instruction set that they use; "" where there is none for this processor.
CODESPEC_API const char* codespec_kernels_name() {
  return codespec::kernels == nullptr ? "" : codespec::kernels->name;
}

// From now on, or no longer; original: the backend's own function.
CODESPEC_API void codespec_kernels_use(bool wanted, codespec::Sgemm original) {
  codespec::next = original;
  codespec::is_on = wanted && codespec::kernels != nullptr;
}

// Products made by them, counted by thread.
CODESPEC_API std::int64_t codespec_kernels_count() { return codespec::n_products; }

CODESPEC_API bool llamafile_sgemm(const codespec::ComputeParams* params, std::int64_t m,
                                  std::int64_t n, std::int64_t k, const void* a, std::int64_t lda,
                                  const void* b, std::int64_t ldb, void* c, std::int64_t ldc,
                                  int a_type, int b_type, int c_type) {
  using namespace codespec;
  if (is_on.load(std::memory_order_relaxed) && a_type == kQ8_0 && b_type == kQ8_0 &&
      c_type == kF32 && m >= kernels->min_rows) {
    if (params->ith == 0) n_products.fetch_add(1, std::memory_order_relaxed);
    kernels->q8_0({params->ith, params->nth, m, n, k, static_cast<const std::byte*>(a),
                   lda * kQ8_0Bytes, static_cast<const std::byte*>(b), ldb * kQ8_0Bytes,
                   static_cast<float*>(c), ldc});
    return true;
  }
  const Sgemm original = next.load(std::memory_order_relaxed);
  return original != nullptr &&
         original(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type);
}
