// SPDX-License-Identifier: Apache-2.0
// Reading and setting a key's member through its address, whatever its type.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "draft.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::config {

namespace {

constexpr std::string_view kAuto = "auto";

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not deduce aggregates

template <class T>
struct Unwrapped {
  using type = T;
  static constexpr bool optional = false;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
  static constexpr bool optional = true;
};

/// What a member looks like, without a job: its type decides all that follows.
Member member_of(const Option& option) {
  static JobConfig scratch;
  return option.member(scratch);
}

std::string_view kind_of(const Value& value) {
  static constexpr std::array<std::string_view, 7> kNames{
      "none",     "a boolean",         "an integer",     "a number",
      "a string", "a list of strings", "a list of lists"};
  return kNames[value.index()];
}

template <class T>
constexpr std::string_view type_name_of() {
  if constexpr (std::is_same_v<T, bool>)
    return "boolean";
  else if constexpr (std::is_integral_v<T>)
    return "integer";
  else if constexpr (std::is_same_v<T, double>)
    return "number";
  else if constexpr (std::is_same_v<T, std::string>)
    return "string";
  else if constexpr (std::is_same_v<T, Strings>)
    return "list of strings";
  else
    return "list of lists";
}

/// A flag's whole number that no integer holds stays text.
bool exceeds_64_bits(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return read == end && error == std::errc::result_out_of_range;
}

/// How values of a type are written, where its name does not say it.
std::string_view form_of(std::string_view type) {
  if (type == "boolean") return " (true or false)";
  if (type == "list of lists") return R"( ([["a", "b"], ["c"]], or a,b;c as a flag))";
  return type == "list of strings" ? R"( (["a", "b"], or a,b as a flag))" : "";
}

template <class T>
std::string mismatch(const Value& value) {
  const std::string_view wanted = type_name_of<T>();
  const auto* text = std::get_if<std::string>(&value);
  if (wanted == "integer" && text && exceeds_64_bits(*text))
    return fmt::format("must be an integer of 64 bits, which {} is not", shown(*text));
  return fmt::format("must be {} {}{}, not {} ({})", wanted == "integer" ? "an" : "a", wanted,
                     form_of(wanted), kind_of(value), shown(to_text(value)));
}

/// Stores `value` in `target`; false when the types do not fit.
template <class T>
bool store(T& target, const Value& value) {
  if constexpr (std::is_same_v<T, int>) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (integer) target = static_cast<int>(*integer);
    return integer;
  } else if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      return target = static_cast<double>(*integer), true;
    const auto* number = std::get_if<double>(&value);
    if (number) target = *number;
    return number;
  } else {
    const auto* same = std::get_if<T>(&value);
    if (same) target = *same;
    return same;
  }
}

template <class T>
bool store(std::optional<T>& target, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return target.reset(), true;
  T inner{};
  if (!store(inner, value)) return false;
  target = std::move(inner);
  return true;
}

bool is_bounded(const Option& option) {
  return option.maximum < std::numeric_limits<double>::max();
}

std::string range_text(const Option& option) {
  std::string text;
  if (std::isfinite(option.minimum))
    text = fmt::format("{} {}", option.above_minimum ? "above" : "at least", option.minimum);
  if (is_bounded(option))
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ",
                        option.below_maximum ? "below" : "at most", option.maximum);
  if (option.minus_one) text += ", or -1";
  return may_be_left_to_planner(option) ? text + ", or auto" : text;
}

std::optional<std::string> check_range(const Option& option, double number) {
  if (option.minus_one && number == -1) return {};
  const bool low = option.above_minimum ? !(number > option.minimum) : !(number >= option.minimum);
  const bool high = option.below_maximum ? !(number < option.maximum) : !(number <= option.maximum);
  if (low || high)
    return fmt::format("must be {}, not {}",
                       std::isnan(number)            ? "a number"
                       : high && !is_bounded(option) ? "a finite number"
                                                     : range_text(option),
                       number);
  return {};
}

std::optional<std::string> check_integer(const Option& option, std::int64_t number) {
  if (may_be_left_to_planner(option) && number == kAutomatic) return {};
  constexpr std::int64_t kLargest = std::numeric_limits<int>::max();
  if (std::holds_alternative<int*>(member_of(option)) && number > kLargest)
    return fmt::format("must be at most {}, not {}", kLargest, number);
  return check_range(option, static_cast<double>(number));
}

bool is_count(std::string_view text) {
  return !text.empty() && text.size() < 7 && text[0] != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "ALWAYS" is "always"; no two allowed words differ in nothing else.
bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<std::string> check_allowed(const Option& option, std::string& text) {
  if (option.allowed.empty()) return {};
  if (option.key == "parallelism.pipeline_parallel_schedule")
    if (auto name = canonical_schedule(text); !name.empty()) text = std::move(name);
  if (option.count_too && is_count(text)) return {};
  if (const auto same =
          std::ranges::find_if(option.allowed, [&](auto word) { return same_word(word, text); });
      same != option.allowed.end())
    return text = *same, std::nullopt;
  return fmt::format("must be one of {}{}, not '{}'{}", fmt::join(option.allowed, ", "),
                     option.count_too ? " or a whole number from 1" : "", shown(text),
                     did_you_mean(text, {option.allowed.begin(), option.allowed.end()}));
}

std::optional<std::string> check_rows(const Option& option, const std::vector<Strings>& rows) {
  if (option.columns.empty()) return {};
  for (const Strings& row : rows)
    if (row.size() > option.columns.size() ||
        row.size() + option.spare_columns < option.columns.size())
      return fmt::format("must have rows of {} ({}), not of {}", option.columns.size(),
                         fmt::join(option.columns, ", "), row.size());
  return {};
}

std::optional<std::string> check(const Option& option, Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return check_integer(option, *integer);
  if (const auto* number = std::get_if<double>(&value)) return check_range(option, *number);
  if (auto* text = std::get_if<std::string>(&value)) return check_allowed(option, *text);
  if (const auto* rows = std::get_if<std::vector<Strings>>(&value))
    return check_rows(option, *rows);
  return {};
}

/// Words for booleans, for who writes `true` where a word is expected.
void interpret_boolean(const Option& option, Value& value) {
  if (option.true_word.empty()) return;
  const auto* flag = std::get_if<bool>(&value);
  const auto* text = std::get_if<std::string>(&value);
  const auto is = [&](bool wanted, std::string_view word) {
    return (flag && *flag == wanted) || (text && same_word(*text, word));
  };
  if (is(true, "true"))
    value = std::string(option.true_word);
  else if (is(false, "false"))
    value = std::string(option.false_word);
}

/// "none" empties an optional; `fqns` may be one string (TorchTitan's type there); [] is a list of
/// lists, too.
void interpret(const Option& option, Value& value) {
  interpret_boolean(option, value);
  const auto* list = std::get_if<Strings>(&value);
  if (list && list->empty() && type_name(option) == "list of lists") value = std::vector<Strings>{};
  if (const auto* count = std::get_if<std::int64_t>(&value); count && option.count_too)
    value = fmt::format("{}", *count);
  const auto* text = std::get_if<std::string>(&value);
  if (!text) return;
  if (option.automatic && *text == kAuto && type_name(option) == "integer")
    value = std::int64_t{*option.automatic};
  else if (is_optional(option) && (*text == "none" || *text == "None"))
    value = std::monostate{};
  else if (leaf_of(option.key) == "fqns")
    value = value_from_text(option, *text);
}

}  // namespace

std::string_view type_name(const Option& option) {
  return std::visit(
      [](auto* member) {
        return type_name_of<typename Unwrapped<std::remove_pointer_t<decltype(member)>>::type>();
      },
      member_of(option));
}

bool is_boolean(const Option& option) { return std::holds_alternative<bool*>(member_of(option)); }

bool is_optional(const Option& option) {
  return std::visit(
      [](auto* member) { return Unwrapped<std::remove_pointer_t<decltype(member)>>::optional; },
      member_of(option));
}

Value get(const Option& option, const JobConfig& job) {
  // The table has one accessor for reading and writing; nothing is written here.
  const Member member = option.member(const_cast<JobConfig&>(job));
  const auto whole = [&](std::int64_t number) -> Value {
    if (may_be_left_to_planner(option) && number == kAutomatic) return std::string(kAuto);
    return number;
  };
  return std::visit(Overloaded{[&](int* number) { return whole(*number); },
                               [&](std::int64_t* number) { return whole(*number); },
                               []<class T>(std::optional<T>* maybe) -> Value {
                                 return *maybe ? Value{**maybe} : Value{};
                               },
                               [](auto* plain) -> Value { return *plain; }},
                    member);
}

Value default_of(const Option& option) {
  static const JobConfig defaults;
  return get(option, defaults);
}

std::optional<std::string> assign(const Option& option, JobConfig& job, Value value) {
  interpret(option, value);
  const auto fits = [&](auto* member) -> std::optional<std::string> {
    using T = std::remove_pointer_t<decltype(member)>;
    T probe{};
    if (!store(probe, value)) return mismatch<typename Unwrapped<T>::type>(value);
    return {};
  };
  if (auto wrong = std::visit(fits, member_of(option))) return wrong;
  if (auto wrong = check(option, value)) return wrong;
  std::visit([&](auto* member) { store(*member, value); }, option.member(job));
  return {};
}

}  // namespace tessera::config
