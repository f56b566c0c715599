// SPDX-License-Identifier: Apache-2.0
// JSON from files that people or other programs wrote: syntax errors, repeated keys and values of
// another type become one Error that names the file and the place in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/tensor_slice.hpp"

namespace tessera {

/// Where a text came from and which kind of error its faults are.
struct TextSource {
  std::filesystem::path path;
  ExitCode kind;
  /// "FILE is damaged (WHY)": for contents that contradict each other.
  [[noreturn]] void damaged(std::string_view why) const;
};

/// The value of a text from outside. Throws Error(source.kind) for syntax errors, nesting beyond 64
/// levels and repeated keys, which give a text no single meaning.
nlohmann::json parse_json(std::string_view text, const TextSource& source);

/// A value and the path to it ("tokenizer.json, model.vocab"); cheap, and valid as long as the
/// document and the source. Every accessor throws Error(source.kind) for a value of another type.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, const TextSource& source);

  bool is_null() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  /// Member of an object; a null node when it is not there.
  JsonNode operator[](const std::string& key) const;
  /// Element of an array.
  JsonNode operator[](std::size_t index) const;
  std::size_t size() const;

  const std::string& string() const;
  std::string string_or(std::string_view if_absent) const;
  bool boolean(bool if_absent) const;
  double number(double if_absent) const;
  /// A whole number in [least, most].
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// A whole number in [0, 2^62].
  std::int64_t count() const;
  /// This, checked to be an object or an array.
  const nlohmann::json& object() const;
  const nlohmann::json& array() const;

  const std::string& where() const { return where_; }
  const TextSource& source() const { return *source_; }
  /// Throws Error(source.kind): "WHERE: what".
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  JsonNode(const nlohmann::json& value, const TextSource& source, std::string where, bool root);
  [[noreturn]] void refuse_type(std::string_view wanted) const;

  const nlohmann::json* value_;
  const TextSource* source_;
  std::string where_;
  bool root_;
};

/// At most 32 dimensions, as HDF5.
Shape shape_in(const JsonNode& node);

}  // namespace tessera
