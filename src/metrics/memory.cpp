// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/memory.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "tessera/base/text_file.hpp"

namespace tessera::metrics {
namespace {

/// "VmRSS:\t   1684 kB" -> bytes; 0 where the key is missing.
std::int64_t bytes_of(std::string_view status, std::string_view key) {
  const auto at = status.find(key);
  if (at == status.npos) return 0;
  const auto digits = status.find_first_of("0123456789", at + key.size());
  if (digits == status.npos) return 0;
  std::int64_t kibibytes = 0;
  std::from_chars(status.data() + digits, status.data() + status.size(), kibibytes);
  return kibibytes * 1024;
}

/// A number in a file of the control group, by itself; empty where there is none ("max").
std::optional<std::int64_t> group_bytes(const std::string& file) {
  const std::string text = read_text(file).value_or("");
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc{} && end != text.data() ? std::optional(bytes) : std::nullopt;
}

/// Folder of this process's control group (version 2: "0::/path" is the line); empty where there is
/// none.
std::string control_group() {
  const std::string lines = read_text("/proc/self/cgroup").value_or("");
  const auto at = lines.find("0::/");
  if (at == lines.npos) return {};
  return "/sys/fs/cgroup" + lines.substr(at + 3, lines.find('\n', at) - at - 3);
}

}  // namespace

std::int64_t available_host_bytes() {
  std::int64_t bytes = bytes_of(read_text("/proc/meminfo").value_or(""), "MemAvailable:");
  const std::string group = control_group();
  const auto limit = group_bytes(group + "/memory.max"),
             used = group_bytes(group + "/memory.current");
  if (!group.empty() && limit && used)
    bytes = std::min(bytes, std::max<std::int64_t>(0, *limit - *used));
  return bytes;
}

ProcessMemory process_memory_of(std::string_view status) {
  return {bytes_of(status, "VmRSS:"), bytes_of(status, "VmHWM:")};
}

ProcessMemory process_memory() {
  return process_memory_of(read_text("/proc/self/status").value_or(""));
}

}  // namespace tessera::metrics
