// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "draft.hpp"
#include "tessera/base/utf8.hpp"
#include "tessera/config/closest_key.hpp"

namespace tessera::config {

namespace {

/// "--training.seq-len" -> "training.seq_len".
std::string key_of(std::string_view flag) {
  std::string key(flag.substr(2));
  std::ranges::replace(key, '-', '_');
  return key;
}

/// The boolean that "section.no_key" switches off, if it is one.
const Option* negated(std::string_view key) {
  const std::string_view leaf = leaf_of(key);
  if (!leaf.starts_with("no_")) return nullptr;
  const Option* option = find_option(fmt::format("{}.{}", section_of(key), leaf.substr(3)));
  return option && is_boolean(*option) ? option : nullptr;
}

/// Words that after a boolean flag are meant as its value; those that TOML does not know are then
/// refused by assign().
bool is_truth(std::string_view word) {
  static constexpr std::array<std::string_view, 13> kWords{
      "true", "True", "TRUE", "false", "False", "FALSE", "yes",
      "no",   "on",   "off",  "0",     "1",     "none"};
  return std::ranges::find(kWords, word) != kWords.end();
}

class Reader {
 public:
  Reader(const std::vector<std::string>& args, Draft& draft) : args_(args), draft_(draft) {}

  CommandLine run() {
    while (at_ < args_.size()) word(args_[at_++]);
    return std::move(line_);
  }

 private:
  void word(const std::string& text) {
    if (text.starts_with("--") && text.size() > 2) return flag(text);
    const Place place = here(shown(text));
    if (text.starts_with('-') && text.size() > 1) return one_dash(text, place);
    file(text, place);
  }

  /// What looks like its value belongs to it, and is not a second mistake.
  void one_dash(const std::string& text, const Place& place) {
    const Option* option = find_option(key_of("-" + text.substr(0, text.find('='))));
    if (text.find('=') == text.npos && next_is_value() && !args_[at_].ends_with(".toml")) ++at_;
    draft_.complain_of_misread(place,
                               option ? fmt::format("a flag has two dashes: --{}", option->key)
                                      : std::string("unknown flag; flags are --section.key value"),
                               option ? std::optional(std::string(option->key)) : std::nullopt);
  }

  void file(const std::string& path, const Place& place) {
    if (!line_.file.empty() && line_.file != path)
      return draft_.complain(
          place, fmt::format("a second job file, after {}; name one file", shown(line_.file)));
    if (path.empty())
      return draft_.complain(here("''"), "the name of the configuration file is empty");
    line_.file = path, line_.file_place = place;
  }

  void flag(const std::string& text) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string key = key_of(name);
    const Place place = here(shown(name));
    std::optional<std::string> inline_text;
    if (equals != text.npos) inline_text = text.substr(equals + 1);
    if (const Option* option = find_short_flag(name)) return known(*option, inline_text, place);
    if (const Option* option = find_option(key)) return known(*option, inline_text, place);
    if (const Option* option = negated(key)) return off(*option, inline_text, place);
    unknown(key, inline_text.has_value(), place);
  }

  void known(const Option& option, const std::optional<std::string>& inline_text,
             const Place& place) {
    const bool boolean = is_boolean(option);
    std::optional<std::string> text = inline_text;
    if (!text && (boolean ? next_is_truth() : next_is_value())) text = args_[at_++];
    if (!text && !boolean)
      return draft_.complain_of_misread(place,
                                        fmt::format("needs a value of type {}", type_name(option)),
                                        std::string(option.key));
    if (option.key == "job.config_file") return file(*text, place);
    if (text && valid_utf8_prefix(*text) < text->size())
      return draft_.complain_of_misread(place, "its value is not valid UTF-8, as a job file is",
                                        std::string(option.key));
    line_.flags.push_back({&option, text ? value_from_text(option, *text) : Value{true}, place});
  }

  void off(const Option& option, const std::optional<std::string>& inline_text,
           const Place& place) {
    if (inline_text)
      return draft_.complain_of_misread(place, "takes no value: it sets the key to false",
                                        std::string(option.key));
    line_.flags.push_back({&option, Value{false}, place});
  }

  /// Swallows what looks like the unknown flag's value, so that it is not taken for a file.
  void unknown(const std::string& key, bool has_value, const Place& place) {
    if (!has_value && next_is_value() && !args_[at_].ends_with(".toml")) ++at_;
    const std::string wanted = without_no(key);
    const auto near = draft_.suggests() ? closest_key(wanted) : std::nullopt;
    const std::string hint =
        near ? fmt::format("; did you mean '--{}'?", wanted == key ? *near : turned_off(*near))
             : "; `tessera config keys` lists all keys";
    draft_.complain_of_misread(
        place, (is_section(key) ? "a section, not a key" : "unknown flag") + hint, near);
  }

  /// "no_compile.enable" and "compile.no_enable" -> "compile.enable".
  static std::string without_no(const std::string& key) {
    if (key.starts_with("no_")) return key.substr(3);
    return leaf_of(key).starts_with("no_")
               ? fmt::format("{}.{}", section_of(key), leaf_of(key).substr(3))
               : key;
  }

  /// "compile.enable" -> "compile.no_enable"; what is not a boolean cannot be turned off.
  static std::string turned_off(const std::string& key) {
    return is_boolean(*find_option(key)) ? fmt::format("{}.no_{}", section_of(key), leaf_of(key))
                                         : key;
  }

  bool next_is_value() const { return at_ < args_.size() && !args_[at_].starts_with("--"); }
  bool next_is_truth() const { return at_ < args_.size() && is_truth(args_[at_]); }
  Place here(std::string label) const { return {std::move(label), 0, 0, static_cast<int>(at_)}; }

  const std::vector<std::string>& args_;
  Draft& draft_;
  CommandLine line_;
  std::size_t at_ = 0;
};

}  // namespace

CommandLine read_command_line(const std::vector<std::string>& args, Draft& draft) {
  return Reader(args, draft).run();
}

}  // namespace tessera::config
