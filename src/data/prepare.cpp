// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/prepare.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "content_hash.hpp"
#include "folder_turn.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/utf8.hpp"
#include "tessera/data/keyed_permutation.hpp"
#include "text_files.hpp"

namespace tessera::data {
namespace {

/// Text encoded at once: bounds memory, and is enough work for many threads.
constexpr std::int64_t kBatchBytes = std::int64_t{32} << 20;
/// Bytes of a text's name in that of its tokens, which has more and at most 255.
constexpr std::size_t kLongestName = 128;
// apart from the epochs of the sampler
constexpr std::uint64_t kShuffleStream = 0x646F63756D656E74;

int thread_count(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Calls work(i) for i in [0, count) from several threads; throws what the first failing call
/// threw.
template <class Work>
void parallel_for(int threads, std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  const auto loop = [&] {
    try {
      for (std::size_t i; (i = next++) < count;) work(i);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads && static_cast<std::size_t>(t) < count; ++t)
      helpers.emplace_back(loop);
    loop();
  }
  if (failure) std::rethrow_exception(failure);
}

class Preparation {
 public:
  Preparation(const TextCorpus& corpus, const Tokenizer& tokenizer, const PrepareOptions& options)
      : corpus_(corpus),
        tokenizer_(tokenizer),
        order_(corpus.document_count(), options.seed, kShuffleStream),
        threads_(thread_count(options.threads)) {}

  void run(TokenFileWriter& writer, const Progress& progress) const {
    const auto total = static_cast<std::uint64_t>(corpus_.total_bytes());
    std::uint64_t done = 0;
    for (std::int64_t next = 0; next < corpus_.document_count();) {
      const std::vector<std::int64_t> batch = batch_from(next);
      std::vector<std::vector<std::int32_t>> ids(batch.size());
      parallel_for(threads_, batch.size(), [&](std::size_t i) { ids[i] = encode(batch[i]); });
      for (const auto& document : ids) writer.append_document(document);
      for (const std::int64_t document : batch)
        done += static_cast<std::uint64_t>(corpus_.document_bytes(document));
      if (progress) progress(done, total);
      next += static_cast<std::int64_t>(batch.size());
    }
  }

 private:
  /// Documents from place `next` of the shuffled order on, about kBatchBytes of them.
  std::vector<std::int64_t> batch_from(std::int64_t next) const {
    std::vector<std::int64_t> batch;
    for (std::int64_t bytes = 0; next < corpus_.document_count() && bytes < kBatchBytes; ++next) {
      batch.push_back(order_(next));
      bytes += corpus_.document_bytes(batch.back());
    }
    return batch;
  }

  std::vector<std::int32_t> encode(std::int64_t document) const {
    std::vector<std::int32_t> ids = tokenizer_.encode(corpus_.text(document));
    if (const auto bos = tokenizer_.bos_id()) ids.insert(ids.begin(), *bos);
    if (const auto eos = tokenizer_.eos_id()) ids.push_back(*eos);
    return ids;
  }

  const TextCorpus& corpus_;
  const Tokenizer& tokenizer_;
  KeyedPermutation order_;
  int threads_;
};

TokenFileInfo describe(const TextCorpus& corpus, const Tokenizer& tokenizer, std::uint64_t seed) {
  TokenFileInfo info;
  info.vocab_size = tokenizer.vocab_size();
  info.bos_id = tokenizer.bos_id();
  info.eos_id = tokenizer.eos_id();
  info.seed = seed;
  info.tokenizer_hash = tokenizer.content_hash();
  info.source_hash = corpus.content_hash();
  return info;
}

/// Whether there is a complete token file with this description at `path`.
bool is_there(const std::filesystem::path& path, const TokenFileInfo& wanted) {
  try {
    if (!TokenFile::is_token_file(path)) return false;
    const TokenFileInfo found = TokenFile::open(path).info();
    return found.source_hash == wanted.source_hash &&
           found.tokenizer_hash == wanted.tokenizer_hash && found.seed == wanted.seed &&
           found.bos_id == wanted.bos_id && found.eos_id == wanted.eos_id;
  } catch (const Error& damage) {
    log::warning("{} (made again now)", damage.what());
    return false;
  }
}

struct Output {
  const std::filesystem::path& path;
  std::string_view option;  ///< that names it
};

TokenFileInfo write_tokens(const TextCorpus& corpus, const Tokenizer& tokenizer,
                           const Output& output, const TokenFileInfo& info,
                           const PrepareOptions& options, const Progress& progress) {
  require(corpus.document_count() > 0, ExitCode::data,
          "there is no text in {}; name files with text", corpus.name());
  TokenFileWriter writer(output.path, info, {ExitCode::environment, output.option});
  Preparation(corpus, tokenizer, options).run(writer, progress);
  require(writer.token_count() > 0, ExitCode::data, "no document of {} has a token", corpus.name());
  return writer.finish();
}

}  // namespace

TokenFileInfo prepare(const TextCorpus& corpus, const Tokenizer& tokenizer,
                      const std::filesystem::path& output, const PrepareOptions& options,
                      const Progress& progress) {
  return write_tokens(corpus, tokenizer, {output, "--output"},
                      describe(corpus, tokenizer, options.seed), options, progress);
}

std::filesystem::path prepare_if_needed(const std::vector<std::filesystem::path>& texts,
                                        const Tokenizer& tokenizer,
                                        const std::filesystem::path& cache_folder,
                                        const PrepareOptions& options, const Progress& progress) {
  CorpusOptions how = options.corpus;
  if (how.scratch.empty()) how.scratch = cache_folder;
  const TextCorpus corpus(texts, how);
  const TokenFileInfo info = describe(corpus, tokenizer, options.seed);
  // The hash of a tokenizer is that of its tokenizer.json; a file beside it may name other ids.
  const std::uint64_t key =
      content_hash(fmt::format("{} {} {} {} {}", info.source_hash, info.tokenizer_hash, info.seed,
                               info.bos_id.value_or(-1), info.eos_id.value_or(-1)));
  std::string name = unpacked_name(texts.front()).stem().string().substr(0, kLongestName);
  name.resize(valid_utf8_prefix(name));  // not a part of a character
  const auto cached = cache_folder / fmt::format("{}-{:016x}.tokens", name, key);
  if (is_there(cached, info)) return cached;
  const FolderTurn turn(cache_folder);
  if (turn.waited() && is_there(cached, info)) return cached;
  write_tokens(corpus, tokenizer, {cached, "training.tokens_cache"}, info, options, progress);
  return cached;
}

}  // namespace tessera::data
