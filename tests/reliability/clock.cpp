// Loaded before the C library (LD_PRELOAD): the clock on the wall is $CLOCK_IS_OFF seconds off.
#include <dlfcn.h>
#include <sys/time.h>

#include <cstdlib>
#include <ctime>

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto real =
      reinterpret_cast<decltype(&clock_gettime)>(dlsym(RTLD_NEXT, "clock_gettime"));
  static const char* off = std::getenv("CLOCK_IS_OFF");
  const int status = real(clock, now);
  if (status == 0 && off != nullptr && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += std::atoll(off);
  }
  return status;
}

time_t time(time_t* kept) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (kept != nullptr) *kept = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* kept, void*) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *kept = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

}  // extern "C"
