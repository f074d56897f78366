#include "crc32c.h"

#include <array>
#include <cstring>

namespace codespec {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: what byte b, k bytes before the end, adds to the remainder.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? 0x82F63B78u : 0);
    tables[0][b] = r;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t r = tables[k - 1][b];
      tables[k][b] = (r >> 8) ^ tables[0][r & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  while (bytes.size() >= 8) {
    std::uint64_t word;  // little-endian, as segment_format.h demands
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
    bytes = bytes.subspan(8);
  }
  for (std::byte b : bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(b)) & 0xFF];
  }
  return ~crc;
}

}  // namespace codespec
