// SPDX-License-Identifier: Apache-2.0
#include "peer_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "sim/sim.hpp"

namespace tessera::sim::nccl {
namespace {

/// Device and inode of a memory file: the same for all who have it open, and never used again while
/// it is mapped.
using File = std::pair<dev_t, ino_t>;

struct Known {
  std::mutex mutex;
  std::map<File, std::weak_ptr<const PeerMemory>> memories;
};
Known& known() {
  static auto* instance = new Known;
  return *instance;
}

class Descriptor {
 public:
  explicit Descriptor(const Member& member)
      : fd_(open(fmt::format("/proc/{}/fd/{}", member.pid, member.arena_fd).c_str(),
                 O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0)
      throw std::runtime_error(fmt::format("the device memory of process {} cannot be opened: {}",
                                           member.pid, std::strerror(errno)));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  File file() const {
    struct stat status {};
    fstat(fd_, &status);
    return {status.st_dev, status.st_ino};
  }

 private:
  int fd_;
};

const std::byte* map(const Descriptor& descriptor, const Member& member) {
  void* at =
      mmap(nullptr, member.arena_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor.get(), 0);
  if (at == MAP_FAILED)
    throw std::runtime_error(fmt::format("the device memory of process {} cannot be mapped: {}",
                                         member.pid, std::strerror(errno)));
  return static_cast<const std::byte*>(at);
}

}  // namespace

std::shared_ptr<const PeerMemory> PeerMemory::of(const Member& member) {
  if (member.pid == getpid())
    return std::shared_ptr<const PeerMemory>(new PeerMemory(arena().base, 0));
  const Descriptor descriptor(member);
  const std::lock_guard lock(known().mutex);
  std::weak_ptr<const PeerMemory>& entry = known().memories[descriptor.file()];
  auto memory = entry.lock();
  if (!memory) {
    memory = std::shared_ptr<const PeerMemory>(
        new PeerMemory(map(descriptor, member), member.arena_bytes));
    entry = memory;
  }
  return memory;
}

PeerMemory::~PeerMemory() {
  if (mapped_ > 0) munmap(const_cast<std::byte*>(base_), mapped_);
}

std::uint64_t offset_of(const void* data) {
  return data ? static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - arena().base) : 0;
}

}  // namespace tessera::sim::nccl
