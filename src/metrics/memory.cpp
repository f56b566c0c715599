#include "tessera/metrics/memory.hpp"

#include <charconv>
#include <fstream>

#include "text_file.hpp"

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

}  // namespace

ProcessMemory process_memory_of(std::string_view status) {
  return {bytes_of(status, "VmRSS:"), bytes_of(status, "VmHWM:")};
}

ProcessMemory process_memory() { return process_memory_of(read_text("/proc/self/status").value_or("")); }

bool reset_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

}  // namespace tessera::metrics
