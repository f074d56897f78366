// A file's bytes, mapped read-only and shared with every process that maps them. A file that is
// truncated meanwhile, or whose disk fails, crashes no process: its bytes read as zeros then, see
// `is_whole`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace codespec {

class MappedFile {
 public:
  // Throws std::filesystem::filesystem_error.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  // False once a read found a part of the file gone: all bytes read since then are invalid, and
  // those read shortly before may be.
  bool is_whole() const;

  struct Guard;

 private:
  std::span<const std::byte> bytes_;
  Guard* guard_ = nullptr;  // none where files that are mapped cannot be cut short
};

}  // namespace codespec
