// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/atomic_file.hpp"

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

/// Not by the process's number: machines that share a file system have the same ones.
std::filesystem::path beside(const std::filesystem::path& path) {
  return path.string() + fmt::format(".partial-{:08x}", std::random_device()());
}

/// What is there will be replaced: neither a folder nor a device may be, nor a link to one.
void refuse_unless_file(const std::filesystem::path& path, const FileErrors& errors) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  require(!std::filesystem::is_directory(there), errors.kind,
          "cannot write '{}' (it is a folder); name a file in it", path.string());
  require(!std::filesystem::exists(there) || std::filesystem::is_regular_file(there), errors.kind,
          "cannot write '{}' (it is not a regular file); name another file", path.string());
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, const FileErrors& errors)
    : path_(std::move(path)), aside_(beside(path_)), errors_(errors) {
  refuse_unless_file(path_, errors_);
  file_ = File::create(aside_, errors_);
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(aside_, ignored);
}

void AtomicFile::flush() {
  file_->write(buffer_.data(), buffer_.size(), written_);
  written_ += static_cast<std::int64_t>(buffer_.size());
  buffer_.clear();
}

void AtomicFile::append(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::rewrite_beginning(std::string_view bytes) {
  flush();
  file_->write(bytes.data(), bytes.size(), 0);
}

void AtomicFile::commit() {
  flush();
  file_->sync();
  file_->close();
  rename_path(aside_, path_, errors_);
  file_.reset();
  sync_entry(path_, errors_);
}

void write_file_atomically(const std::filesystem::path& file, std::string_view text,
                           const FileErrors& errors) {
  AtomicFile out(file, errors);
  out.append(text);
  out.commit();
}

}  // namespace tessera
