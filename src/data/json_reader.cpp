// SPDX-License-Identifier: Apache-2.0
#include "json_reader.hpp"

#include <fstream>
#include <system_error>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"

namespace tessera::data {
namespace {

/// Readers of JSON walk it by recursion: nothing that they read nests further than this.
constexpr int kMaxDepth = 64;
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 30;
/// nlohmann quotes what it read last, whatever its length
constexpr std::size_t kReasonBytes = 500;

/// `text`, cut where it is longer than a message should be.
std::string brief(std::string_view text) {
  return std::string(text.substr(0, kReasonBytes)) + (text.size() > kReasonBytes ? "..." : "");
}

bool nests_too_deeply(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      if (depth > kMaxDepth) return true;
    }
  }
  return false;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code problem;
  // opening a named pipe would hang
  const bool is_file = std::filesystem::is_regular_file(path, problem);
  const auto bytes = is_file ? std::filesystem::file_size(path, problem) : std::uintmax_t{0};
  require(bytes <= kMaxBytes, ExitCode::data,
          "'{}' has {} bytes, too many for this kind of file; check the path", path.string(),
          bytes);
  std::ifstream in;
  if (is_file) in.open(path, std::ios::binary);
  require(!problem && is_file && in.good(), ExitCode::data, "cannot read '{}' ({}); check the path",
          path.string(), problem ? problem.message() : "no readable file");
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  require(!nests_too_deeply(text), ExitCode::data,
          "{}: JSON nested too deeply; correct the file or get it again", where);
  try {
    return parse_valid_json(text);
  } catch (const nlohmann::json::exception& problem) {
    std::string why = problem.what();
    if (const auto tag = why.find("] "); tag != why.npos) why.erase(0, tag + 2);
    fail(ExitCode::data, "{}: not valid JSON ({}); correct the file or get it again", where,
         brief(why));
  }
}

void JsonNode::refuse(std::string_view what) const {
  fail(ExitCode::data, "{}: {}", brief(where_), brief(what));
}

JsonNode JsonNode::operator[](const std::string& key) const {
  static const nlohmann::json kAbsent;
  const auto found = object().find(key);
  return {found == value_->end() ? kAbsent : *found, where_ + (root_ ? ", " : ".") + key, false};
}

JsonNode JsonNode::operator[](std::size_t index) const {
  return {array().at(index), fmt::format("{}[{}]", where_, index), false};
}

const std::string& JsonNode::string() const {
  if (!is_string()) refuse(std::string("a string is needed here, not ") + value_->type_name());
  return value_->get_ref<const std::string&>();
}

bool JsonNode::boolean(bool if_absent) const {
  if (is_null()) return if_absent;
  if (!value_->is_boolean())
    refuse(std::string("true or false is needed here, not ") + value_->type_name());
  return value_->get<bool>();
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t most) const {
  const bool fits = value_->is_number_unsigned()
                        ? value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                        : value_->is_number_integer();
  const std::int64_t number = fits ? value_->get<std::int64_t>() : most;
  if (!fits || number < least || number > most) {
    refuse(fmt::format("a whole number from {} to {} is needed here, not {}", least, most,
                       value_->is_number() ? value_->dump() : value_->type_name()));
  }
  return number;
}

const nlohmann::json& JsonNode::object() const {
  if (!is_object()) refuse(std::string("an object is needed here, not ") + value_->type_name());
  return *value_;
}

const nlohmann::json& JsonNode::array() const {
  if (!is_array()) refuse(std::string("a list is needed here, not ") + value_->type_name());
  return *value_;
}

}  // namespace tessera::data
