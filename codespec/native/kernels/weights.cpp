#include "weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace codespec {
namespace {

constexpr std::int64_t kBlock = 32;  // numbers
constexpr std::size_t kBlockBytes = 34;

// Memory for the repacked matrices of one buffer, one behind the other in the order of first use,
// so that a prefetch beyond the end of one is the beginning of the next. In huge pages where the
// system has them: a pass reads more small pages than the TLB holds.
class Room {
 public:
  Room() = default;
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() {
    if (begin_ != nullptr) munmap(begin_, n_bytes_);
  }

  // Reserves so many bytes more; memory is taken as it is written to.
  void expect(std::size_t n) { n_expected_ += n; }
  // Memory for a matrix; null where there is none.
  std::byte* take(std::size_t n) {
    if (begin_ == nullptr) {
      constexpr std::size_t kPage = std::size_t{1} << 21;
      n_bytes_ = n_expected_ + 2 * kPage;
      void* const memory =
          mmap(nullptr, n_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) return nullptr;
      madvise(memory, n_bytes_, MADV_HUGEPAGE);
      begin_ = static_cast<std::byte*>(memory);
      const auto address = reinterpret_cast<std::uintptr_t>(memory);
      n_taken_ = (address + kPage - 1) / kPage * kPage - address;
    }
    if (n > n_bytes_ - n_taken_) return nullptr;
    std::byte* const place = begin_ + n_taken_;
    n_taken_ += n;
    return place;
  }

 private:
  std::byte* begin_ = nullptr;
  std::size_t n_expected_ = 0, n_bytes_ = 0, n_taken_ = 0;
};

struct Matrix {
  std::int64_t n_rows, n_blocks;
  Room* room;
  const std::byte* ordered = nullptr;
  const Kernels* kernels = nullptr;  // that the order belongs to

  // Enough for tiles of any kernels.
  std::size_t n_bytes() const {
    constexpr std::size_t kFew = 8, kMany = 16;  // rows of a tile
    const auto rows = static_cast<std::size_t>(n_rows), blocks = static_cast<std::size_t>(n_blocks);
    const std::size_t n = (rows + kMany) * blocks * kBlockBytes + (rows / kFew + 2) * kLine;
    return (n + kLine - 1) / kLine * kLine;
  }
};

struct State {
  std::shared_mutex mutex;
  std::map<const std::byte*, Matrix> matrices;  // by llama.cpp's address of the weights
  // Range of these addresses: other weights are recognised without the lock, which all threads of
  // all products would take.
  std::atomic<const std::byte*> first{nullptr}, last{nullptr};
  std::map<const Buffer*, Room> rooms;
  BufferType theirs{}, ours{};
  std::size_t (*size_of)(const Tensor*) = nullptr;
  void (*free)(Buffer*) = nullptr;
  decltype(Buffer::set) set = nullptr;
};

void changed(State& s) {
  s.first = s.matrices.empty() ? nullptr : s.matrices.begin()->first;
  s.last = s.matrices.empty() ? nullptr : s.matrices.rbegin()->first;
}

State& state() {
  static auto* const state = new State;  // never freed: models may be freed as the process ends
  return *state;
}

void set(Buffer* buffer, Tensor* t, const void* bytes, std::size_t offset, std::size_t n_bytes) {
  State& s = state();
  s.set(buffer, t, bytes, offset, n_bytes);
  const std::lock_guard lock(s.mutex);
  s.matrices.erase(t->data);
  const std::int64_t n_blocks = t->sizes[0] / kBlock;
  const bool is_whole = offset == 0 && n_bytes == s.size_of(t);
  if (is_whole && t->type == kQ8_0 && t->sizes[2] == 1 && t->sizes[3] == 1 &&
      t->strides[1] == static_cast<std::size_t>(n_blocks) * kBlockBytes) {
    Room& room = s.rooms[buffer];
    const Matrix matrix{t->sizes[1], n_blocks, &room};
    room.expect(matrix.n_bytes());
    s.matrices[t->data] = matrix;
  }
  changed(s);
}

void free(Buffer* buffer) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    const std::byte* const base = buffer->base(buffer);
    s.matrices.erase(s.matrices.lower_bound(base), s.matrices.lower_bound(base + buffer->n_bytes));
    s.rooms.erase(buffer);
    changed(s);
  }
  s.free(buffer);
}

Buffer* allocate(BufferType* type, std::size_t n_bytes) {
  State& s = state();
  Buffer* const buffer = s.theirs.allocate(type, n_bytes);
  if (buffer == nullptr) return nullptr;
  s.free = buffer->free;
  s.set = buffer->set;
  buffer->free = free;
  buffer->set = set;
  return buffer;
}

}  // namespace

BufferType* weights_buffer(BufferType* theirs, std::size_t (*size_of)(const Tensor*)) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.ours.allocate == nullptr) {
    // The functions that the original leaves out confirm the layout of the struct.
    if (theirs->name == nullptr || theirs->allocate == nullptr || theirs->alignment == nullptr ||
        theirs->max_size != nullptr || theirs->size_of != nullptr || theirs->is_host == nullptr) {
      return nullptr;
    }
    s.size_of = size_of;
    s.theirs = s.ours = *theirs;
    s.ours.allocate = allocate;
  }
  return &s.ours;
}

const std::byte* ordered(const std::byte* weights, std::int64_t n_rows, std::int64_t n_blocks,
                         const Kernels& kernels) {
  State& s = state();
  const std::less<const std::byte*> is_before;
  if (is_before(weights, s.first) || is_before(s.last, weights)) return nullptr;
  {
    const std::shared_lock lock(s.mutex);
    const auto found = s.matrices.find(weights);
    if (found == s.matrices.end()) return nullptr;
    const Matrix& m = found->second;
    if (m.n_rows != n_rows || m.n_blocks != n_blocks) return nullptr;
    if (m.kernels != nullptr) return m.kernels == &kernels ? m.ordered : nullptr;
  }
  const std::lock_guard lock(s.mutex);  // the first of the threads that share the product
  Matrix& m = s.matrices.at(weights);
  if (m.kernels == nullptr) {
    m.kernels = &kernels;
    std::byte* const place = m.room->take(m.n_bytes());
    if (place != nullptr) kernels.order(weights, n_rows, n_blocks, place);
    m.ordered = place;
  }
  return m.kernels == &kernels ? m.ordered : nullptr;
}

std::int64_t n_ordered() {
  State& s = state();
  const std::shared_lock lock(s.mutex);
  return std::ranges::count_if(s.matrices, [](const auto& m) { return m.second.ordered; });
}

}  // namespace codespec
