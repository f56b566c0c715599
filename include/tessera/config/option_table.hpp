// SPDX-License-Identifier: Apache-2.0
// The one table of options: parsing, checking, `config keys`, man page, completion and "did you
// mean" come from it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/config/job_config.hpp"

namespace tessera::config {

/// What a key can hold; monostate is an optional value that is absent ("none" in files and flags).
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Strings,
                           std::vector<Strings>>;

/// Address of a key's member in a JobConfig.
using Member =
    std::variant<bool*, int*, std::int64_t*, double*, std::string*, Strings*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*,
                 std::optional<std::vector<Strings>>*, std::vector<Strings>*>;

/// What Tessera does with a key.
enum class Support : std::uint8_t {
  acts,      ///< every value has its effect
  refused,   ///< a run with another value than the default or those of `Option::working` does not
             ///< start
  harmless,  ///< accepted, and changes nothing that a run computes: `Option::why` says why not
};

/// What a number has that is left to the planner; it reads and prints as "auto".
inline constexpr int kAutomatic = std::numeric_limits<int>::min();

/// One key of a job; declared in src/config/options.
struct Option {
  std::string_view key;                     ///< "section.key", as in JobConfig
  Member (*member)(JobConfig&);             ///< where the value lives
  std::string_view help;                    ///< one sentence
  std::vector<std::string_view> allowed{};  ///< empty = anything of the type
  /// with Support::refused: values that have their effect
  std::vector<std::string_view> working{};
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::max();  ///< infinity itself only where declared
  bool above_minimum = false;                           ///< the minimum itself is out of range
  bool below_maximum = false;                           ///< the maximum itself is out of range
  bool minus_one = false;                               ///< -1 is in range too
  bool count_too = false;  ///< of a string: a whole number from 1 is allowed, too
  /// of a list of lists: what each holds; [[key]] tables with these keys serve too
  std::vector<std::string_view> columns{};
  std::size_t spare_columns = 0;  ///< this many of the last ones may be omitted
  Support support = Support::acts;
  /// refused: the reason, and after "; " what works instead. Harmless: the reason
  std::string_view why{};
  bool ours = false;  ///< not a key of TorchTitan v0.2.2
  /// matters only where this key turns its feature on, and is refused with it
  std::string_view under{};
  bool (*relevant)(const JobConfig&) = nullptr;  ///< matters only then
  std::vector<std::string_view> aliases{};       ///< other spellings of the key
  std::string_view short_flag{};                 ///< "--data": a flag without the section
  bool looked_up = false;  ///< of an optional: one that is not written is looked up by name, so
                           ///< "none" is printed
  /// What "auto" is: a number of the key, or kAutomatic. A string has the word itself.
  std::optional<int> automatic{};
  bool list_too = false;  ///< of a string: a list of numbers serves, too, as "1,2,3"
  std::string_view true_word{}, false_word{};  ///< of a string: what the booleans mean
};

/// Every option, section by section, in the order in which jobs are written.
const std::vector<Option>& options();

/// The option of a key or of one of its other spellings (aliases, quantize.dense =
/// quantize.linear); null when there is none.
const Option* find_option(std::string_view key);

/// The option of a short flag such as "--data"; null when there is none.
const Option* find_short_flag(std::string_view flag);

/// Is this a section ("training", "quantize.linear")?
bool is_section(std::string_view name);
/// "quantize.linear.float8" of "quantize.linear.float8.emulate"
std::string_view section_of(std::string_view key);
std::string_view leaf_of(std::string_view key);  ///< "emulate"

/// "boolean", "integer", "number", "string", "list of strings", "list of lists".
std::string_view type_name(const Option& option);
bool is_boolean(const Option& option);
bool is_optional(const Option& option);

Value get(const Option& option, const JobConfig& job);
Value default_of(const Option& option);

/// Stores a value after checking type, range and allowed values; an integer is accepted as a
/// number, "none" empties an optional, schedule names ignore case, `-` and `_`. Returns what is
/// wrong ("must be an integer, not a string"), and then stores nothing.
std::optional<std::string> assign(const Option& option, JobConfig& job, Value value);

/// Reads a flag's text as the option's type: lists are comma-separated, lists of lists separate
/// their lists by `;`, and both may be lists in TOML. Text that does not read as the type comes
/// back as a string, which assign() then refuses.
Value value_from_text(const Option& option, std::string_view text);

/// TOML form of a value ("12", "\"GPipe\"", "[\"a\", \"b\"]", "none" when absent); numbers keep
/// every bit.
std::string to_toml(const Value& value);
/// The same without quotes around strings: for messages.
std::string to_text(const Value& value);

/// Is "auto" a value of this option that the planner replaces?
inline bool may_be_left_to_planner(const Option& option) { return option.automatic == kAutomatic; }
/// The options with that value.
std::vector<const Option*> left_to_planner(const JobConfig& job);

/// Can a run start with this option as it is set in `job`? True also where the option does not
/// matter in that job.
bool honoured(const Option& option, const JobConfig& job);
/// Does the option matter in this job? Not where its feature is off.
bool matters(const Option& option, const JobConfig& job);

/// PyTorch's spelling of a pipeline schedule: "interleave-1f1b" -> "Interleaved1F1B"; empty when
/// unknown.
std::string canonical_schedule(std::string_view name);

}  // namespace tessera::config
