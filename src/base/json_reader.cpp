// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/json_reader.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tessera/base/json.hpp"

namespace tessera {
namespace {

using Json = nlohmann::json;

/// What walks a value (Json::dump among it) recurses once for each level: nothing that is read here
/// nests further.
constexpr std::size_t kMaxDepth = 64;
/// nlohmann quotes what it read last, whatever its length
constexpr std::size_t kReasonBytes = 500;

/// `text`, cut where it is longer than a message should be.
std::string brief(std::string_view text) {
  return std::string(text.substr(0, kReasonBytes)) + (text.size() > kReasonBytes ? "..." : "");
}

[[noreturn]] void refuse_text(const TextSource& source, std::string_view where,
                              std::string_view what) {
  fail(source.kind, "{}: {}", brief(where), brief(what));
}

/// Builds the value. Refuses what nests too deeply, and repeated keys: nlohmann keeps the last of
/// them in silence, and a header with repeated keys has no single meaning. (nlohmann's parser with
/// a callback looks through the whole parent at the end of each child: 50,000 tensors of a header
/// took minutes.)
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const TextSource& source) : source_(source) {}
  Json take() { return std::move(whole_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t& value) override { return put(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    const auto [at, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(name);
    if (!is_new) refuse(fmt::format("the key \"{}\" occurs twice", brief(name)));
    member_ = &at->second;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    std::string why = error.what();
    if (const auto tag = why.find("] "); tag != why.npos) why.erase(0, tag + 2);
    refuse(fmt::format("not valid JSON ({}); correct the file or get it again", brief(why)));
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    refuse_text(source_, source_.path.string(), what);
  }
  /// Where the next value goes.
  Json& place() {
    if (open_.empty()) return whole_;
    if (open_.back()->is_object()) return *member_;
    return open_.back()->get_ref<Json::array_t&>().emplace_back();
  }
  bool put(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json empty) {
    if (open_.size() >= kMaxDepth)
      refuse("JSON nested too deeply; correct the file or get it again");
    Json& at = place();
    at = std::move(empty);
    open_.push_back(&at);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const TextSource& source_;
  Json whole_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;  ///< of the innermost object, whose key was read last
};

}  // namespace

void TextSource::damaged(std::string_view why) const {
  fail(kind, "{} is damaged ({})", path.string(), brief(why));
}

Json parse_json(std::string_view text, const TextSource& source) {
  Builder builder(source);
  Json::sax_parse(text, &builder);
  return builder.take();
}

JsonNode::JsonNode(const Json& value, const TextSource& source)
    : JsonNode(value, source, source.path.string(), true) {}

JsonNode::JsonNode(const Json& value, const TextSource& source, std::string where, bool root)
    : value_(&value), source_(&source), where_(std::move(where)), root_(root) {}

void JsonNode::refuse(std::string_view what) const { refuse_text(*source_, where_, what); }

bool JsonNode::is_null() const { return value_->is_null(); }
bool JsonNode::is_string() const { return value_->is_string(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_object() const { return value_->is_object(); }
std::size_t JsonNode::size() const { return value_->size(); }

JsonNode JsonNode::operator[](const std::string& key) const {
  static const Json kAbsent;
  const auto found = object().find(key);
  return {found == value_->end() ? kAbsent : *found, *source_, where_ + (root_ ? ", " : ".") + key,
          false};
}

JsonNode JsonNode::operator[](std::size_t index) const {
  return {array().at(index), *source_, fmt::format("{}{}[{}]", where_, root_ ? ", " : "", index),
          false};
}

const std::string& JsonNode::string() const {
  if (!is_string()) refuse_type("a string");
  return value_->get_ref<const std::string&>();
}

std::string JsonNode::string_or(std::string_view if_absent) const {
  return is_null() ? std::string(if_absent) : string();
}

bool JsonNode::boolean(bool if_absent) const {
  if (is_null()) return if_absent;
  if (!value_->is_boolean()) refuse_type("true or false");
  return value_->get<bool>();
}

double JsonNode::number(double if_absent) const {
  if (is_null()) return if_absent;
  if (!value_->is_number()) refuse_type("a number");
  return value_->get<double>();
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t most) const {
  const auto number = whole_number(*value_, least, most);
  if (!number) refuse_type(fmt::format("a whole number from {} to {}", least, most));
  return *number;
}

std::int64_t JsonNode::count() const { return integer(0, std::int64_t{1} << 62); }

const Json& JsonNode::object() const {
  if (!is_object()) refuse_type("an object");
  return *value_;
}

const Json& JsonNode::array() const {
  if (!is_array()) refuse_type("a list");
  return *value_;
}

void JsonNode::refuse_type(std::string_view wanted) const {
  refuse(
      fmt::format("{} is needed here, not {}", wanted,
                  value_->is_primitive() && !is_null() ? json_text(*value_) : value_->type_name()));
}

Shape shape_in(const JsonNode& node) {
  if (node.array().size() > 32) node.refuse("a shape has at most 32 dimensions");
  Shape shape;
  for (std::size_t d = 0; d < node.size(); ++d) shape.push_back(node[d].count());
  return shape;
}

}  // namespace tessera
