// The frozen index of files: a memory-mapped segment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "block_checks.h"
#include "mapped_file.h"
#include "segment_format.h"
#include "tokens.h"

namespace codespec {

// Sorted positions [lo, hi) whose left contexts share `length` tokens.
struct Interval {
  int length = 0;
  std::size_t lo = 0;
  std::size_t hi = 0;
};

// All methods are const and may run at the same time. Each block of the file is compared with its
// checksum before it is first used; where one differs, or the file is cut short while it is open,
// DamagedSegment is thrown. Even so nothing that is read is trusted, as a file may change later:
// offsets are checked, and a wrong order changes proposals alone.
class Segment {
 public:
  using Dead = std::span<const std::uint8_t>;  // one byte per document, or none at all

  // Throws std::filesystem::filesystem_error when the file cannot be mapped, and
  // std::invalid_argument when it is not an intact segment.
  explicit Segment(const std::filesystem::path& path);

  const Header& header() const { return header_; }
  const Layout& layout() const { return layout_; }

  // Damaged blocks, ascending; n_blocks: the checksums themselves, n_blocks + 1: the header.
  std::vector<std::uint64_t> verify() const;

  // Compares up to `n` more blocks with their checksums. Returns true while any are left; lookups
  // are fastest afterwards.
  bool check_some(std::size_t n) const { return checks_.check_some(n); }
  bool is_checked() const { return checks_.state() == BlockChecks::kSound && file_.is_whole(); }

  Interval match(Tokens context) const;
  Proposal draft(Tokens context, int n_max, int min_length, Dead dead,
                 const Allowed& allowed) const;

  // Documents with this string followed by a token, each once for each place, at most `most`; none
  // where more places have it. Throws DamagedSegment.
  std::vector<std::uint64_t> holders(Tokens string, std::size_t most) const;

  struct Place {
    std::uint64_t doc, offset;
  };
  Place locate(std::int64_t position) const;               // throws std::out_of_range
  std::vector<Token> doc_tokens(std::uint64_t doc) const;  // throws std::out_of_range

 private:
  template <typename T>
  std::span<const T> section(std::uint64_t offset, std::uint64_t n) const;
  std::size_t doc_of(std::uint32_t position) const;
  template <typename Guard>
  Proposal draft(Tokens context, int n_max, int min_length, Dead dead, const Allowed& allowed,
                 Guard guard) const;
  void require_sound() const;

  MappedFile file_;
  Header header_;
  Layout layout_;
  BlockChecks checks_;
  KeyPacker packer_;
  Text text_;
  BitArray positions_;
  std::span<const std::uint64_t> keys_;
  std::span<const std::uint32_t> doc_starts_;
  std::vector<std::uint32_t> doc_hints_;  // documents that start before i * kHintStride
};

}  // namespace codespec
