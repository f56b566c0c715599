// SPDX-License-Identifier: Apache-2.0
#include "text_check.hpp"

#include <cstdlib>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/data/data_files.hpp"
#include "tessera/data/prepare.hpp"
#include "tessera/data/window_source.hpp"

namespace tessera::inputs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 16;
constexpr std::int64_t kFirstBytes = 64 << 10;

/// Without a path where none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code problem;
    std::string name = (fs::temp_directory_path(problem) / "tessera-check-XXXXXX").string();
    if (!problem && ::mkdtemp(name.data())) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Makes the tokens that a run would make, and asks whether they are enough. A message names the
/// text in the place of the file of tokens, which is gone by then.
void check_length(const data::TextCorpus& corpus, const fs::path& text, const fs::path& tokens,
                  const data::Tokenizer& tokenizer, const Windows& windows) {
  try {
    data::prepare(corpus, tokenizer, tokens, data::PrepareOptions());
    data::HeldOut parts =
        data::hold_out(data::open_token_files({tokens}), *windows.seq_len, windows.held_out);
    data::WindowSource(std::move(parts.training), *windows.seq_len, 0);
  } catch (const Error& error) {
    std::string message = error.what();
    if (const auto at = message.find(tokens.string()); at != std::string::npos)
      message.replace(at, tokens.string().size(), text.string());
    throw Error(error.code(), message);
  }
}

}  // namespace

void check_text(const std::vector<fs::path>& files, const data::Tokenizer& tokenizer,
                const Windows& windows) try {
  const bool all = files.size() <= kMostFiles;
  const std::vector<fs::path> first(files.begin(),
                                    all ? files.end() : files.begin() + std::ptrdiff_t{kMostFiles});
  const TemporaryFolder folder;
  if (folder.path().empty()) return;  // a run has other places to unpack
  const data::TextCorpus corpus(first, {.scratch = folder.path(), .first_bytes = kFirstBytes});
  if (all && corpus.whole() && windows.seq_len)
    check_length(corpus, files.front(), folder.path() / "text.tokens", tokenizer, windows);
  else
    for (std::int64_t document = 0; document < corpus.document_count(); ++document)
      corpus.text(document);
} catch (const Error& error) {
  if (error.code() != ExitCode::environment) throw;  // a full folder is not that of a run either
}

}  // namespace tessera::inputs
