// Writes segment files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "tokens.h"

namespace codespec {

// Documents are tokens[doc_starts[i]:doc_starts[i + 1]], the last one to the end.
//
// Throws std::invalid_argument for bad offsets or token ids, and
// std::filesystem::filesystem_error when the file cannot be written.
void build_segment(const std::filesystem::path& path, Tokens tokens,
                   std::span<const std::int64_t> doc_starts);

}  // namespace codespec
