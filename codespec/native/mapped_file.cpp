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

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#endif

namespace codespec {

#ifdef _WIN32

struct MappedFile::Guard {};

#else

// A mapping as the handler of the signal knows it. None is ever freed, as a handler may look at any
// time; those of files that were closed are used again. begin: 0 where it is free.
struct MappedFile::Guard {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::atomic<bool> is_lost = false;
  Guard* next = nullptr;
};

#endif

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

// Such a file can neither be cut short nor written to.
MappedFile::Guard* guard(std::span<const std::byte>) { return nullptr; }
void release(MappedFile::Guard*) {}
bool is_lost(const MappedFile::Guard*) { return false; }

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

using Guard = MappedFile::Guard;

std::mutex g_mutex;  // of who maps and unmaps; the handler takes none
std::atomic<Guard*> g_guards = nullptr;
struct sigaction g_previous;
std::atomic<bool> g_was_passed_on = false;

// The page that was read is not in the file any more. With zeros in place of all of the file, what
// reads it goes on, as it trusts nothing that it reads. As X.Org and libwayland do it: mmap is no
// more than a system call.
void on_bus_error(int number, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard* guard = g_guards.load(); guard != nullptr; guard = guard->next) {
    const std::uintptr_t begin = guard->begin.load(), end = guard->end.load();
    if (address < begin || address >= end) continue;
    if (mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
      break;
    }
    guard->is_lost.store(true);
    errno = error;
    return;
  }
  // None of ours: whoever was here before. Two that pass it on to each other would never end.
  if (g_was_passed_on.exchange(true)) {
    signal(number, SIG_DFL);
  } else {
    sigaction(number, &g_previous, nullptr);
  }
  raise(number);
  errno = error;
}

void require_handler() {
  struct sigaction now;
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error) return;
  g_previous = now;
  struct sigaction ours{};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

Guard* guard(std::span<const std::byte> bytes) {
  if (bytes.empty()) return nullptr;
  const std::scoped_lock lock(g_mutex);
  require_handler();
  Guard* guard = g_guards.load();
  while (guard != nullptr && guard->begin.load() != 0) guard = guard->next;
  if (guard == nullptr) {
    guard = new Guard;
    guard->next = g_guards.load();
    g_guards.store(guard);
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  guard->is_lost.store(false);
  guard->end.store(begin + bytes.size());
  guard->begin.store(begin);
  return guard;
}

void release(Guard* guard) {
  if (guard == nullptr) return;
  const std::scoped_lock lock(g_mutex);
  guard->begin.store(0);
  guard->end.store(0);
}

bool is_lost(const Guard* guard) { return guard != nullptr && guard->is_lost.load(); }

#endif

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path)
    : bytes_(map(path)), guard_(guard(bytes_)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), guard_(std::exchange(other.guard_, nullptr)) {}

MappedFile::~MappedFile() {
  release(guard_);  // first: the address may be somebody else's afterwards
  if (!bytes_.empty()) unmap(bytes_);
}

bool MappedFile::is_whole() const { return !is_lost(guard_); }

}  // namespace codespec
