// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: an input as files, and what a reader may answer to it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::fuzz {

[[noreturn]] inline void found(const std::string& what) {
  std::fprintf(stderr, "tessera_fuzz: %s\n", what.c_str());
  std::abort();
}

/// A folder of this process, in memory where the machine has such a file system.
class InputFolder {
 public:
  InputFolder() {
    log::configure(log::Level::off, "");
    const bool shm = std::filesystem::is_directory("/dev/shm");
    std::string name = (shm ? "/dev/shm" : std::filesystem::temp_directory_path().string()) +
                       "/tessera-fuzz-XXXXXX";
    if (!::mkdtemp(name.data())) found("cannot make " + name);
    path_ = name;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Makes the file, or replaces what it held.
  std::filesystem::path put(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) found("cannot write " + file.string());
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// A reader takes its input or refuses it with one Error of these codes, in a message that a person
/// can read. Whatever else it throws ends the target.
template <class Read>
bool takes(std::initializer_list<ExitCode> refusals, Read&& read) {
  constexpr std::size_t kLongestMessage = 64 << 10;
  try {
    read();
    return true;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    for (const ExitCode code : refusals)
      if (error.code() == code && !text.empty() && text.size() <= kLongestMessage) return false;
    found(fmt::format("refused with code {} in {} bytes: {}", static_cast<int>(error.code()),
                      text.size(), text.substr(0, 1000)));
  }
}

/// Takes values off the front of an input; zeros when it is used up.
class Front {
 public:
  Front(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  template <class Number>
  Number number() {
    Number value{};
    const std::size_t bytes = std::min(sizeof value, rest_.size());
    if (bytes > 0) std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }
  /// Up to the next `end`, which is dropped, or everything.
  std::string_view until(char end) {
    const std::size_t bytes = rest_.find(end);
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes == rest_.npos ? rest_.size() : bytes + 1);
    return taken;
  }
  std::string_view rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace tessera::fuzz
