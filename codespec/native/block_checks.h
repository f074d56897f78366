// Which blocks of a segment file were compared with their checksums.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "segment_format.h"

namespace codespec {

// A block of the file differs from its checksum, so its content must not be used.
struct DamagedSegment : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Blocks lie on a grid of the whole file; the header and the checksums themselves are in none. All
// methods may run at the same time.
class BlockChecks {
 public:
  enum State : int { kUnknown, kSound, kDamaged };

  BlockChecks(std::span<const std::byte> file, const Layout& layout);

  // kSound once every block was compared and found sound, kDamaged once one was not.
  State state() const { return state_.load(std::memory_order_relaxed); }

  // True if the eight bytes from here on are as they were written. Compares their block on first
  // use.
  bool is_sound(const void* address) const {
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - file_.data());
    const std::size_t block = offset / kBlockBytes;
    return is_block_sound(block) && (offset % kBlockBytes <= kBlockBytes - 8 ||
                                     block + 1 == n_blocks_ || is_block_sound(block + 1));
  }

  // Compares up to `n` blocks that were not compared yet. Returns true while any are left.
  bool check_some(std::size_t n) const;

  // All damaged blocks, ascending; n_blocks: the checksums themselves. Compares everything.
  std::vector<std::uint64_t> find_damaged(std::uint32_t checksums_crc) const;

 private:
  bool is_block_sound(std::size_t block) const {
    const auto word = checked_[block / 64].load(std::memory_order_relaxed);
    return (word >> block % 64 & 1) != 0 || check(block);
  }
  bool check(std::size_t block) const;
  bool agrees(std::size_t block) const;

  std::span<const std::byte> file_;
  std::size_t begin_, end_;  // of what the blocks cover
  std::size_t n_blocks_;
  std::span<const std::uint32_t> checksums_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> checked_;  // one bit a block, for sound ones
  mutable std::atomic<std::size_t> n_left_;
  mutable std::atomic<std::size_t> next_ = 0;
  mutable std::atomic<State> state_ = kUnknown;
};

// Two guards of reads: for files known to be sound, and with a check on first use.
struct Trusting {
  bool operator()(const void*) const { return true; }
};
struct Checking {
  const BlockChecks& checks;
  bool operator()(const void* address) const { return checks.is_sound(address); }
};

}  // namespace codespec
