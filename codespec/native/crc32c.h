// CRC-32C (Castagnoli): finds every error within 32 adjacent bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace codespec {

// The checksum of `bytes` appended to data whose checksum is `crc` (0 for none). About 2 GB/s.
// Source: RFC 3720, appendix B.4; slicing by 8: Kounavis and Berry 2005, A systematic approach to
// building high performance software-based CRC generators.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace codespec
