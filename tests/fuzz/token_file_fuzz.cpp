// SPDX-License-Identifier: Apache-2.0
// A token file. An odd first byte: magic, version and both hashes are made to fit, so that what
// lies behind is reached.
#include "input.hpp"
#include "tessera/data/token_file.hpp"
#include "token_file_format.hpp"

using namespace tessera;

namespace {

void make_fit(std::string& bytes) {
  data::TokenFileHeader header{};
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.magic, data::TokenFileHeader::kMagic, sizeof header.magic);
  header.version = data::TokenFileHeader::kVersion;
  header.payload_hash = data::content_hash(std::string_view(bytes).substr(sizeof header));
  header.header_hash = header.hash();
  std::memcpy(bytes.data(), &header, sizeof header);
}

void use(const data::TokenFile& file) {
  const std::int64_t tokens = file.info().token_count;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min<std::int64_t>(tokens, 100)));
  for (const std::int64_t at : {std::int64_t{0}, tokens / 2, tokens - 1}) {
    if (at < 0 || at >= tokens) continue;
    (void)file.document(file.document_of(at));
    file.read(at, std::span(ids).first(
                      static_cast<std::size_t>(std::min<std::int64_t>(tokens - at, ids.size()))));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  const bool fit = input.number<std::uint8_t>() % 2 == 1;
  std::string bytes(input.rest());
  if (fit) make_fit(bytes);
  const auto path = folder.put("tokens", bytes);
  (void)data::TokenFile::is_token_file(path);
  fuzz::takes({ExitCode::data}, [&] { use(data::TokenFile::open(path)); });
  fuzz::takes({ExitCode::data}, [&] { data::TokenFile::open(path).verify(); });
  return 0;
}
