#include "json_text.hpp"

#include <set>
#include <vector>

namespace tessera::checkpoint {
namespace {

using Json = nlohmann::json;

/// nlohmann keeps the last of repeated keys in silence; a header with repeated keys has no single meaning.
class RepeatedKeys {
 public:
  bool operator()(int, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
        open_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        open_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!open_.back().insert(value.get<std::string>()).second) repeated_ = value.get<std::string>();
        break;
      default:
        break;
    }
    return true;
  }
  const std::string& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string repeated_;
};

}  // namespace

void TextSource::damaged(std::string_view why) const { fail(kind, "{} is damaged ({})", path.string(), why); }

Json parse_json(std::string_view text, const TextSource& source) {
  RepeatedKeys keys;
  Json value;
  try {
    value = Json::parse(text, [&keys](int depth, Json::parse_event_t event, Json& v) { return keys(depth, event, v); });
  } catch (const Json::exception& error) {
    source.damaged(fmt::format("not JSON: {}", error.what()));
  }
  if (!keys.repeated().empty()) source.damaged(fmt::format("the key \"{}\" stands there twice", keys.repeated()));
  return value;
}

const Json& member(const Json& object, const char* key, const TextSource& source) {
  if (!object.is_object() || !object.contains(key)) source.damaged(fmt::format("\"{}\" is missing", key));
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
  if (!value.is_array() || value.size() > 32) source.damaged("a shape is not a list of at most 32 numbers");
  Shape shape;
  for (const Json& extent : value) shape.push_back(to_count(extent, "an extent", source));
  return shape;
}

}  // namespace tessera::checkpoint
