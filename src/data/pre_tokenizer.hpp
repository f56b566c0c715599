// SPDX-License-Identifier: Apache-2.0
// Cuts text into words, in the steps that tokenizer.json names; merges never cross the border of a
// word.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regex.hpp"
#include "tessera/base/json_reader.hpp"

namespace tessera::data {

class PreTokenizer {
 public:
  using Sink = std::function<void(std::string_view)>;

  /// From the value of "pre_tokenizer": Split, Digits, ByteLevel and Sequences of them; refuses
  /// others with a message.
  static PreTokenizer from_json(const JsonNode& node);

  /// Calls `sink` with each word of `text` (UTF-8), in order.
  void split(std::string_view text, const Sink& sink) const { run(text, 0, sink); }

 private:
  struct Step {
    std::optional<Regex> pattern;  ///< none: put a space in front of what does not begin with one
    bool keep_others = true;       ///< what is between the matches
  };

  void add(const JsonNode& node);
  void add_split(const JsonNode& node);
  void add_byte_level(const JsonNode& node);
  void run(std::string_view text, std::size_t step, const Sink& sink) const;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace tessera::data
