// Hooks of llama.cpp's CPU backend into these kernels: `llamafile_sgemm`, which it calls for each
// matrix product before it computes that itself, `ggml_compute_forward_mul_mat_tiled`, which it
// calls before that, `ggml_compute_forward_mul_mat_id_tiled`, which it calls for each expert of a
// mixture, and `ggml_compute_forward_flash_attn_ext`, which computes attention. Loaded before the
// backend, with its symbols visible to all (RTLD_GLOBAL), this library takes those calls (symbol
// interposition), and passes on the ones that it cannot compute.
//
// The order of the arguments is ggml's (ggml-cpu/llamafile/sgemm.h).
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "experts.h"
#include "ggml.h"
#include "product.h"
#include "weights.h"

namespace codespec {
namespace {

// A type of weights and that of the activations it is multiplied with: numbers and bytes of their
// blocks, and the kernel.
struct Kind {
  int type, state_type;
  std::int64_t numbers, bytes, state_bytes;
  Kernels::Kernel Kernels::* kernel;

  bool is_float() const { return numbers == 1; }  // then any number of rows will do
};
constexpr Kind kKinds[] = {
    {kF32, kF32, 1, 4, 4, &Kernels::f32},
    {kF16, kF16, 1, 2, 2, &Kernels::f16},
    {kBF16, kBF16, 1, 2, 2, &Kernels::bf16},
    {kQ8_0, kQ8_0, 32, 34, 34, &Kernels::q8_0},
    {kQ4_0, kQ8_0, 32, 18, 34, &Kernels::q4_0},
    {kQ4_1, kQ8_1, 32, 20, 36, &Kernels::q4_1},
    {kQ5_0, kQ8_0, 32, 22, 34, &Kernels::q5_0},
    {kQ5_1, kQ8_1, 32, 24, 36, &Kernels::q5_1},
    {kIQ4_NL, kQ8_0, 32, 18, 34, &Kernels::iq4_nl},
    {kMXFP4, kQ8_0, 32, 17, 34, &Kernels::mxfp4},
    {kQ2_K, kQ8_K, 256, 84, 292, &Kernels::q2_k},
    {kQ3_K, kQ8_K, 256, 110, 292, &Kernels::q3_k},
    {kQ4_K, kQ8_K, 256, 144, 292, &Kernels::q4_k},
    {kQ5_K, kQ8_K, 256, 176, 292, &Kernels::q5_k},
    {kQ6_K, kQ8_K, 256, 210, 292, &Kernels::q6_k},
    {kIQ4_XS, kQ8_K, 256, 136, 292, &Kernels::iq4_xs},
};

using Sgemm = bool (*)(const ComputeParams*, std::int64_t, std::int64_t, std::int64_t, const void*,
                       std::int64_t, const void*, std::int64_t, void*, std::int64_t, int, int, int);

using Tiled = bool (*)(const ComputeParams*, Tensor*);
using Expert = bool (*)(const ComputeParams*, Tensor*, std::int64_t, std::int64_t, const Place*,
                        char*);
using Attend = void (*)(const ComputeParams*, Tensor*);

std::atomic<Sgemm> next{nullptr};
std::atomic<Tiled> next_tiled{nullptr};
std::atomic<Expert> next_expert{nullptr};
std::atomic<Attend> next_attend{nullptr};
std::atomic<const Kernels*> in_use{nullptr};
std::atomic<std::int64_t> n_products{0}, n_attentions{0};

// Not all compilers know the names of these two. A system that saves the registers of AVX2 saves
// theirs.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 29)) != 0;
}

#if defined(CODESPEC_AMX)
// True if the processor has tiles, and the system lets this process use them
// (Documentation/arch/x86/xstate.rst of Linux).
bool has_amx() {
  constexpr unsigned kTiles = 1U << 24, kInt8 = 1U << 25;
  constexpr int kRequest = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0 && (d & kInt8) != 0 &&
         syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}
#endif

// The kernels that this processor can run, the best first; the rest null.
std::array<const Kernels*, 4> find() {
  std::array<const Kernels*, 4> out{};
  std::size_t n = 0;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
#if defined(CODESPEC_AMX)
    if (has_amx()) out[n++] = &kAmx;
#endif
    out[n++] = &kAvx512Vnni;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) {
#if defined(CODESPEC_AVX_VNNI)
    if (has_avx_vnni()) out[n++] = &kAvxVnni;
#endif
    out[n++] = &kAvx2;
  }
  return out;
}

const std::array<const Kernels*, 4> found = find();

// The kind of a type of weights; null where the kernels do not multiply it, or without kernels.
const Kind* kind_of(const Kernels* kernels, int type) {
  if (kernels == nullptr) return nullptr;
  for (const Kind& kind : kKinds) {
    if (kind.type == type) return &kind;
  }
  return nullptr;
}

// The expert whose product follows that of `expert`, by number; -1 after the last, and with too
// many tokens for a prefetch to pay.
std::int64_t expert_after(const Tensor& out, std::int64_t expert) {
  constexpr std::int64_t kFew = 16;
  const Tensor& chosen = *out.sources[2];
  std::int64_t next = -1;
  if (chosen.sizes[1] > kFew) return next;
  for (std::int64_t token = 0; token < chosen.sizes[1]; ++token) {
    for (std::int64_t slot = 0; slot < chosen.sizes[0]; ++slot) {
      std::int32_t other;
      std::memcpy(&other,
                  chosen.data + static_cast<std::size_t>(token) * chosen.strides[1] +
                      static_cast<std::size_t>(slot) * chosen.strides[0],
                  sizeof other);
      if (other > expert && (next < 0 || other < next)) next = other;
    }
  }
  return next;
}

// True if the kernels can compute the attention `out`: no sinks, no ALiBi, no soft cap; types and
// layouts as llama.cpp chooses them for a model in one stream.
bool is_plain(const Tensor& out) {
  const Tensor *const queries = out.sources[0], *const keys = out.sources[1],
                      *const values = out.sources[2], *const mask = out.sources[3],
                      *const sinks = out.sources[4];
  constexpr std::int64_t kWhole = 16;  // see Attention
  const std::int64_t length = keys->sizes[0], n_keys = keys->sizes[1];
  float cap, bias;
  std::memcpy(&bias, &out.options[1], sizeof bias);
  std::memcpy(&cap, &out.options[2], sizeof cap);
  return sinks == nullptr && bias == 0 && cap == 0 && out.type == kF32 && queries->type == kF32 &&
         keys->type == kF16 && values->type == kF16 && length == values->sizes[0] &&
         length % kWhole == 0 && n_keys % kWhole == 0 && queries->sizes[3] == 1 &&
         keys->sizes[2] == values->sizes[2] && queries->sizes[2] % keys->sizes[2] == 0 &&
         queries->strides[0] == 4 && keys->strides[0] == 2 && values->strides[0] == 2 &&
         (mask == nullptr || (mask->type == kF16 && mask->strides[0] == 2 && mask->sizes[2] == 1));
}

Attention attention(const ComputeParams& params, const Tensor& out) {
  const Tensor &queries = *out.sources[0], &keys = *out.sources[1], &values = *out.sources[2];
  const Tensor* const mask = out.sources[3];
  const auto stride = [](const Tensor& t, int i) {
    return static_cast<std::int64_t>(t.strides[i]);
  };
  float scale;
  std::memcpy(&scale, &out.options[0], sizeof scale);
  return {
      .thread = params.ith,
      .n_threads = params.nth,
      .length = keys.sizes[0],
      .n_heads = queries.sizes[2],
      .n_key_heads = keys.sizes[2],
      .n_queries = queries.sizes[1],
      .n_keys = keys.sizes[1],
      .scale = scale,
      .queries = queries.data,
      .query_stride = stride(queries, 1),
      .query_head_stride = stride(queries, 2),
      .keys = keys.data,
      .key_stride = stride(keys, 1),
      .key_head_stride = stride(keys, 2),
      .values = values.data,
      .value_stride = stride(values, 1),
      .value_head_stride = stride(values, 2),
      .mask = mask == nullptr ? nullptr : mask->data,
      .mask_stride = mask == nullptr ? 0 : stride(*mask, 1),
      .out = reinterpret_cast<float*>(out.data),
      .out_stride = stride(out, 2) / 4,
      .out_head_stride = stride(out, 1) / 4,
  };
}

struct Free {
  void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kLine}); }
};

}  // namespace

const std::int64_t kNear = [] {
  constexpr std::int64_t kUsual = 32 << 10;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10) return kUsual + (8 << 10);
#endif
  return kUsual;
}();

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

// Names of the kernels' instruction sets that this processor has, the best first; null after the
// last.
CODESPEC_API const char* codespec_kernels_name(std::size_t i) {
  const bool is_there = i < codespec::found.size() && codespec::found[i] != nullptr;
  return is_there ? codespec::found[i]->name : nullptr;
}

// Sets the backend's own functions to pass calls on to; null where it has none.
CODESPEC_API void codespec_kernels_connect(codespec::Sgemm sgemm, codespec::Tiled tiled,
                                           codespec::Expert expert, codespec::Attend attend) {
  codespec::next = sgemm;
  codespec::next_tiled = tiled;
  codespec::next_expert = expert;
  codespec::next_attend = attend;
}

// Uses the kernels of that name from now on; none for an unknown name.
CODESPEC_API void codespec_kernels_use(const char* name) {
  codespec::in_use = nullptr;
  for (const codespec::Kernels* kernels : codespec::found) {
    if (kernels != nullptr && std::strcmp(kernels->name, name) == 0) codespec::in_use = kernels;
  }
}

// Number of products and attentions computed by the kernels.
CODESPEC_API std::int64_t codespec_kernels_count() { return codespec::n_products; }
CODESPEC_API std::int64_t codespec_kernels_count_attentions() { return codespec::n_attentions; }

// See weights.h.
CODESPEC_API void* codespec_kernels_weights(codespec::BufferType* theirs,
                                            std::size_t (*size_of)(const codespec::Tensor*)) {
  return codespec::weights_buffer(theirs, size_of);
}

CODESPEC_API std::int64_t codespec_kernels_count_ordered() { return codespec::n_ordered(); }

CODESPEC_API bool llamafile_sgemm(const codespec::ComputeParams* params, std::int64_t m,
                                  std::int64_t n, std::int64_t k, const void* a, std::int64_t lda,
                                  const void* b, std::int64_t ldb, void* c, std::int64_t ldc,
                                  int a_type, int b_type, int c_type) {
  using namespace codespec;
  const Kernels* const kernels = in_use.load(std::memory_order_relaxed);
  const Kind* const kind = kind_of(kernels, a_type);
  if (kind != nullptr && b_type == kind->state_type && c_type == kF32 &&
      (m >= kernels->min_rows || kind->is_float())) {
    if (params->ith == 0) n_products.fetch_add(1, std::memory_order_relaxed);
    const auto* const weights = static_cast<const std::byte*>(a);
    (kernels->*kind->kernel)(
        {params->ith, params->nth, m, n, k, weights, lda * kind->bytes,
         static_cast<const std::byte*>(b), ldb * kind->state_bytes, static_cast<float*>(c), ldc,
         a_type == kQ8_0 && lda == k ? ordered(weights, m, k, *kernels) : nullptr});
    return true;
  }
  const Sgemm original = next.load(std::memory_order_relaxed);
  return original != nullptr &&
         original(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type);
}

// llama.cpp calls this first, for products of K-quants with eight columns and more. Declines those
// of our types: a column's result must not depend on the number of columns.
CODESPEC_API bool ggml_compute_forward_mul_mat_tiled(const codespec::ComputeParams* params,
                                                     codespec::Tensor* product) {
  using namespace codespec;
  if (kind_of(in_use.load(std::memory_order_relaxed), product->sources[0]->type) != nullptr) {
    return false;
  }
  const Tiled original = next_tiled.load(std::memory_order_relaxed);
  return original != nullptr && original(params, product);
}

// Computes the product of one expert's weights, on all threads; the activations are quantised
// already. `places` has the slot and the token of each of its n_columns.
CODESPEC_API bool ggml_compute_forward_mul_mat_id_tiled(const codespec::ComputeParams* params,
                                                        codespec::Tensor* out, std::int64_t expert,
                                                        std::int64_t n_columns,
                                                        const codespec::Place* places,
                                                        char* their_scratch) {
  using namespace codespec;
  const Kernels* const kernels = in_use.load(std::memory_order_relaxed);
  const Tensor &weights = *out->sources[0], &states = *out->sources[1];
  const Kind* const kind = kind_of(kernels, weights.type);
  if (kind == nullptr || states.type != kF32 || weights.sizes[1] < kernels->min_rows) {
    const Expert original = next_expert.load(std::memory_order_relaxed);
    return original != nullptr && original(params, out, expert, n_columns, places, their_scratch);
  }
  if (params->ith == 0) n_products.fetch_add(1, std::memory_order_relaxed);
  const auto floats = [&](int i) { return static_cast<std::int64_t>(out->strides[i] / 4); };
  const auto weights_of = [&](std::int64_t i) {
    return weights.data + static_cast<std::size_t>(i) * weights.strides[2];
  };
  const std::int64_t n_blocks = weights.sizes[0] / kind->numbers, next = expert_after(*out, expert);
  multiply_expert(
      kernels->*kind->kernel, kernels->min_rows,
      {params->ith, params->nth, weights.sizes[1], n_columns, n_blocks, weights_of(expert),
       static_cast<std::int64_t>(weights.strides[1]), params->states, n_blocks * kind->state_bytes,
       reinterpret_cast<float*>(out->data), 0},
      {n_columns, places, states.sizes[1], floats(1), floats(2),
       next < 0 ? nullptr : weights_of(next)});
  return true;
}

CODESPEC_API void ggml_compute_forward_flash_attn_ext(const codespec::ComputeParams* params,
                                                      codespec::Tensor* out) {
  using namespace codespec;
  const Kernels* const kernels = in_use.load(std::memory_order_relaxed);
  if (kernels == nullptr || !is_plain(*out)) {
    next_attend.load(std::memory_order_relaxed)(params, out);
    return;
  }
  if (params->ith == 0) n_attentions.fetch_add(1, std::memory_order_relaxed);
  kernels->attend(attention(*params, *out));
}
