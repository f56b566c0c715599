// SPDX-License-Identifier: Apache-2.0
#include "injection.hpp"

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string>

#include "sim/process_number.hpp"

namespace tessera::sim::nccl {
namespace {

struct Injection {
  std::mutex mutex;
  std::string text, call;
  int left = 0;

  void read(const char* value) {
    if (text == value) return;
    text = value;
    const std::size_t colon = text.find(':');
    call = text.substr(0, colon);
    left = 0;
    if (colon == std::string::npos) return;
    const char* const end = text.data() + text.size();
    const char* const rank = std::from_chars(text.data() + colon + 1, end, left).ptr;
    std::uint64_t only = process_number();
    if (rank != end) std::from_chars(rank + 1, end, only);
    if (only != process_number()) left = 0;
  }
};

}  // namespace

bool is_injected(std::string_view call) {
  static auto* injection = new Injection;
  const char* value = std::getenv("TESSERA_SIM_NCCL_FAIL");
  const std::lock_guard lock(injection->mutex);
  injection->read(value ? value : "");
  return injection->call == call && injection->left > 0 && --injection->left == 0;
}

}  // namespace tessera::sim::nccl
