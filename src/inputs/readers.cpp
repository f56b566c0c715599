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

bool marks_documents(const plan::DataPlan& plan) {
  return plan.documents_masked && !plan.knows_document_end;
}

namespace {

std::unique_ptr<data::SampleSource> reader_of_kind(config::DataKind kind,
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

}  // namespace

std::unique_ptr<data::SampleSource> open_reader(config::DataKind kind,
                                                const std::filesystem::path& path,
                                                const ReaderOptions& options) {
  auto source = reader_of_kind(kind, path, options);
  require(!options.marks_documents || !source->document_starts(0).empty(), ExitCode::usage,
          "documents are masked, and {} does not mark them; set training.document_end_id to the "
          "token that ends one, or mark them in the file (replay: by a tensor \"documents\")",
          path.string());
  return source;
}

}  // namespace tessera::inputs
