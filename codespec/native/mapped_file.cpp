#include "mapped_file.h"

#include <system_error>
#include <utility>

#ifdef _WIN32
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace codespec {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int code) {
  throw std::filesystem::filesystem_error("cannot map", path,
                                          std::error_code(code, std::system_category()));
}

#ifdef _WIN32

struct Handle {
  HANDLE value;
  ~Handle() {
    if (value != nullptr && value != INVALID_HANDLE_VALUE) CloseHandle(value);
  }
};

std::span<const std::byte> map(const std::filesystem::path& path) {
  const Handle file{CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr)};
  LARGE_INTEGER size;
  if (file.value == INVALID_HANDLE_VALUE || !GetFileSizeEx(file.value, &size)) {
    fail(path, static_cast<int>(GetLastError()));
  }
  if (size.QuadPart == 0) return {};
  const Handle mapping{CreateFileMappingW(file.value, nullptr, PAGE_READONLY, 0, 0, nullptr)};
  const void* view =
      mapping.value == nullptr ? nullptr : MapViewOfFile(mapping.value, FILE_MAP_READ, 0, 0, 0);
  if (view == nullptr) fail(path, static_cast<int>(GetLastError()));
  return {static_cast<const std::byte*>(view), static_cast<std::size_t>(size.QuadPart)};
}

void unmap(std::span<const std::byte> bytes) { UnmapViewOfFile(bytes.data()); }

#else

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
};

std::span<const std::byte> map(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status;
  if (file.value < 0 || fstat(file.value, &status) != 0) fail(path, errno);
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  if (status.st_size == 0) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  void* view = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.value, 0);
  if (view == MAP_FAILED) fail(path, errno);
  return {static_cast<const std::byte*>(view), size};
}

void unmap(std::span<const std::byte> bytes) {
  munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

#endif

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : bytes_(map(path)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) unmap(bytes_);
}

}  // namespace codespec
