// SPDX-License-Identifier: Apache-2.0
// Text and JSONL as documents. The first byte says which, and how it is cut; with 16 in it the
// first line is the regex, with 32 the name ends in .gz, with 64 in .zst.
#include "input.hpp"
#include "tessera/data/text_corpus.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  const auto how = input.number<std::uint8_t>();
  data::CorpusOptions options;
  options.documents = static_cast<data::DocumentRule>(how >> 1 & 3);
  options.unwrap = how & 8;
  if (how & 16) options.split_regex = input.until('\n');
  options.scratch = folder.path();
  const std::string name = how & 1 ? "text.jsonl" : "text.txt", ending = how & 32   ? ".gz"
                                                                         : how & 64 ? ".zst"
                                                                                    : "";
  const auto file = folder.put(name + ending, input.rest());
  fuzz::takes({ExitCode::data, ExitCode::usage}, [&] {
    const data::TextCorpus corpus({file}, options);
    std::int64_t bytes = 0;
    for (std::int64_t i = 0; i < corpus.document_count(); ++i) bytes += corpus.document_bytes(i);
    if (bytes != corpus.total_bytes()) fuzz::found("documents of another size in all");
    (void)corpus.content_hash();
    for (std::int64_t i = 0; i < corpus.document_count(); ++i) (void)corpus.text(i);
  });
  return 0;
}
