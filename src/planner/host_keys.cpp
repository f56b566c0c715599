// SPDX-License-Identifier: Apache-2.0
#include "host_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/planner/memory.hpp"

namespace tessera::planner {
namespace {

using config::TomlEntry;

/// A number of a host's file, and the factor from the file's unit to the value's.
struct HostKey {
  std::string_view section, name;
  double unit;
  double Host::*value;
  std::string_view meaning;  ///< the comment in a file that is written
  bool may_lack = false;
};

constexpr std::array<HostKey, 19> kHostKeys{{
    {"host", "memory_gib", kGiB, &Host::memory_bytes, "of the node"},
    {"host", "copy_gb_s", 1e9, &Host::copy_bytes_per_second, "of a core, read and written"},
    {"host", "thread_rate", 1, &Host::thread_rate, "of threads of one rank, to that of ranks"},
    {"host", "kernel_us", 1e-6, &Host::kernel_seconds, "of an operation, beside its work"},
    {"host", "fork_us", 1e-6, &Host::fork_seconds, "more of it, with several threads"},
    {"core_gflops", "fp32_peak", 1e9, &Host::f32_peak, "clock x FLOP of a cycle"},
    {"core_gflops", "bf16_peak", 1e9, &Host::bf16_peak, ""},
    {"core_gflops", "fp32", 1e9, &Host::f32_flops_per_second, "products, beside their operands"},
    {"core_gflops", "bf16", 1e9, &Host::bf16_flops_per_second, ""},
    {"core_gflops", "attention_forward", 1e9, &Host::attention_forward, "beside its scores"},
    {"core_gflops", "attention_backward", 1e9, &Host::attention_backward, ""},
    {"core_g_s", "fp32_operands", 1e9, &Host::f32_operand_bytes_per_second, "bytes of products"},
    {"core_g_s", "bf16_operands", 1e9, &Host::bf16_operand_bytes_per_second, ""},
    {"core_g_s", "scores_forward", 1e9, &Host::scores_forward, "visible scores of attention"},
    {"core_g_s", "scores_backward", 1e9, &Host::scores_backward, ""},
    {"links", "rank_gb_s", 1e9, &Host::rank_bytes_per_second, "of a rank in a collective"},
    {"links", "call_us", 1e-6, &Host::call_seconds, "of a message, beside its bytes"},
    {"links", "switch_us", 1e-6, &Host::switch_seconds, "more, where ranks take turns", true},
    {"links", "checkpoint_gb_s", 1e9, &Host::checkpoint_bytes_per_second, "of the node", true},
}};

/// Fills a Host from the sections of its file.
class HostReader {
 public:
  explicit HostReader(const FactsFile& facts) : facts_(facts) {}

  Host read() {
    for (const TomlEntry& section : facts_.entries())
      for (const TomlEntry& entry : facts_.table(section)) read(section, entry);
    for (const HostKey& key : kHostKeys)
      require(key.may_lack || host_.*key.value > 0, ExitCode::usage,
              "{} lacks {} in [{}]; add it, or write the file with `tessera plan calibrate`",
              facts_.file(), key.name, key.section);
    return host_;
  }

 private:
  void read(const TomlEntry& section, const TomlEntry& entry) {
    if (section.key == "host" && entry.key == "processor")
      host_.processor = facts_.word(entry);
    else if (section.key == "host" && entry.key == "cores")
      host_.cores = std::max(1, static_cast<int>(facts_.number(entry)));
    else
      number(section, entry);
  }

  void number(const TomlEntry& section, const TomlEntry& entry) {
    std::vector<std::string> sections, names;
    for (const HostKey& key : kHostKeys) {
      if (sections.empty() || sections.back() != key.section) sections.emplace_back(key.section);
      if (key.section != section.key) continue;
      names.emplace_back(key.name);
      if (key.name != entry.key) continue;
      host_.*key.value = facts_.number(entry) * key.unit;
      return;
    }
    if (names.empty()) facts_.unknown(section, sections);
    if (section.key == "host") names.insert(names.begin(), {"processor", "cores"});
    facts_.unknown(entry, names);
  }

  const FactsFile& facts_;
  Host host_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text)
    if (letter >= ' ' && letter != '"' && letter != '\\') out += letter;
  return out + "\"";
}

}  // namespace

std::optional<Host> host_in(const FactsFile& facts) {
  const bool is_host =
      std::ranges::find(facts.entries(), "host", &TomlEntry::key) != facts.entries().end();
  if (!is_host) return std::nullopt;
  return HostReader(facts).read();
}

std::string machine_file(const Host& host, const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "# " + note + "\n";
  std::string_view section;
  for (const HostKey& key : kHostKeys) {
    if (key.section != section) text += fmt::format("[{}]\n", key.section);
    if (section.empty())
      text += fmt::format("processor = {}\ncores = {}\n", quoted(host.processor), host.cores);
    section = key.section;
    const std::string line = fmt::format("{} = {:.4g}", key.name, host.*key.value / key.unit);
    text += key.meaning.empty() ? line + "\n" : fmt::format("{:<32} # {}\n", line, key.meaning);
  }
  return text;
}

}  // namespace tessera::planner
