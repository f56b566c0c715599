// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/text_corpus.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "content_hash.hpp"
#include "document_split.hpp"
#include "mapped_file.hpp"
#include "open_text.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/utf8.hpp"
#include "text_files.hpp"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kChapterHeading = R"(^(?:[1-3] )?[A-Z][A-Za-z ]{0,24}? \d+$)";

/// Data in a form that is not read would be missed later.
void tell_unread(const fs::path& folder, const std::vector<fs::path>& others) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> names;
  for (const fs::path& other : others) names.push_back(other.filename().string());
  std::ranges::sort(names);
  if (names.empty()) return;
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  log::info("not read in the folder '{}': {}{}", folder.string(), fmt::join(names, ", "),
            more == 0 ? "" : fmt::format(" and {} more", more));
}

/// What other programs write in binary begins with a null byte or has one soon; so has UTF-16.
void require_text(const MappedFile& file) {
  constexpr std::size_t kLooked = 64 << 10;
  const std::size_t at = file.bytes().substr(0, kLooked).find('\0');
  require(at == std::string_view::npos, ExitCode::data,
          "'{}' is not plain text: its byte {} is null; convert it to UTF-8, or name another file",
          file.path().string(), at);
}

/// Folders become the text and JSONL files in them, by name.
std::vector<fs::path> expand_folders(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (const fs::path& path : paths) {
    const std::size_t before = files.size();
    if (!fs::is_directory(path, problem)) {
      files.push_back(path);
      continue;
    }
    auto [found, others] = entries_of(path);
    for (fs::path& file : found) (is_text_file(file) ? files : others).push_back(std::move(file));
    require(files.size() > before, ExitCode::data,
            "no .jsonl, .json or .txt file in the folder '{}' (.gz and .zst of them, too); name "
            "the files that hold "
            "the text",
            path.string());
    tell_unread(path, others);
    refuse_copies(files);
  }
  return files;
}

CorpusOptions resolve(CorpusOptions options) {
  if (options.split_regex.empty() && options.documents == DocumentRule::chapters) {
    options.split_regex = kChapterHeading;
    options.unwrap = true;
  }
  return options;
}

}  // namespace

DocumentRule document_rule_from_name(const std::string& name) {
  if (name == "file") return DocumentRule::file;
  if (name == "lines") return DocumentRule::lines;
  if (name == "paragraphs") return DocumentRule::paragraphs;
  if (name == "chapters") return DocumentRule::chapters;
  fail(ExitCode::usage, "unknown rule for documents: '{}'; use file, lines, paragraphs or chapters",
       name);
}

struct TextCorpus::Parts {
  struct Document {
    Range range;
    std::size_t file;
  };
  CorpusOptions options;
  bool whole = true;
  std::vector<MappedFile> files;
  std::vector<Document> documents;

  void add(const fs::path& path);
  std::string_view beginning(std::string_view text);
  std::vector<Range> find_documents(const fs::path& path, std::string_view text) const;
  std::string from_jsonl(const MappedFile& file, std::string_view line) const;
};

void TextCorpus::Parts::add(const fs::path& path) {
  const MappedFile& file =
      files.emplace_back(open_text(path, options.scratch, options.first_bytes));
  if (!is_jsonl(path)) require_text(file);
  const std::string_view text = without_byte_order_mark(file.bytes());
  for (Range range : find_documents(path, beginning(text))) {
    range.begin += text.data() - file.bytes().data();
    documents.push_back({range, files.size() - 1});
  }
}

std::string_view TextCorpus::Parts::beginning(std::string_view text) {
  const auto wanted = static_cast<std::size_t>(options.first_bytes);
  if (wanted == 0 || text.size() <= wanted) return text;
  whole = false;
  return text.substr(0, text.substr(0, wanted).rfind('\n') + 1);  // no line ends there: nothing
}

std::vector<Range> TextCorpus::Parts::find_documents(const fs::path& path,
                                                     std::string_view text) const {
  if (is_jsonl(path) || (options.split_regex.empty() && options.documents == DocumentRule::lines)) {
    return nonblank_lines(text);
  }
  if (!options.split_regex.empty())
    return split_at_lines(text, Regex::compile(options.split_regex, ExitCode::usage));
  return options.documents == DocumentRule::paragraphs ? paragraphs(text) : whole_text(text);
}

std::string TextCorpus::Parts::from_jsonl(const MappedFile& file, std::string_view line) const {
  const auto check = [&](bool fine, const auto& what) {
    if (fine) [[likely]]
      return;
    const auto before =
        file.bytes().substr(0, static_cast<std::size_t>(line.data() - file.bytes().data()));
    fail(ExitCode::data, "{}:{}: {}", file.path().string(),
         1 + std::count(before.begin(), before.end(), '\n'), what());
  };
  const nlohmann::json value = tessera::parse_json(line);
  check(!value.is_discarded(),
        [] { return "this line is not valid JSON; JSONL has one object a line"; });
  check(value.is_object(), [&] {
    return fmt::format("a JSON object is needed here, not {}; JSONL has one object a line",
                       value.type_name());
  });
  const auto text = value.find(options.jsonl_key);
  check(text != value.end(), [&] {
    return fmt::format(
        "no key '{}'; `tessera data prepare --jsonl-key KEY` reads the text of another key",
        options.jsonl_key);
  });
  check(text->is_string(), [&] {
    return fmt::format("member '{}' is not a string but {}; correct the line", options.jsonl_key,
                       text->type_name());
  });
  return text->get<std::string>();
}

TextCorpus::TextCorpus(const std::vector<fs::path>& files, CorpusOptions options)
    : parts_(std::make_unique<Parts>()) {
  parts_->options = resolve(std::move(options));
  for (const fs::path& file : expand_folders(files)) parts_->add(file);
}
TextCorpus::TextCorpus(TextCorpus&&) noexcept = default;
TextCorpus::~TextCorpus() = default;

std::int64_t TextCorpus::document_count() const {
  return static_cast<std::int64_t>(parts_->documents.size());
}

bool TextCorpus::has_jsonl() const {
  return std::ranges::any_of(parts_->files, is_jsonl, &MappedFile::path);
}
bool TextCorpus::has_plain_text() const {
  return !std::ranges::all_of(parts_->files, is_jsonl, &MappedFile::path);
}
bool TextCorpus::whole() const { return parts_->whole; }

std::string TextCorpus::name() const {
  if (parts_->files.empty()) return "no file";
  const std::size_t more = parts_->files.size() - 1;
  const std::string others =
      more == 0 ? "" : fmt::format(" and {} more file{}", more, more == 1 ? "" : "s");
  return fmt::format("'{}'{}", parts_->files.front().path().string(), others);
}

std::int64_t TextCorpus::document_bytes(std::int64_t document) const {
  return parts_->documents.at(static_cast<std::size_t>(document)).range.size;
}

std::int64_t TextCorpus::total_bytes() const {
  std::int64_t total = 0;
  for (const auto& document : parts_->documents) total += document.range.size;
  return total;
}

std::string TextCorpus::text(std::int64_t document) const {
  const auto& [range, number] = parts_->documents.at(static_cast<std::size_t>(document));
  const MappedFile& file = parts_->files[number];
  const auto slice = file.bytes().substr(static_cast<std::size_t>(range.begin),
                                         static_cast<std::size_t>(range.size));
  if (is_jsonl(file.path())) return parts_->from_jsonl(file, slice);
  return parts_->options.unwrap ? unwrap_lines(slice) : std::string(slice);
}

std::uint64_t TextCorpus::content_hash() const {
  ContentHash hash;
  const CorpusOptions& o = parts_->options;
  hash.update(fmt::format("{}\n{}\n{}\n{}\n", static_cast<int>(o.documents), o.split_regex,
                          o.unwrap, o.jsonl_key));
  for (const MappedFile& file : parts_->files) {
    hash.update(fmt::format("{} {}\n", is_jsonl(file.path()), file.bytes().size()));
    hash.update(file.bytes());
  }
  return hash.value();
}

}  // namespace tessera::data
