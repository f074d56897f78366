// The format of segment files: sections, packed tokens and keys.
//
//   Header       128 bytes, checksum in it
//   text         BitArray of id + 1; a separator, 0, before every document and at the end
//   positions    BitArray of the offsets in the text that have a left context, in their order
//   keys         u64, packed context of every kKeyStride-th position: the root of the search
//   doc_starts   u32, offset in the text of the first token of each document
//   checksums    u32, CRC-32C of what each block of 4 KiB of the file holds of these sections
//
// Sections start at multiples of 64 bytes, filled with zeros. All numbers are little-endian.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "tokens.h"

namespace codespec {

static_assert(std::endian::native == std::endian::little, "segments are little-endian");

inline constexpr std::uint32_t kFormatVersion = 2;
// A page, so that checking a block loads no page that is not read anyway.
inline constexpr std::size_t kBlockBytes = std::size_t{1} << 12;
inline constexpr std::size_t kKeyStride = 128;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t token_bits;
  std::uint64_t n_tokens;
  std::uint64_t n_docs;
  std::uint64_t n_positions;
  std::uint64_t n_vocab;  // largest id + 1, 0 without tokens
  std::uint32_t checksums_crc;
  std::uint8_t reserved[72];
  std::uint32_t crc;  // of all bytes before

  static Header make(std::uint64_t n_tokens, std::uint64_t n_docs, std::uint64_t n_positions,
                     std::uint64_t n_vocab);
  std::uint32_t compute_crc() const;
  // The reason why this is no header of this version; empty for a sound one.
  std::optional<std::string_view> complaint() const;
};
static_assert(sizeof(Header) == 128 && offsetof(Header, crc) == 124);

// Offsets of sections in bytes, a function of the header's counts; for a sound header alone.
struct Layout {
  std::uint64_t n_text, n_keys, n_blocks;
  int token_bits, position_bits;
  std::uint64_t text, positions, keys, doc_starts, checksums, file_bytes;

  explicit Layout(const Header& header);
};

// Number of bits that hold 0 to n.
constexpr int bits_for(std::uint64_t n) { return std::max(1, static_cast<int>(std::bit_width(n))); }

// Integers of 1 to 32 bits each, end to end.
class BitArray {
 public:
  BitArray(const std::byte* data, int bits) : data_(data), bits_(static_cast<unsigned>(bits)) {}

  std::uint32_t operator[](std::size_t i) const {
    const std::size_t bit = i * bits_;
    std::uint64_t word;
    std::memcpy(&word, data_ + bit / 8, sizeof word);
    return static_cast<std::uint32_t>(word >> bit % 8 & ((std::uint64_t{1} << bits_) - 1));
  }

  // Offset of the eight bytes that a read of the i-th integer touches.
  const std::byte* address(std::size_t i) const { return data_ + i * bits_ / 8; }
  void prefetch(std::size_t i) const { codespec::prefetch(address(i)); }

  // Bytes for n integers and the reads beyond them.
  static constexpr std::uint64_t n_bytes(std::uint64_t n, int bits) {
    return (n * static_cast<unsigned>(bits) + 7) / 8 + sizeof(std::uint64_t);
  }

 private:
  const std::byte* data_;
  unsigned bits_;
};

// The text section as tokens; separators read as kBreak.
class Text {
 public:
  Text(std::span<const std::byte> file, const Layout& layout)
      : cells_(file.data() + layout.text, layout.token_bits),
        size_(static_cast<std::uint32_t>(layout.n_text)) {}

  std::uint32_t size() const { return size_; }
  Token operator[](std::size_t i) const { return static_cast<Token>(cells_[i] - 1); }
  const std::byte* address(std::size_t i) const { return cells_.address(i); }
  void prefetch(std::size_t i) const { cells_.prefetch(i); }

 private:
  BitArray cells_;
  std::uint32_t size_;
};

// Packs stretches of left contexts into integers that sort as they do: as many tokens as fit 64
// bits, the nearest first, 0 for the end of the context.
class KeyPacker {
 public:
  explicit KeyPacker(std::uint64_t n_vocab) : bits_(bits_for(n_vocab)), width_(64 / bits_) {}

  int width() const { return width_; }  // tokens in a key

  // token(d) is the d-th token to the left, kBreak from the end of the context on.
  template <typename TokenAt>
  std::uint64_t pack(TokenAt token, int depth = 0) const {
    std::uint64_t key = 0;
    bool ended = false;
    for (int i = 0; i < width_; ++i) {
      const Token t = ended || depth + i >= kMaxDepth ? kBreak : token(depth + i);
      ended = t == kBreak;
      key = key << bits_ | static_cast<std::uint64_t>(std::int64_t{t} + 1);
    }
    return key;
  }

  // The bits of a key after its first `n` tokens, 1 to width().
  std::uint64_t rest(int n) const { return (std::uint64_t{1} << (width_ - n) * bits_) - 1; }

  // True if a key holds its whole context: then equal keys are equal contexts.
  bool ended(std::uint64_t key) const { return (key & ((std::uint64_t{1} << bits_) - 1)) == 0; }

 private:
  int bits_;
  int width_;
};

}  // namespace codespec
