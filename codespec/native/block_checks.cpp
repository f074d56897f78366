#include "block_checks.h"

#include <algorithm>

#include "crc32c.h"

namespace codespec {

BlockChecks::BlockChecks(std::span<const std::byte> file, const Layout& layout)
    : file_(file),
      begin_(layout.text),
      end_(layout.checksums),
      n_blocks_(layout.n_blocks),
      checksums_(reinterpret_cast<const std::uint32_t*>(file.data() + layout.checksums), n_blocks_),
      checked_(std::make_unique<std::atomic<std::uint64_t>[]>(n_blocks_ / 64 + 1)),
      n_left_(n_blocks_) {}

bool BlockChecks::agrees(std::size_t block) const {
  const std::size_t first = std::max(begin_, block * kBlockBytes);
  const std::size_t last = std::min(end_, (block + 1) * kBlockBytes);
  return crc32c(file_.subspan(first, last - first)) == checksums_[block];
}

bool BlockChecks::check(std::size_t block) const {
  if (block >= n_blocks_) return false;
  if (!agrees(block)) {
    state_.store(kDamaged, std::memory_order_relaxed);
    return false;
  }
  const std::uint64_t bit = std::uint64_t{1} << block % 64;
  const bool is_new = (checked_[block / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  if (is_new && n_left_.fetch_sub(1, std::memory_order_relaxed) == 1) {
    State expected = kUnknown;
    state_.compare_exchange_strong(expected, kSound, std::memory_order_relaxed);
  }
  return true;
}

bool BlockChecks::check_some(std::size_t n) const {
  const std::size_t first = next_.fetch_add(n, std::memory_order_relaxed);
  for (std::size_t i = first; i < std::min(first + n, n_blocks_); ++i) is_block_sound(i);
  return state() == kUnknown && first + n < n_blocks_;
}

std::vector<std::uint64_t> BlockChecks::find_damaged(std::uint32_t checksums_crc) const {
  std::vector<std::uint64_t> damaged;
  for (std::size_t i = 0; i < n_blocks_; ++i) {
    if (!agrees(i)) damaged.push_back(i);
  }
  if (crc32c(std::as_bytes(checksums_)) != checksums_crc) damaged.push_back(n_blocks_);
  return damaged;
}

}  // namespace codespec
