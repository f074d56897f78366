#include "segment_format.h"

#include "crc32c.h"

namespace codespec {
namespace {

constexpr char kMagic[8] = {'C', 'S', 'P', 'E', 'C', 'S', 'E', 'G'};

constexpr std::uint64_t align(std::uint64_t n) { return (n + 63) / 64 * 64; }

}  // namespace

Header Header::make(std::uint64_t n_tokens, std::uint64_t n_docs, std::uint64_t n_positions,
                    std::uint64_t n_vocab) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.version = kFormatVersion;
  h.token_bits = static_cast<std::uint32_t>(bits_for(n_vocab));
  h.n_tokens = n_tokens;
  h.n_docs = n_docs;
  h.n_positions = n_positions;
  h.n_vocab = n_vocab;
  return h;
}

std::uint32_t Header::compute_crc() const {
  return crc32c(std::as_bytes(std::span(this, 1)).first(offsetof(Header, crc)));
}

std::optional<std::string_view> Header::complaint() const {
  if (std::memcmp(magic, kMagic, sizeof kMagic) != 0) return "not a segment file";
  if (version != kFormatVersion) return "a segment of another version";
  if (crc != compute_crc()) return "damaged header";
  // Whoever can forge the checksum must still not make us read out of the map.
  const bool sane = n_tokens < UINT32_MAX && n_docs < UINT32_MAX &&
                    n_tokens + n_docs < UINT32_MAX && n_positions <= n_tokens &&
                    n_vocab <= std::uint64_t{1} << 31 &&
                    token_bits == static_cast<std::uint32_t>(bits_for(n_vocab));
  if (!sane) return "impossible header";
  return std::nullopt;
}

Layout::Layout(const Header& header) {
  n_text = header.n_tokens + header.n_docs + 1;
  n_keys = (header.n_positions + kKeyStride - 1) / kKeyStride;
  token_bits = bits_for(header.n_vocab);
  position_bits = bits_for(n_text - 1);
  text = sizeof(Header);
  positions = align(text + BitArray::n_bytes(n_text, token_bits));
  keys = align(positions + BitArray::n_bytes(header.n_positions, position_bits));
  doc_starts = align(keys + n_keys * sizeof(std::uint64_t));
  checksums = align(doc_starts + header.n_docs * sizeof(std::uint32_t));
  n_blocks = (checksums + kBlockBytes - 1) / kBlockBytes;
  file_bytes = checksums + n_blocks * sizeof(std::uint32_t);
}

}  // namespace codespec
