#include "segment_build.h"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "crc32c.h"
#include "position_sort.h"
#include "segment_format.h"

namespace codespec {
namespace {

void check(Tokens tokens, std::span<const std::int64_t> doc_starts) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  if (tokens.size() + doc_starts.size() >= UINT32_MAX) {
    throw std::invalid_argument("a segment holds less than 2**32 - 1 tokens and documents");
  }
  if (doc_starts.empty() ? n != 0 : doc_starts[0] != 0) {
    throw std::invalid_argument("the first document must start at token 0");
  }
  if (!std::ranges::is_sorted(doc_starts) || (!doc_starts.empty() && doc_starts.back() > n)) {
    throw std::invalid_argument("documents must start in order and within the tokens");
  }
  if (std::ranges::any_of(tokens, [](Token t) { return t < 0; })) {
    throw std::invalid_argument("token ids must not be negative");
  }
}

// Writes a file section by section and sums up its blocks.
class SegmentWriter {
 public:
  explicit SegmentWriter(const std::filesystem::path& path)
      : path_(path),
#ifdef _WIN32
        file_(_wfopen(path.c_str(), L"wb")) {
#else
        file_(std::fopen(path.c_str(), "wb")) {
#endif
    if (file_ == nullptr) fail();
  }
  ~SegmentWriter() {
    if (file_ != nullptr) std::fclose(file_);
  }
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  void write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail();
    offset_ += bytes.size();
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kBlockBytes - in_block_));
      crc_ = crc32c(part, crc_);
      in_block_ += part.size();
      bytes = bytes.subspan(part.size());
      if (in_block_ == kBlockBytes) end_block();
    }
  }

  void fill_to(std::uint64_t offset) {
    const std::vector<std::byte> zeros(offset - offset_);
    write(zeros);
  }

  // Room for the header; nothing of it counts in its block.
  void skip_header() {
    write(std::vector<std::byte>(sizeof(Header)));
    crc_ = 0;
  }

  void finish(Header header) {
    if (in_block_ > 0) end_block();
    const std::vector<std::uint32_t> checksums = std::move(checksums_);
    write(std::as_bytes(std::span(checksums)));
    header.checksums_crc = crc32c(std::as_bytes(std::span(checksums)));
    header.crc = header.compute_crc();
    if (std::fseek(file_, 0, SEEK_SET) != 0 || std::fwrite(&header, sizeof header, 1, file_) != 1) {
      fail();
    }
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail();
  }

 private:
  void end_block() {
    checksums_.push_back(crc_);
    crc_ = 0;
    in_block_ = 0;
  }

  [[noreturn]] void fail() const {
    throw std::filesystem::filesystem_error("cannot write", path_,
                                            std::error_code(errno, std::generic_category()));
  }

  std::filesystem::path path_;
  std::FILE* file_;
  std::uint64_t offset_ = 0;
  std::vector<std::uint32_t> checksums_;
  std::uint32_t crc_ = 0;
  std::size_t in_block_ = 0;
};

// Writes the section of a BitArray, without the room after it.
template <typename Value>
void write_bits(SegmentWriter& writer, std::span<const Value> values, int bits, Value offset) {
  constexpr std::size_t kChunk = 1 << 14;
  std::vector<std::uint32_t> words;
  std::uint64_t pending = 0;  // fewer than 32 bits
  int n_pending = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
    words.clear();
    for (Value v : values.subspan(begin, std::min(kChunk, values.size() - begin))) {
      pending |= std::uint64_t{static_cast<std::uint32_t>(v) + static_cast<std::uint32_t>(offset)}
                 << n_pending;
      n_pending += bits;
      if (n_pending >= 32) {
        words.push_back(static_cast<std::uint32_t>(pending));
        pending >>= 32;
        n_pending -= 32;
      }
    }
    writer.write(std::as_bytes(std::span(words)));
  }
  writer.write(std::as_bytes(std::span(&pending, 1)).first((n_pending + 7) / 8));
}

}  // namespace

void build_segment(const std::filesystem::path& path, Tokens tokens,
                   std::span<const std::int64_t> doc_starts) {
  check(tokens, doc_starts);

  std::vector<Token> text;
  std::vector<std::uint32_t> starts;
  text.reserve(tokens.size() + doc_starts.size() + 1);
  starts.reserve(doc_starts.size());
  text.push_back(kBreak);
  for (std::size_t i = 0; i < doc_starts.size(); ++i) {
    const auto begin = static_cast<std::size_t>(doc_starts[i]);
    const auto end =
        i + 1 < doc_starts.size() ? static_cast<std::size_t>(doc_starts[i + 1]) : tokens.size();
    starts.push_back(static_cast<std::uint32_t>(text.size()));
    text.insert(text.end(), tokens.begin() + begin, tokens.begin() + end);
    text.push_back(kBreak);
  }

  const std::uint64_t n_vocab =
      tokens.empty() ? 0 : static_cast<std::uint64_t>(*std::ranges::max_element(tokens)) + 1;
  const KeyPacker packer(n_vocab);
  const std::vector<std::uint32_t> positions = sort_positions(text, packer);
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < positions.size(); i += kKeyStride) {
    const Token* nearest = &text[positions[i] - 1];
    keys.push_back(packer.pack([nearest](int d) { return nearest[-d]; }));
  }

  const Header header = Header::make(tokens.size(), doc_starts.size(), positions.size(), n_vocab);
  const Layout layout(header);
  SegmentWriter writer(path);
  writer.skip_header();
  write_bits<Token>(writer, text, layout.token_bits, 1);  // kBreak becomes 0
  writer.fill_to(layout.positions);
  write_bits<std::uint32_t>(writer, positions, layout.position_bits, 0);
  writer.fill_to(layout.keys);
  writer.write(std::as_bytes(std::span(keys)));
  writer.fill_to(layout.doc_starts);
  writer.write(std::as_bytes(std::span(starts)));
  writer.fill_to(layout.checksums);
  writer.finish(header);
}

}  // namespace codespec
