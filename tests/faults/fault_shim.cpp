// SPDX-License-Identifier: Apache-2.0
#include "fault_shim.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string_view>

namespace tessera::faults {
namespace {

/// Signal handlers come through here, too: the launcher's writes to a pipe. A process that is not
/// armed, as the launcher never is, takes no lock and no memory.
std::atomic<bool> armed = false;
std::mutex mutex;
Plan plan;
std::vector<Call> calls;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int descriptor) {
  if (!armed) return {};
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

std::string path_of(int folder, const char* path) {
  if (!armed) return {};
  if (path[0] == '/') return path;
  const std::string base = path_of(folder);
  return base.empty() ? path : base + "/" + path;
}

bool counts(std::string_view path) {
  return path.starts_with(plan.folder) &&
         (path.size() == plan.folder.size() || path[plan.folder.size()] == '/');
}

/// What is to happen to this call; Kind::none for those that do not count.
Kind fate(const char* name, const std::string& path, const std::string& to = {}) {
  if (!armed) return Kind::none;
  const std::lock_guard lock(mutex);
  if (!armed || (!counts(path) && !counts(to))) return Kind::none;
  calls.push_back({name, path, to});
  return static_cast<std::int64_t>(calls.size()) == plan.nth ? plan.kind : Kind::none;
}

template <class Result>
Result ended(Result result) {
  ::kill(::getpid(), SIGKILL);
  return result;
}

/// Makes the call, or does to it what the plan says.
template <class Make>
auto made(Kind fate, const Make& make) {
  if (fate == Kind::fail) {
    errno = plan.error_number;
    return decltype(make())(-1);
  }
  if (fate == Kind::slow) ::usleep(plan.delay_microseconds);
  const auto result = make();
  return fate == Kind::stop ? ended(result) : result;
}

/// The plan of the environment, for programs that know nothing of this library.
void arm_from_environment() {
  const char* text = std::getenv("TESSERA_FAULT");
  if (text == nullptr) return;
  Plan asked;
  std::string ranks;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string key = word.substr(0, word.find('=')), value = word.substr(key.size() + 1);
    if (key == "folder") asked.folder = value;
    if (key == "nth") asked.nth = std::atoll(value.c_str());
    if (key == "ranks") ranks = "," + value + ",";
    if (key == "kind" && value == "stop") asked.kind = Kind::stop;
    if (key == "kind" && value == "short_write") asked.kind = Kind::short_write;
    if (key == "seconds")
      asked.kind = Kind::slow, asked.delay_microseconds = std::atoi(value.c_str()) * 1'000'000u;
    if (key == "error") asked.kind = Kind::fail, asked.error_number = std::atoi(value.c_str());
  }
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr &&
      (ranks.empty() || ranks.find("," + std::string(rank) + ",") != std::string::npos))
    arm(asked);
}

// the last of this file's variables
[[maybe_unused]] const bool asked_at_start = (arm_from_environment(), true);

bool creates(int flags) { return (flags & (O_CREAT | O_TMPFILE)) != 0; }

using Open = int (*)(const char*, int, ...);
using OpenAt = int (*)(int, const char*, int, ...);

int open_through(const char* symbol, const char* path, int flags, mode_t mode) {
  const Kind fate = faults::fate(creates(flags) ? "create" : "open", path_of(AT_FDCWD, path));
  return made(fate, [&] { return next<Open>(symbol)(path, flags, mode); });
}

int open_at_through(const char* symbol, int folder, const char* path, int flags, mode_t mode) {
  const Kind fate = faults::fate(creates(flags) ? "create" : "open", path_of(folder, path));
  return made(fate, [&] { return next<OpenAt>(symbol)(folder, path, flags, mode); });
}

std::size_t taken(Kind fate, std::size_t bytes) {
  return fate == Kind::short_write ? std::max<std::size_t>(1, bytes / 2) : bytes;
}

ssize_t pwrite_through(const char* symbol, int descriptor, const void* data, std::size_t bytes,
                       off64_t offset) {
  const Kind fate = faults::fate("pwrite", path_of(descriptor));
  return made(fate, [&] {
    return next<ssize_t (*)(int, const void*, std::size_t, off64_t)>(symbol)(
        descriptor, data, taken(fate, bytes), offset);
  });
}

int resize_through(const char* symbol, int descriptor, off64_t bytes) {
  return made(fate("ftruncate", path_of(descriptor)),
              [&] { return next<int (*)(int, off64_t)>(symbol)(descriptor, bytes); });
}

int descriptor_call(const char* name, int descriptor) {
  return made(fate(name, path_of(descriptor)),
              [&] { return next<int (*)(int)>(name)(descriptor); });
}

int path_call(const char* name, const char* path) {
  return made(fate(name, path), [&] { return next<int (*)(const char*)>(name)(path); });
}

/// The mode that follows `flags` where a file may be made.
mode_t mode_of(int flags, std::va_list list) { return creates(flags) ? va_arg(list, mode_t) : 0; }

}  // namespace

void arm(const Plan& asked) {
  const std::lock_guard lock(mutex);
  plan = asked;
  calls.clear();
  armed = true;
}

std::vector<Call> disarm() {
  const std::lock_guard lock(mutex);
  armed = false;
  return std::move(calls);
}

}  // namespace tessera::faults

// What stands in libc's place. Names and types are libc's.
using namespace tessera::faults;

#define TESSERA_OPEN(symbol)                                \
  extern "C" int symbol(const char* path, int flags, ...) { \
    std::va_list list;                                      \
    va_start(list, flags);                                  \
    const mode_t mode = mode_of(flags, list);               \
    va_end(list);                                           \
    return open_through(#symbol, path, flags, mode);        \
  }
TESSERA_OPEN(open)
TESSERA_OPEN(open64)
#undef TESSERA_OPEN

#define TESSERA_OPEN_AT(symbol)                                         \
  extern "C" int symbol(int folder, const char* path, int flags, ...) { \
    std::va_list list;                                                  \
    va_start(list, flags);                                              \
    const mode_t mode = mode_of(flags, list);                           \
    va_end(list);                                                       \
    return open_at_through(#symbol, folder, path, flags, mode);         \
  }
TESSERA_OPEN_AT(openat)
TESSERA_OPEN_AT(openat64)
#undef TESSERA_OPEN_AT

extern "C" ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  const Kind fate = tessera::faults::fate("write", path_of(descriptor));
  return made(fate, [&] {
    return next<ssize_t (*)(int, const void*, std::size_t)>("write")(descriptor, data,
                                                                     taken(fate, bytes));
  });
}
extern "C" ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, off_t offset) {
  return pwrite_through("pwrite", descriptor, data, bytes, offset);
}
extern "C" ssize_t pwrite64(int descriptor, const void* data, std::size_t bytes, off64_t offset) {
  return pwrite_through("pwrite64", descriptor, data, bytes, offset);
}
extern "C" int ftruncate(int descriptor, off_t bytes) noexcept {
  return resize_through("ftruncate", descriptor, bytes);
}
extern "C" int ftruncate64(int descriptor, off64_t bytes) noexcept {
  return resize_through("ftruncate64", descriptor, bytes);
}
extern "C" int fsync(int descriptor) { return descriptor_call("fsync", descriptor); }
extern "C" int fdatasync(int descriptor) { return descriptor_call("fdatasync", descriptor); }
extern "C" int close(int descriptor) {
  const Kind fate = tessera::faults::fate("close", path_of(descriptor));
  const int result = next<int (*)(int)>("close")(descriptor);
  return made(fate, [&] { return result; });
}
extern "C" int rename(const char* from, const char* to) noexcept {
  return made(fate("rename", from, to),
              [&] { return next<int (*)(const char*, const char*)>("rename")(from, to); });
}
extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  return made(fate("mkdir", path),
              [&] { return next<int (*)(const char*, mode_t)>("mkdir")(path, mode); });
}
extern "C" int rmdir(const char* path) noexcept { return path_call("rmdir", path); }
extern "C" int unlink(const char* path) noexcept { return path_call("unlink", path); }
extern "C" int remove(const char* path) noexcept { return path_call("remove", path); }
extern "C" int unlinkat(int folder, const char* path, int flags) noexcept {
  return made(fate("unlinkat", path_of(folder, path)), [&] {
    return next<int (*)(int, const char*, int)>("unlinkat")(folder, path, flags);
  });
}
