// Loaded before the C library (LD_PRELOAD): the n-th call of a kind on a file below the folder
// $FAILING_BELOW fails, does half of its work, or ends the process. A test says which.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Kind {
  kWrite,
  kFwrite,
  kFclose,
  kFsync,
  kRename,
  kMmap,
  kOpen,
  kFopen,
  kUnlink,
  kRead,
  kKinds
};
enum How { kFails, kIsShort, kKills };

bool g_counts = false;
int g_kind = -1, g_left = 0, g_errno = 0, g_how = kFails;
int g_seen[kKinds];

bool is_below(const char* path) {
  const char* folder = std::getenv("FAILING_BELOW");
  return folder != nullptr && path != nullptr && std::strstr(path, folder) != nullptr;
}

bool is_below(int fd) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  return is_below(path);
}

template <typename File>
bool fails(Kind kind, File file) {
  if (!g_counts || !is_below(file)) return false;
  ++g_seen[kind];
  if (kind != g_kind || --g_left != 0) return false;
  if (g_how == kKills) kill(getpid(), SIGKILL);
  errno = g_errno;
  return true;
}

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define REAL(f) static const auto real_##f = real<decltype(&f)>(#f)

extern "C" {

void failing_arm(int kind, int n, int error, int how) {
  std::memset(g_seen, 0, sizeof g_seen);
  g_kind = kind, g_left = n, g_errno = error, g_how = how, g_counts = true;
}

int failing_seen(int kind) { return g_seen[kind]; }

ssize_t write(int fd, const void* data, size_t n) {
  REAL(write);
  if (!fails(kWrite, fd)) return real_write(fd, data, n);
  return g_how == kIsShort && n > 1 ? real_write(fd, data, n / 2) : -1;
}

size_t fwrite(const void* data, size_t size, size_t n, FILE* file) {
  REAL(fwrite);
  return fails(kFwrite, fileno(file)) ? 0 : real_fwrite(data, size, n, file);
}

int fclose(FILE* file) {
  REAL(fclose);
  const bool is_failing = fails(kFclose, fileno(file));
  const int error = errno;
  const int done = real_fclose(file);
  errno = error;
  return is_failing ? EOF : done;
}

int fsync(int fd) {
  REAL(fsync);
  return fails(kFsync, fd) ? -1 : real_fsync(fd);
}

int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return fails(kRename, to) ? -1 : real_rename(from, to);
}

void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) noexcept {
  REAL(mmap);
  if (fd >= 0 && fails(kMmap, fd)) return MAP_FAILED;
  return real_mmap(at, n, protection, flags, fd, offset);
}

void* mmap64(void* at, size_t n, int protection, int flags, int fd, off64_t offset) noexcept {
  REAL(mmap64);
  if (fd >= 0 && fails(kMmap, fd)) return MAP_FAILED;
  return real_mmap64(at, n, protection, flags, fd, offset);
}

#define OPEN(f)                                                   \
  int f(const char* path, int flags, ...) {                       \
    REAL(f);                                                      \
    va_list rest;                                                 \
    va_start(rest, flags);                                        \
    const mode_t mode = va_arg(rest, mode_t);                     \
    va_end(rest);                                                 \
    return fails(kOpen, path) ? -1 : real_##f(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  return fails(kFopen, path) ? nullptr : real_fopen(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  return fails(kFopen, path) ? nullptr : real_fopen64(path, mode);
}

int unlink(const char* path) noexcept {
  REAL(unlink);
  return fails(kUnlink, path) ? -1 : real_unlink(path);
}

ssize_t read(int fd, void* data, size_t n) {
  REAL(read);
  return fails(kRead, fd) ? -1 : real_read(fd, data, n);
}

}  // extern "C"
