// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "token_file_format.hpp"

namespace tessera::data {
namespace {

template <class T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// Makes the folder of the file.
std::filesystem::path in_its_folder(std::filesystem::path path, const FileErrors& errors) {
  if (path.has_parent_path()) make_folders(path.parent_path(), errors);
  return path;
}

}  // namespace

struct TokenFileWriter::Parts {
  AtomicFile file;
  TokenFileInfo info;
  ContentHash payload;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint16_t> narrow;

  Parts(std::filesystem::path path, const TokenFileInfo& given, const FileErrors& errors)
      : file(in_its_folder(std::move(path), errors), errors), info(given) {
    info.token_count = info.document_count = 0;
    info.token_bytes = static_cast<int>(token_bytes_for(info.vocab_size));
    file.append(std::string(sizeof(TokenFileHeader), '\0'));
  }

  void write(std::string_view bytes) {
    payload.update(bytes);
    file.append(bytes);
  }

  TokenFileHeader header() const {
    TokenFileHeader h{};
    std::copy_n(TokenFileHeader::kMagic, sizeof h.magic, h.magic);
    h.version = TokenFileHeader::kVersion;
    h.token_bytes = static_cast<std::uint32_t>(info.token_bytes);
    h.token_count = static_cast<std::uint64_t>(info.token_count);
    h.document_count = static_cast<std::uint64_t>(info.document_count);
    h.vocab_size = static_cast<std::uint64_t>(info.vocab_size);
    h.seed = info.seed;
    h.tokenizer_hash = info.tokenizer_hash;
    h.source_hash = info.source_hash;
    h.bos_id = info.bos_id.value_or(-1);
    h.eos_id = info.eos_id.value_or(-1);
    h.payload_hash = payload.value();
    h.header_hash = h.hash();
    return h;
  }
};

TokenFileWriter::TokenFileWriter(std::filesystem::path path, const TokenFileInfo& info,
                                 const FileErrors& errors)
    : parts_(std::make_unique<Parts>(std::move(path), info, errors)) {}
TokenFileWriter::TokenFileWriter(TokenFileWriter&&) noexcept = default;
TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::append_document(std::span<const std::int32_t> ids) {
  Parts& p = *parts_;
  for (const std::int32_t id : ids) {
    TESSERA_EXPECT(id >= 0 && id < p.info.vocab_size, "id {} of a vocabulary of {}", id,
                   p.info.vocab_size);
  }
  p.starts.push_back(static_cast<std::uint64_t>(p.info.token_count));
  p.info.token_count += static_cast<std::int64_t>(ids.size());
  ++p.info.document_count;
  if (p.info.token_bytes == 4) return p.write(bytes_of(ids));
  p.narrow.assign(ids.begin(), ids.end());
  p.write(bytes_of(std::span<const std::uint16_t>(p.narrow)));
}

std::int64_t TokenFileWriter::token_count() const { return parts_->info.token_count; }

TokenFileInfo TokenFileWriter::finish() {
  Parts& p = *parts_;
  p.starts.push_back(static_cast<std::uint64_t>(p.info.token_count));
  const auto ids_end =
      sizeof(TokenFileHeader) + static_cast<std::uint64_t>(p.info.token_count * p.info.token_bytes);
  p.write(std::string(p.header().index_offset() - ids_end, '\0'));
  p.write(bytes_of(std::span<const std::uint64_t>(p.starts)));
  const TokenFileHeader header = p.header();
  p.file.rewrite_beginning({reinterpret_cast<const char*>(&header), sizeof header});
  p.file.commit();
  p.info.payload_hash = header.payload_hash;
  return p.info;
}

}  // namespace tessera::data
