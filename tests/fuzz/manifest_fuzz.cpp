// SPDX-License-Identifier: Apache-2.0
// manifest.json without its last member, the checksum, which is made.
#include "format/manifest.hpp"
#include "input.hpp"
#include "tessera/base/crc32c.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  text += fmt::format("\"crc32c\": \"{:08x}\"\n}}\n", crc32c(0, text.data(), text.size()));
  checkpoint::Manifest manifest;
  if (!fuzz::takes({ExitCode::checkpoint},
                   [&] { manifest = checkpoint::parse_manifest(text, "manifest.json"); }))
    return 0;
  const std::string written = to_text(manifest);
  if (to_text(checkpoint::parse_manifest(written, "manifest.json")) != written)
    fuzz::found("another manifest when written and read again");
  return 0;
}
