// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/token_file.hpp"

#include <algorithm>
#include <limits>

#include "mapped_file.hpp"
#include "tessera/base/error.hpp"
#include "token_file_format.hpp"

namespace tessera::data {
namespace {

std::optional<int> id_or_none(std::int64_t id) {
  return id < 0 ? std::nullopt : std::optional<int>(static_cast<int>(id));
}

TokenFileInfo info_of(const TokenFileHeader& h) {
  TokenFileInfo info;
  info.token_count = static_cast<std::int64_t>(h.token_count);
  info.document_count = static_cast<std::int64_t>(h.document_count);
  info.vocab_size = static_cast<std::int64_t>(h.vocab_size);
  info.bos_id = id_or_none(h.bos_id);
  info.eos_id = id_or_none(h.eos_id);
  info.seed = h.seed;
  info.tokenizer_hash = h.tokenizer_hash;
  info.source_hash = h.source_hash;
  info.payload_hash = h.payload_hash;
  info.token_bytes = static_cast<int>(h.token_bytes);
  return info;
}

template <class... Args>
void check(bool fine, const std::filesystem::path& path, fmt::format_string<Args...> format,
           Args&&... args) {
  require(fine, ExitCode::data, "'{}' {}; make it again with `tessera data prepare`", path.string(),
          fmt::format(format, std::forward<Args>(args)...));
}

/// Bounds that keep every size computed from the header far from overflow.
bool has_sane_counts(const TokenFileHeader& h) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  return (h.token_bytes == 2 || h.token_bytes == 4) && h.token_count < kMost &&
         h.document_count < kMost && h.vocab_size >= 1 &&
         h.vocab_size <= std::numeric_limits<std::int32_t>::max() &&
         h.token_bytes == token_bytes_for(static_cast<std::int64_t>(h.vocab_size));
}

TokenFileHeader read_header(const MappedFile& file) {
  TokenFileHeader header{};
  const std::string_view bytes = file.bytes();
  check(bytes.size() >= sizeof header, file.path(), "is not a token file (only {} bytes)",
        bytes.size());
  std::memcpy(&header, bytes.data(), sizeof header);
  check(std::equal(header.magic, header.magic + 8, TokenFileHeader::kMagic), file.path(),
        "is not a token file");
  check(header.version == TokenFileHeader::kVersion, file.path(),
        "is a token file of version {}, this program reads {}", header.version,
        TokenFileHeader::kVersion);
  check(header.hash() == header.header_hash && has_sane_counts(header), file.path(),
        "has a damaged header");
  check(bytes.size() == header.file_bytes(), file.path(),
        "is truncated or grown ({} bytes instead of {})", bytes.size(), header.file_bytes());
  return header;
}

}  // namespace

struct TokenFile::Parts {
  MappedFile file;
  TokenFileHeader header;
  TokenFileInfo info;

  explicit Parts(const std::filesystem::path& path)
      : file(path), header(read_header(file)), info(info_of(header)) {}

  const char* ids() const { return file.bytes().data() + sizeof(TokenFileHeader); }
  /// document_count + 1 starts, the last being token_count.
  std::span<const std::uint64_t> index() const {
    return {reinterpret_cast<const std::uint64_t*>(file.bytes().data() + header.index_offset()),
            header.document_count + 1};
  }

  template <class Stored>
  void copy(std::int64_t begin, std::span<std::int32_t> out) const {
    const Stored* stored = reinterpret_cast<const Stored*>(ids()) + begin;
    Stored most = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      most = std::max(most, stored[i]);
      out[i] = static_cast<std::int32_t>(stored[i]);
    }
    check(out.empty() || most < header.vocab_size, file.path(),
          "is damaged (id {} near token {}, vocabulary of {})", most, begin, header.vocab_size);
  }
};

TokenFile::TokenFile(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

TokenFile TokenFile::open(const std::filesystem::path& path) {
  return TokenFile(std::make_shared<const Parts>(path));
}

bool TokenFile::is_token_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  constexpr std::int64_t kBytes = sizeof TokenFileHeader::kMagic;
  char magic[kBytes];
  const File file = File::open_to_read(path, ExitCode::data);
  if (file.size() < kBytes) return false;
  file.read(magic, kBytes, 0);
  return std::equal(magic, magic + kBytes, TokenFileHeader::kMagic);
}

const TokenFileInfo& TokenFile::info() const { return parts_->info; }
const std::filesystem::path& TokenFile::path() const { return parts_->file.path(); }

void TokenFile::read(std::int64_t begin, std::span<std::int32_t> out) const {
  TESSERA_EXPECT(begin >= 0 && begin <= info().token_count &&
                     static_cast<std::int64_t>(out.size()) <= info().token_count - begin,
                 "tokens [{}, +{}) of {}", begin, out.size(), info().token_count);
  info().token_bytes == 2 ? parts_->copy<std::uint16_t>(begin, out)
                          : parts_->copy<std::uint32_t>(begin, out);
}

Range TokenFile::document(std::int64_t document) const {
  TESSERA_EXPECT(document >= 0 && document < info().document_count, "document {} of {}", document,
                 info().document_count);
  const std::uint64_t begin = parts_->index()[document], end = parts_->index()[document + 1];
  check(begin <= end && end <= parts_->header.token_count, path(),
        "is damaged (index at document {})", document);
  return {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin)};
}

std::int64_t TokenFile::document_of(std::int64_t token) const {
  TESSERA_EXPECT(token >= 0 && token < info().token_count, "token {} of {}", token,
                 info().token_count);
  const auto index = parts_->index();
  const auto after =
      std::upper_bound(index.begin(), index.end(), static_cast<std::uint64_t>(token));
  check(after != index.begin() && after != index.end(), path(),
        "is damaged (no document holds token {})", token);
  return after - index.begin() - 1;
}

void TokenFile::verify(const Progress& progress) const {
  constexpr std::size_t kPortion = std::size_t{16} << 20;
  const std::string_view payload = parts_->file.bytes().substr(sizeof(TokenFileHeader));
  ContentHash hash;
  for (std::size_t done = 0; done < payload.size();) {
    const std::string_view portion = payload.substr(done, kPortion);
    hash.update(portion);
    done += portion.size();
    if (progress) progress(done, payload.size());
  }
  check(hash.value() == parts_->header.payload_hash, path(),
        "is damaged (its content does not match its hash)");
  const auto index = parts_->index();
  check(index.front() == 0 && index.back() == parts_->header.token_count &&
            std::is_sorted(index.begin(), index.end()),
        path(), "has an index that does not ascend");
  std::vector<std::int32_t> ids(
      static_cast<std::size_t>(std::min<std::int64_t>(info().token_count, 1 << 20)));
  for (std::int64_t at = 0; at < info().token_count; at += static_cast<std::int64_t>(ids.size())) {
    read(at, std::span(ids).first(std::min<std::size_t>(
                 ids.size(), static_cast<std::size_t>(info().token_count - at))));
  }
}

}  // namespace tessera::data
