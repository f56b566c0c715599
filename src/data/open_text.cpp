// SPDX-License-Identifier: Apache-2.0
#include "open_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tessera/base/error.hpp"
#include "unpack.hpp"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

fs::path nearest_folder(fs::path folder) {
  std::error_code problem;
  if (folder.empty()) return fs::temp_directory_path();
  while (!fs::is_directory(folder, problem) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// A file without a name: it vanishes when it is closed, however the program ends.
class Spool {
 public:
  Spool(const fs::path& text, const fs::path& scratch)
      : text_(text), folder_(nearest_folder(scratch)) {
    std::string name = (folder_ / ".tessera-text-XXXXXX").string();
    descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ < 0) refuse();
    ::unlink(name.c_str());
  }
  ~Spool() { ::close(descriptor_); }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  int descriptor() const { return descriptor_; }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) refuse();
      bytes.remove_prefix(static_cast<std::size_t>(done));
    }
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ExitCode::environment,
         "cannot unpack '{}' in the folder '{}' ({}); the unpacked text needs space there while it "
         "is read",
         text_.string(), folder_.string(), std::strerror(errno));
  }

  fs::path text_, folder_;
  int descriptor_;
};

/// Ends the unpacking of a file whose rest nobody reads.
struct Enough {};

}  // namespace

MappedFile open_text(const fs::path& path, const fs::path& scratch, std::int64_t first_bytes) {
  MappedFile file(path);
  const Packing packing = packing_of(file.bytes(), path);
  if (packing == Packing::none) return file;
  Spool spool(path, scratch);
  std::int64_t unpacked = 0;
  try {
    unpack(file.bytes(), packing, path, [&](std::string_view text) {
      spool.write(text);
      unpacked += std::ssize(text);
      if (first_bytes > 0 && unpacked > first_bytes) throw Enough();
    });
  } catch (const Enough&) {  // one byte more than was wanted says that there is more
  }
  return MappedFile(path, spool.descriptor());
}

}  // namespace tessera::data
