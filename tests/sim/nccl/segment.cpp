// SPDX-License-Identifier: Apache-2.0
#include "segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace tessera::sim::nccl {
namespace {

/// What a unique id holds.
struct Address {
  char magic[8];
  std::int32_t pid, fd;
  std::uint64_t cookie[2];
};
constexpr char kMagic[8] = "simnccl";
static_assert(sizeof(Address) <= sizeof(ncclUniqueId));

Address address_in(const ncclUniqueId& id) {
  Address address;
  std::memcpy(&address, id.internal, sizeof(address));
  if (std::memcmp(address.magic, kMagic, sizeof(kMagic)) != 0)
    throw std::runtime_error(
        "the unique id was not made by ncclGetUniqueId, or has not arrived on this rank");
  return address;
}

Segment* map(int fd) {
  void* at = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<Segment*>(at);
}

bool is_segment(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && static_cast<std::size_t>(status.st_size) == sizeof(Segment);
}

using Cookie = std::array<std::uint64_t, 2>;
Cookie cookie_of(const std::uint64_t (&words)[2]) { return {words[0], words[1]}; }

struct Kept {
  std::mutex mutex;
  std::map<Cookie, int> descriptors;
};
Kept& kept() {
  static auto* instance = new Kept;
  return *instance;
}

}  // namespace

SharedSegment SharedSegment::make() {
  const int fd = memfd_create("tessera-sim-nccl", MFD_CLOEXEC);
  Segment* segment = fd >= 0 && ftruncate(fd, sizeof(Segment)) == 0 ? map(fd) : nullptr;
  if (!segment || getrandom(segment->cookie, sizeof(segment->cookie), 0) != sizeof(segment->cookie))
    throw std::runtime_error(
        fmt::format("no shared memory for a communicator: {}", std::strerror(errno)));
  return {fd, segment};
}

SharedSegment SharedSegment::open(const ncclUniqueId& id) {
  const Address address = address_in(id);
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.fd);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  Segment* segment = fd >= 0 && is_segment(fd) ? map(fd) : nullptr;
  if (fd >= 0) close(fd);
  SharedSegment opened(-1, segment);
  if (!segment || std::memcmp(segment->cookie, address.cookie, sizeof(address.cookie)) != 0)
    throw std::runtime_error(
        fmt::format("no communicator begins at this unique id: process {} has ended, or all its "
                    "ranks had joined already",
                    address.pid));
  return opened;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), segment_(std::exchange(other.segment_, nullptr)) {}

SharedSegment::~SharedSegment() {
  if (segment_) munmap(segment_, sizeof(Segment));
  if (fd_ >= 0) close(fd_);
}

ncclUniqueId SharedSegment::id() const {
  Address address{};
  std::memcpy(address.magic, kMagic, sizeof(kMagic));
  address.pid = getpid();
  address.fd = fd_;
  std::memcpy(address.cookie, segment_->cookie, sizeof(address.cookie));
  ncclUniqueId id{};
  std::memcpy(id.internal, &address, sizeof(address));
  return id;
}

void SharedSegment::keep_open() {
  const std::lock_guard lock(kept().mutex);
  kept().descriptors.emplace(cookie_of(segment_->cookie), std::exchange(fd_, -1));
}

void SharedSegment::forget(const ncclUniqueId& id) {
  const Address address = address_in(id);
  const std::lock_guard lock(kept().mutex);
  const auto found = kept().descriptors.find(cookie_of(address.cookie));
  if (found == kept().descriptors.end()) return;
  close(found->second);
  kept().descriptors.erase(found);
}

}  // namespace tessera::sim::nccl
