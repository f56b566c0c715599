// SPDX-License-Identifier: Apache-2.0
// Text -> token file: documents shuffled once by a key, BOS and EOS around each (those that the
// tokenizer has).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tessera/data/progress.hpp"
#include "tessera/data/text_corpus.hpp"
#include "tessera/data/token_file.hpp"
#include "tessera/data/tokenizer.hpp"

namespace tessera::data {

struct PrepareOptions {
  CorpusOptions corpus;
  std::uint64_t seed = 0;  ///< key of the shuffle of documents
  int threads = 0;         ///< encoders; 0 = those that the machine has
};

/// Encodes the corpus into `output`. The bytes written depend on corpus, tokenizer and seed, never
/// on `threads`.
TokenFileInfo prepare(const TextCorpus& corpus, const Tokenizer& tokenizer,
                      const std::filesystem::path& output, const PrepareOptions& options,
                      const Progress& progress = {});

/// The token file of these files of text, in `cache_folder`: made once and found again by a hash of
/// text, options, tokenizer and the ids around documents. One process calls it (rank 0), then all
/// open what it returns. Jobs may share the folder: one of them makes the file, and the others wait
/// for it, where the file system has locks.
std::filesystem::path prepare_if_needed(const std::vector<std::filesystem::path>& texts,
                                        const Tokenizer& tokenizer,
                                        const std::filesystem::path& cache_folder,
                                        const PrepareOptions& options = {},
                                        const Progress& progress = {});

}  // namespace tessera::data
