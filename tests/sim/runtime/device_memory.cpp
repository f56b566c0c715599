// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "guard.hpp"

namespace tessera::cudart {
namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

[[noreturn]] void fail(const char* call, std::size_t bytes) {
  std::fprintf(stderr, "tessera-sim: %s of %zu bytes of device memory: %s\n", call, bytes,
               std::strerror(errno));
  std::abort();
}

/// A child of fork() has no device, and core dumps would hold all of the address space.
sim::Arena map_arena(std::size_t bytes) {
  const int fd = memfd_create("tessera-sim-device-memory", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail("memfd_create", bytes);
  void* base = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) fail("mmap", bytes);
  madvise(base, bytes, MADV_DONTDUMP);
  madvise(base, bytes, MADV_DONTFORK);
  return {fd, static_cast<std::byte*>(base), bytes};
}

}  // namespace

DeviceMemory& DeviceMemory::get() {
  static DeviceMemory* const instance = new DeviceMemory;  // outlives every static object
  return *instance;
}

DeviceMemory::DeviceMemory()
    : part_bytes_(2 * whole_pages(sim::settings().memory_bytes) + (std::size_t{64} << 20)) {
  const auto devices = static_cast<std::size_t>(sim::settings().devices);
  arena_ = map_arena(devices * part_bytes_);
  parts_.resize(devices);
  for (std::size_t d = 0; d < devices; ++d) parts_[d].begin = arena_.base + d * part_bytes_;
  report_faults();
}

void* DeviceMemory::allocate(int device, std::size_t bytes) {
  bytes = whole_pages(bytes);
  std::byte* place = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Part& part = parts_[static_cast<std::size_t>(device)];
    if (bytes > sim::settings().memory_bytes - part.used) return nullptr;
    place = find_place(part, bytes);
    if (place == nullptr) return nullptr;
    part.allocations[place] = bytes;
    part.used += bytes;
    part.next = static_cast<std::size_t>(place - part.begin) + bytes;
    if (guard() != Guard::process || open_threads_ > 0) grant(place, bytes);
  }
  const sim::DeviceMemoryOpen open;
  std::memset(place, 0xFF, bytes);
  return place;
}

/// Goes round, so that an address is not soon used again.
std::byte* DeviceMemory::find_place(Part& part, std::size_t bytes) const {
  std::byte* const place = find_place(part, bytes, part.begin + part.next);
  return place != nullptr ? place : find_place(part, bytes, part.begin);
}

std::byte* DeviceMemory::find_place(Part& part, std::size_t bytes, std::byte* from) const {
  std::byte* place = from + page_bytes;
  for (auto next = part.allocations.lower_bound(from); next != part.allocations.end(); ++next) {
    if (next->first >= place + bytes + page_bytes) return place;
    place = next->first + next->second + page_bytes;
  }
  return place + bytes <= part.begin + part_bytes_ ? place : nullptr;
}

bool DeviceMemory::free(void* data) {
  if (!sim::is_device_pointer(data)) return false;
  const std::lock_guard lock(mutex_);
  Part& part = part_of(data);
  const auto found = part.allocations.find(static_cast<std::byte*>(data));
  if (found == part.allocations.end()) return false;
  revoke(found->first, found->second);
  fallocate(arena_.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, found->first - arena_.base,
            static_cast<off_t>(found->second));
  part.used -= found->second;
  part.allocations.erase(found);
  return true;
}

Allocation DeviceMemory::find_locked(const void* address) {
  const Part& part = part_of(address);
  const auto* byte = static_cast<const std::byte*>(address);
  const auto next = part.allocations.upper_bound(const_cast<std::byte*>(byte));
  if (next == part.allocations.begin()) return {};
  const auto around = std::prev(next);
  if (around->first + around->second <= byte) return {};
  return {around->first, around->second, device_of(address)};
}

Allocation DeviceMemory::find(const void* address) {
  if (!sim::is_device_pointer(address)) return {};
  const std::lock_guard lock(mutex_);
  return find_locked(address);
}

Allocation DeviceMemory::find_in_handler(const void* address) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? find_locked(address) : Allocation{};
}

void DeviceMemory::for_all(void (*protect)(std::byte*, std::size_t)) const {
  for (const Part& part : parts_)
    for (const auto& [begin, bytes] : part.allocations) protect(begin, bytes);
}

void DeviceMemory::open() {
  const std::lock_guard lock(mutex_);
  if (open_threads_++ == 0) for_all(grant);
}

void DeviceMemory::close() {
  const std::lock_guard lock(mutex_);
  if (--open_threads_ == 0) for_all(revoke);
}

std::size_t DeviceMemory::free_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return sim::settings().memory_bytes - parts_[static_cast<std::size_t>(device)].used;
}

}  // namespace tessera::cudart

namespace tessera::sim {

Arena arena() { return cudart::DeviceMemory::get().arena(); }

bool is_device_pointer(const void* pointer) {
  const Arena all = arena();
  const auto* byte = static_cast<const std::byte*>(pointer);
  return byte >= all.base && byte < all.base + all.bytes;
}

}  // namespace tessera::sim
