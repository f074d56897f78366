// A file's bytes, mapped read-only and shared with every process that maps them. One that is cut
// short meanwhile, or whose disk fails, ends no process: its bytes are zeros then, see `is_whole`.
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

  // False once reading found a part of it gone: all that was read since then is worth nothing, and
  // what was read shortly before may be.
  bool is_whole() const;

  struct Guard;

 private:
  std::span<const std::byte> bytes_;
  Guard* guard_ = nullptr;  // none where files that are mapped cannot be cut short
};

}  // namespace codespec
