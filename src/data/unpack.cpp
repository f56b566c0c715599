// SPDX-License-Identifier: Apache-2.0
#include "unpack.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tessera/base/error.hpp"
#include "text_files.hpp"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPortion = std::size_t{1} << 20;
/// gzip reaches 1,030 with zeros alone and Zstandard far more, text hardly ever 100.
constexpr std::uint64_t kMostGrowth = 200;
constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{64} << 20;
constexpr int kWindowLog = 27;  ///< 128 MiB, zstd's own limit without --long

[[noreturn]] void damaged(const fs::path& path, std::string_view why) {
  fail(ExitCode::data, "'{}' is damaged ({}); get it again, or compress it again", path.string(),
       why);
}

/// Hands on what was unpacked, and watches how much it is.
class Portions {
 public:
  Portions(std::uint64_t packed, const fs::path& path, const TextSink& sink)
      : most_(std::max(kAlwaysAllowed, kMostGrowth * packed)),
        path_(path),
        sink_(sink),
        buffer_(kPortion) {}

  char* data() { return buffer_.data(); }
  void hand_on(std::size_t bytes) {
    total_ += bytes;
    if (total_ > most_)
      damaged(path_, fmt::format("it unpacks to more than {} times its size", kMostGrowth));
    if (bytes > 0) sink_({buffer_.data(), bytes});
  }

 private:
  std::uint64_t most_, total_ = 0;
  const fs::path& path_;
  const TextSink& sink_;
  std::vector<char> buffer_;
};

/// zlib counts bytes in 32 bits.
uInt at_most_32_bits(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, 1u << 30));
}

bool is_padding(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }

void unpack_gzip(std::string_view bytes, const fs::path& path, Portions& out) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  z_stream stream{};
  TESSERA_EXPECT(inflateInit2(&stream, kGzipOnly) == Z_OK, "zlib {}", zlibVersion());
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, &inflateEnd);
  while (true) {
    const uInt given = at_most_32_bits(bytes.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = kPortion;
    const int status = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    const std::size_t made = kPortion - stream.avail_out;
    if (status == Z_STREAM_END) {
      out.hand_on(made);
      if (is_padding(bytes)) return;
      inflateReset(&stream);  // another member follows
    } else if (status == Z_OK || status == Z_BUF_ERROR) {
      if (made == 0 && bytes.empty()) damaged(path, "it ends too early");
      out.hand_on(made);
    } else {
      damaged(path, stream.msg ? stream.msg : "no valid gzip");
    }
  }
}

void unpack_zstd(std::string_view bytes, const fs::path& path, Portions& out) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        &ZSTD_freeDCtx);
  TESSERA_EXPECT(context, "libzstd {}", ZSTD_versionString());
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kWindowLog);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t status = 1;
  for (std::size_t made = 1; in.pos < in.size || (made > 0 && status != 0);) {
    ZSTD_outBuffer portion{out.data(), kPortion, 0};
    status = ZSTD_decompressStream(context.get(), &portion, &in);
    require(ZSTD_getErrorCode(status) != ZSTD_error_frameParameter_windowTooLarge, ExitCode::data,
            "'{}' was compressed with a window of more than {} MiB (`zstd --long`), which Tessera "
            "does not read; compress it again without",
            path.string(), (1 << kWindowLog) >> 20);
    if (ZSTD_isError(status)) damaged(path, ZSTD_getErrorName(status));
    made = portion.pos;
    out.hand_on(made);
  }
  if (status != 0) damaged(path, "it ends too early");
}

struct Format {
  std::string_view magic, name;
  std::size_t at = 0;
};

/// What others use, and Tessera does not read.
constexpr std::array<Format, 4> kForeign{{{"1AY&SY", "bzip2", 4},
                                          {{"\xfd"
                                            "7zXZ",
                                            5},
                                           "xz"},
                                          {"\x04\x22\x4d\x18", "lz4"},
                                          {"PK\x03\x04", "zip"}}};

}  // namespace

Packing packing_of(std::string_view bytes, const fs::path& path) {
  if (bytes.starts_with("\x1f\x8b")) return Packing::gzip;
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return Packing::zstd;
  if (bytes.size() > 4 && bytes.substr(1).starts_with("\x2a\x4d\x18"))
    return Packing::zstd;  // a frame that says nothing
  for (const auto& [magic, name, at] : kForeign)
    require(
        bytes.size() < at || !bytes.substr(at).starts_with(magic), ExitCode::data,
        "'{}' is compressed with {}, which Tessera does not read; compress it with gzip or zstd",
        path.string(), name);
  if (is_packed(path))
    damaged(path, bytes.empty() ? "it is empty"
                                : fmt::format("it does not begin as a {} file does",
                                              path.extension().string()));
  return Packing::none;
}

void unpack(std::string_view bytes, Packing packing, const fs::path& path, const TextSink& sink) {
  Portions out(bytes.size(), path, sink);
  if (packing == Packing::gzip) return unpack_gzip(bytes, path, out);
  if (packing == Packing::zstd) return unpack_zstd(bytes, path, out);
  sink(bytes);
}

}  // namespace tessera::data
