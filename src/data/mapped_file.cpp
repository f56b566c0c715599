// SPDX-License-Identifier: Apache-2.0
#include "mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::data {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: a named pipe in the place of a file must not hang the job.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  map(file.number);
}

MappedFile::MappedFile(const std::filesystem::path& path, int descriptor) : path_(path) {
  map(descriptor);
}

void MappedFile::map(int descriptor) {
  const auto check = [&](bool fine, const char* why) {
    require(fine, ExitCode::data, "cannot read '{}' ({}); check the path and its permissions",
            path_.string(), why);
  };
  check(descriptor >= 0, std::strerror(errno));
  struct stat status {};
  check(::fstat(descriptor, &status) == 0, std::strerror(errno));
  check(S_ISREG(status.st_mode), "it is not a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  check(start != MAP_FAILED, std::strerror(errno));
  bytes_ = {static_cast<const char*>(start), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace tessera::data
