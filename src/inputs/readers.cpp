// SPDX-License-Identifier: Apache-2.0
#include "readers.hpp"

#include "tessera/base/error.hpp"
#include "tessera/inputs/replay_source.hpp"

namespace tessera::inputs {

void require_text_is_read(config::DataKind kind, const std::filesystem::path& text) {
  require(
      kind != config::DataKind::tokens, ExitCode::data,
      "'{}' is not a token file; make one with `tessera data prepare`, or set dataset = \"text\"",
      text.string());
}

std::unique_ptr<data::SampleSource> open_reader(config::DataKind kind,
                                                const std::filesystem::path& path,
                                                const ReaderOptions& options) {
  switch (kind) {
    case config::DataKind::replay:
      return std::make_unique<ReplaySource>(path, options.global_batch, options.seq_len);
    case config::DataKind::text:
    case config::DataKind::tokens:
      break;
  }
  TESSERA_EXPECT(false, "data of windows has no reader of its own");
  return nullptr;
}

}  // namespace tessera::inputs
