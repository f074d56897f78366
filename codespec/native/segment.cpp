#include "segment.h"

#include <stdexcept>
#include <string>

#include "crc32c.h"

namespace codespec {
namespace {

constexpr std::uint32_t kHintStride = 1 << 12;

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
  throw std::invalid_argument(path.string() + ": " + std::string(why));
}

Header read_header(std::span<const std::byte> file, const std::filesystem::path& path) {
  Header header{};
  if (file.size() < sizeof header) refuse(path, "not a segment file: too short");
  std::memcpy(&header, file.data(), sizeof header);
  if (const auto complaint = header.complaint()) refuse(path, *complaint);
  if (file.size() != Layout(header).file_bytes) refuse(path, "a segment of another size: cut off?");
  return header;
}

}  // namespace

template <typename T>
std::span<const T> Segment::section(std::uint64_t offset, std::uint64_t n) const {
  const auto bytes = file_.bytes().subspan(offset, n * sizeof(T));
  return {reinterpret_cast<const T*>(bytes.data()), n};
}

Segment::Segment(const std::filesystem::path& path)
    : file_(path),
      header_(read_header(file_.bytes(), path)),
      layout_(header_),
      checks_(file_.bytes(), layout_),
      packer_(header_.n_vocab),
      text_(file_.bytes(), layout_),
      positions_(file_.bytes().data() + layout_.positions, layout_.position_bits),
      keys_(section<std::uint64_t>(layout_.keys, layout_.n_keys)),
      doc_starts_(section<std::uint32_t>(layout_.doc_starts, header_.n_docs)) {
  // The checksums of the blocks have one of their own.
  const auto checksums = section<std::uint32_t>(layout_.checksums, layout_.n_blocks);
  if (crc32c(std::as_bytes(checksums)) != header_.checksums_crc) refuse(path, "damaged checksums");
  const auto first_block = layout_.doc_starts / kBlockBytes * kBlockBytes;
  for (std::uint64_t at = first_block; at < layout_.checksums; at += kBlockBytes) {
    checks_.is_sound(file_.bytes().data() + at);
  }
  require_sound();
  // Each document follows the separator that ends the one before it.
  std::uint32_t previous = 0;
  doc_hints_.push_back(0);
  for (std::uint32_t i = 0; i < doc_starts_.size(); ++i) {
    const std::uint32_t start = doc_starts_[i];
    if (start <= previous || start >= layout_.n_text) refuse(path, "documents out of order");
    while (doc_hints_.size() <= start / kHintStride) doc_hints_.push_back(i);
    previous = start;
  }
  doc_hints_.resize(layout_.n_text / kHintStride + 2, static_cast<std::uint32_t>(header_.n_docs));
}

std::vector<std::uint64_t> Segment::verify() const {
  auto damaged = checks_.find_damaged(header_.checksums_crc);
  if (std::memcmp(file_.bytes().data(), &header_, sizeof header_) != 0) {
    damaged.push_back(layout_.n_blocks + 1);
  }
  return damaged;
}

void Segment::require_sound() const {
  if (checks_.state() == BlockChecks::kDamaged) throw DamagedSegment("a block differs");
  if (!file_.is_whole()) throw DamagedSegment("the file was cut short");
}

// The last document that starts at or before `position`, 0 if none does. Documents may be many and
// a draft asks often: the hints leave a search among those of one stretch of the text. The hints
// are our own, so a file that changes under us cannot lead out of doc_starts_.
std::size_t Segment::doc_of(std::uint32_t position) const {
  const std::size_t stretch = position / kHintStride;
  const auto* begin = doc_starts_.data() + doc_hints_[stretch];
  const auto* end = doc_starts_.data() + doc_hints_[stretch + 1];
  const auto* next = std::upper_bound(begin, end, position);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - doc_starts_.data() - 1, 0));
}

Segment::Place Segment::locate(std::int64_t position) const {
  const auto n_text = static_cast<std::int64_t>(layout_.n_text);
  if (header_.n_docs == 0 || position < doc_starts_[0] || position >= n_text) {
    throw std::out_of_range("not a position of this segment");
  }
  const std::size_t doc = doc_of(static_cast<std::uint32_t>(position));
  const Place place{doc, static_cast<std::uint64_t>(position) - doc_starts_[doc]};
  if (!file_.is_whole()) throw std::out_of_range("the file was cut short");
  return place;
}

std::vector<Token> Segment::doc_tokens(std::uint64_t doc) const {
  if (doc >= header_.n_docs) throw std::out_of_range("no such document");
  const std::uint64_t begin = doc_starts_[doc];
  const std::uint64_t next = std::min<std::uint64_t>(
      doc + 1 < header_.n_docs ? doc_starts_[doc + 1] : layout_.n_text, layout_.n_text);
  std::vector<Token> tokens;
  for (std::uint64_t i = begin; i + 1 < next; ++i) {
    checks_.is_sound(text_.address(i));
    tokens.push_back(text_[i]);
  }
  require_sound();
  return tokens;
}

}  // namespace codespec
