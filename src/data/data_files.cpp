// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/data_files.hpp"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/data/tokenizer.hpp"
#include "text_files.hpp"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

/// False for what was removed meanwhile. Without what a link names, the set of samples would
/// change.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  if (fs::status(path, ignored).type() != fs::file_type::not_found) return true;
  require(!fs::is_symlink(path, ignored), ExitCode::data,
          "'{}' in the folder '{}' is a link to a file that is not there; repair or remove it",
          path.filename().string(),
          path.has_parent_path() ? path.parent_path().string() : std::string("."));
  return false;
}

/// False for a file that cannot be read, and by its name is no data either.
bool is_token_file(const fs::path& file) try {
  return TokenFile::is_token_file(file);
} catch (const Error&) {
  if (is_text_file(file) || extension_of(file) == ".tokens") throw;
  return false;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> tokens, text;
  for (const fs::path& file : entries_of(folder).files) {
    if (is_token_file(file))
      tokens.push_back(file);
    else if (is_text_file(file))
      text.push_back(file);
    else  // without it, the set of samples would change
      require(extension_of(file) != ".tokens", ExitCode::data,
              "'{}' in the folder '{}' is not a readable token file; repair or remove it",
              file.filename().string(), folder.string());
  }
  require(tokens.empty() || text.empty(), ExitCode::data,
          "the folder '{}' holds token files and text; select one kind by a pattern, such as "
          "{}/*.tokens",
          folder.string(), folder.string());
  refuse_copies(text);
  return tokens.empty() ? text : tokens;
}

/// The folder that glob() could not list, and why.
thread_local std::pair<std::string, int> unreadable;

/// The file system's own folder, which holds no data.
bool is_lost_and_found(const fs::path& folder) { return folder.filename() == "lost+found"; }

/// Not of files, after whose names a pattern may continue, and of folders that are not there.
int note_unreadable(const char* path, int error_number) {
  if (error_number == ENOTDIR || error_number == ENOENT || is_lost_and_found(path)) return 0;
  unreadable = {path, error_number};
  return 1;
}

bool is_pattern(const fs::path& path) {
  return path.string().find_first_of("*?[") != std::string::npos;
}

std::vector<fs::path> matches_of(const fs::path& pattern) {
  glob_t found{};
  std::vector<fs::path> matches;
  const int problem = ::glob(pattern.c_str(), GLOB_NOSORT, &note_unreadable, &found);
  if (problem == 0) matches.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (problem == GLOB_ABORTED)  // without its files, the set of samples would change
    fail_errno(ExitCode::data, "cannot list", unreadable.first, unreadable.second);
  return matches;
}

/// glob() passes over folders in which it may not look up a name.
void require_search_of(const fs::path& folders) {
  if (!is_pattern(folders)) return;
  require_search_of(folders.parent_path());
  for (const fs::path& folder : matches_of(folders)) {
    std::error_code ignored;
    if (!is_lost_and_found(folder) && fs::is_directory(folder, ignored) &&
        ::access(folder.c_str(), X_OK) != 0)
      fail_errno(ExitCode::data, "cannot search the folder", folder, errno);
  }
}

std::vector<fs::path> files_that_match(const fs::path& pattern) {
  require_search_of(pattern.parent_path());
  std::vector<fs::path> files = matches_of(pattern);
  std::erase_if(files, [](const fs::path& file) {
    std::error_code ignored;
    return !is_there(file) || !fs::is_regular_file(file, ignored);
  });
  const auto tokens = std::ranges::count_if(
      files, [](const fs::path& file) { return TokenFile::is_token_file(file); });
  require(tokens == 0 || tokens == std::ssize(files), ExitCode::data,
          "'{}' matches token files and other files; write a pattern that matches one kind",
          pattern.string());
  if (tokens == 0) refuse_copies(files);
  return files;
}

}  // namespace

FolderEntries entries_of(const fs::path& folder) {
  FolderEntries found;
  std::error_code problem, ignored;
  for (fs::directory_iterator entry(folder, problem); !problem && entry != fs::directory_iterator();
       entry.increment(problem)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.')) continue;
    if (!is_there(path)) continue;
    (entry->is_regular_file(ignored) ? found.files : found.others).push_back(path);
  }
  require(!problem, ExitCode::data, "cannot list the folder '{}': {}", folder.string(),
          problem.message());
  std::ranges::sort(found.files);
  return found;
}

void refuse_copies(const std::vector<fs::path>& files) {
  std::map<fs::path, const fs::path*> seen;
  for (const fs::path& file : files) {
    const auto [other, is_new] = seen.emplace(unpacked_name(file), &file);
    require(is_new, ExitCode::data,
            "'{}' and '{}' are the same text; remove one, or name the files by a pattern",
            other->second->string(), file.string());
  }
}

std::vector<fs::path> data_files(const fs::path& path) {
  std::error_code problem;
  const bool folder = fs::is_directory(path, problem);
  if (!folder && fs::exists(path, problem)) return {path};
  require(folder || is_pattern(path), ExitCode::data,
          "there is no file or folder '{}'; check the path", path.string());
  std::vector<fs::path> files = folder ? files_in(path) : files_that_match(path);
  require(
      !files.empty(), ExitCode::data, "{} '{}'; name the files that hold the data",
      folder
          ? "no token file and no .jsonl, .json or .txt file (nor .gz or .zst of one) in the folder"
          : "no file matches",
      path.string());
  std::ranges::sort(files);
  return files;
}

void check_same_tokenizer(const TokenFile& one, const TokenFile& other) {
  const TokenFileInfo &a = one.info(), &b = other.info();
  require(a.vocab_size == b.vocab_size && a.tokenizer_hash == b.tokenizer_hash, ExitCode::data,
          "'{}' (vocabulary {}) and '{}' (vocabulary {}) were made with different tokenizers; "
          "prepare both with the "
          "model's",
          one.path().string(), a.vocab_size, other.path().string(), b.vocab_size);
}

void check_made_by(const TokenFile& file, const fs::path& tokenizer) {
  const fs::path json = tokenizer_file(tokenizer);
  if (std::error_code ignored; !fs::exists(json, ignored)) return;
  const Tokenizer loaded = Tokenizer::load(json);
  const TokenFileInfo& info = file.info();
  require(info.tokenizer_hash == loaded.content_hash(), ExitCode::data,
          "'{}' was made with another tokenizer (vocabulary {}, hash {:016x}) than '{}' "
          "(vocabulary {}, hash {:016x}); "
          "name the one that made it with --tokenizer, or make the tokens again with `tessera data "
          "prepare --tokenizer {}`",
          file.path().string(), info.vocab_size, info.tokenizer_hash, json.string(),
          loaded.vocab_size(), loaded.content_hash(), tokenizer.string());
}

std::vector<TokenFile> open_token_files(const std::vector<fs::path>& paths) {
  std::vector<TokenFile> files;
  for (const fs::path& path : paths) {
    files.push_back(TokenFile::open(path));
    check_same_tokenizer(files.front(), files.back());
  }
  return files;
}

}  // namespace tessera::data
