// A file's bytes, mapped read-only and shared with every process that maps them.
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

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace codespec
