// SPDX-License-Identifier: Apache-2.0
#include "json_text.hpp"

#include <utility>
#include <vector>

namespace tessera::checkpoint {
namespace {

using Json = nlohmann::json;

/// What walks a value (Json::dump among it) recurses once for each level: nothing that is read here
/// nests further.
constexpr std::size_t kMaxDepth = 64;
/// nlohmann quotes what it read last, whatever its length
constexpr std::size_t kReasonBytes = 500;

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
    if (!is_new) source_.damaged(fmt::format("the key \"{}\" occurs twice", name));
    member_ = &at->second;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    source_.damaged(fmt::format("not JSON: {}", error.what()));
  }

 private:
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
    if (open_.size() >= kMaxDepth) source_.damaged("its JSON is nested too deeply");
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
  fail(kind, "{} is damaged ({}{})", path.string(), why.substr(0, kReasonBytes),
       why.size() > kReasonBytes ? "..." : "");
}

Json parse_json(std::string_view text, const TextSource& source) {
  Builder builder(source);
  Json::sax_parse(text, &builder);
  return builder.take();
}

const Json& member(const Json& object, const char* key, const TextSource& source) {
  if (!object.is_object() || !object.contains(key))
    source.damaged(fmt::format("\"{}\" is missing", key));
  return object.at(key);
}

std::string text_member(const Json& object, const char* key, const TextSource& source) {
  const Json& value = member(object, key, source);
  if (!value.is_string()) source.damaged(fmt::format("\"{}\" is not a string", key));
  return value.get<std::string>();
}

std::int64_t to_count(const Json& value, const char* what, const TextSource& source) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 62;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > limit)
    source.damaged(fmt::format("{} is not a whole number in [0, 2^62]", what));
  return value.get<std::int64_t>();
}

std::int64_t count_member(const Json& object, const char* key, const TextSource& source) {
  return to_count(member(object, key, source), key, source);
}

Shape to_shape(const Json& value, const TextSource& source) {
  if (!value.is_array() || value.size() > 32)
    source.damaged("a shape is not a list of at most 32 numbers");
  Shape shape;
  for (const Json& extent : value) shape.push_back(to_count(extent, "an extent", source));
  return shape;
}

}  // namespace tessera::checkpoint
