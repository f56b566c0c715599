#include "json_text.hpp"

#include <set>
#include <vector>

namespace tessera::checkpoint {
namespace {

using Json = nlohmann::json;

/// What walks a value (Json::dump among it) recurses once for each level: nothing that is read here nests further.
constexpr int kMaxDepth = 64;
constexpr std::size_t kReasonBytes = 500;  ///< nlohmann quotes what it read last, whatever its length

/// Refuses what nests too deeply, and repeated keys: nlohmann keeps the last of them in silence, and a header with
/// repeated keys has no single meaning.
class Scrutiny {
 public:
  explicit Scrutiny(const TextSource& source) : source_(source) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) source_.damaged("its JSON nests too deeply");
    switch (event) {
      case Json::parse_event_t::object_start:
        open_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        open_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!open_.back().insert(value.get<std::string>()).second)
          source_.damaged(fmt::format("the key \"{}\" stands there twice", value.get<std::string>()));
        break;
      default:
        break;
    }
    return true;
  }

 private:
  const TextSource& source_;
  std::vector<std::set<std::string>> open_;
};

}  // namespace

void TextSource::damaged(std::string_view why) const {
  fail(kind, "{} is damaged ({}{})", path.string(), why.substr(0, kReasonBytes),
       why.size() > kReasonBytes ? "..." : "");
}

Json parse_json(std::string_view text, const TextSource& source) {
  Scrutiny scrutiny(source);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& v) { return scrutiny(depth, event, v); });
  } catch (const Json::exception& error) {
    source.damaged(fmt::format("not JSON: {}", error.what()));
  }
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
