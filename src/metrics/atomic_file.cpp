// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/atomic_file.hpp"

#include "output_file.hpp"

namespace tessera::metrics {

namespace {

void write_and_sync(const std::filesystem::path& file, std::string_view text) {
  OutputFile out(file, OutputFile::Mode::truncate);
  out.write(text);
  out.sync();
}

}  // namespace

void write_file_atomically(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::path aside = file;
  aside += ".partial";
  try {
    write_and_sync(aside, text);
    rename_durably(aside, file);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(aside, ignored);
    throw;
  }
}

}  // namespace tessera::metrics
