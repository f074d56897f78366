// Layouts of ggml's structs, as far as the kernels read them (ggml.h, ggml-backend-impl.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace codespec {

constexpr int kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7, kQ8_0 = 8, kQ8_1 = 9,
              kQ2_K = 10, kQ3_K = 11, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kQ8_K = 15, kIQ4_NL = 20,
              kIQ4_XS = 23, kBF16 = 30, kMXFP4 = 39;

struct ComputeParams {
  int ith, nth;
  std::size_t n_bytes;
  // Work memory that the threads share. It begins with a product's activations, where those had to
  // be quantised to the type that its weights are multiplied with.
  const std::byte* states;
};

struct Buffer;

struct Tensor {
  int type;
  Buffer* buffer;
  std::int64_t sizes[4];   // numbers of each dimension
  std::size_t strides[4];  // in bytes
  int operation;
  std::int32_t options[16];
  std::int32_t flags;
  const Tensor* sources[10];
  const Tensor* whole;
  std::size_t place;
  std::byte* data;
};

struct BufferType {
  const char* (*name)(BufferType*);
  Buffer* (*allocate)(BufferType*, std::size_t n_bytes);
  std::size_t (*alignment)(BufferType*);
  std::size_t (*max_size)(BufferType*);
  std::size_t (*size_of)(BufferType*, const Tensor*);
  bool (*is_host)(BufferType*);
  void* device;
  void* context;
};

struct Buffer {
  void (*free)(Buffer*);
  std::byte* (*base)(Buffer*);
  void (*init)();
  void (*fill)();
  void (*set)(Buffer*, Tensor*, const void* bytes, std::size_t offset, std::size_t n_bytes);
  void (*others[6])();
  BufferType* type;
  void* context;
  std::size_t n_bytes;
};

}  // namespace codespec
