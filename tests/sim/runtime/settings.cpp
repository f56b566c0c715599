// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <regex>
#include <string>
#include <thread>

#include "sim/process_number.hpp"
#include "sim/sim.hpp"
#include "stream.hpp"

namespace tessera::sim {
namespace {

[[noreturn]] void refuse(const char* name, const char* value, const char* wanted) {
  std::fprintf(stderr, "tessera-sim: %s is \"%s\"; give it %s\n", name, value, wanted);
  std::_Exit(3);
}

std::uint64_t number(const char* name, std::uint64_t otherwise, std::uint64_t least) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t result = std::strtoull(value, &end, 10);
  if (*end != '\0' || *value == '-' || result < least) refuse(name, value, "a whole number");
  return result;
}

std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// Whether a variable has the value `word`; nothing and `otherwise` are the only other ones that it
/// may have.
bool is_set_to(const char* name, const char* word, const char* otherwise) {
  const char* value = std::getenv(name);
  if (value == nullptr || std::strcmp(value, "") == 0 || std::strcmp(value, otherwise) == 0)
    return false;
  if (std::strcmp(value, word) != 0)
    refuse(name, value, (word + std::string(" or ") + otherwise).c_str());
  return true;
}

Settings::Guard guard() {
  const char* value = std::getenv("TESSERA_SIM_GUARD");
  const std::string word = value == nullptr ? "" : value;
  if (word == "keys") return Settings::Guard::keys;
  if (word == "process") return Settings::Guard::process;
  if (!word.empty() && word != "none") refuse("TESSERA_SIM_GUARD", value, "keys, process or none");
  return Settings::Guard::none;
}

Settings::Failure failure() {
  const char* value = std::getenv("TESSERA_SIM_FAIL");
  if (value == nullptr || *value == '\0') return {};
  static const std::regex form("(address|lost):([1-9][0-9]{0,9})(?::([0-9]{1,7}))?");
  std::cmatch parts;
  if (!std::regex_match(value, parts, form))
    refuse("TESSERA_SIM_FAIL", value, "address:N, lost:N, or KIND:N:RANK");
  if (parts[3].matched && std::stoull(parts[3]) != process_number()) return {};
  return {parts[1] == "lost" ? cudaErrorUnknown : cudaErrorIllegalAddress, std::stoull(parts[2])};
}

Settings read_settings() {
  return {.queued_operators = is_set_to("TESSERA_SIM_OPERATORS", "queued", "at_once"),
          .delay_seed = number("TESSERA_SIM_DELAY_SEED", 0, 0),
          .memory_bytes = number("TESSERA_SIM_MEMORY_BYTES", std::uint64_t{16} << 30, 1),
          .devices = static_cast<int>(number("TESSERA_SIM_DEVICES", 1, 0)),
          .device_name = text("TESSERA_SIM_DEVICE_NAME", "Tessera simulated GPU"),
          .capability = static_cast<int>(number("TESSERA_SIM_CAPABILITY", 90, 10)),
          .driver = static_cast<int>(number("TESSERA_SIM_DRIVER", 13000, 0)),
          .cuda_aware_mpi = is_set_to("TESSERA_SIM_CUDA_AWARE_MPI", "1", "0"),
          .host_kernels = is_set_to("TESSERA_SIM_KERNELS", "host", "cuda"),
          .guard = guard(),
          .failure = failure()};
}

std::mt19937_64 make_generator() {
  const std::uint64_t seed = settings().delay_seed, process = process_number(),
                      stream = cudart::Stream::own_number();
  std::seed_seq sequence{seed, seed >> 32, process, stream};
  return std::mt19937_64(sequence);
}

}  // namespace

const Settings& settings() {
  static const Settings read = read_settings();
  return read;
}

void delay() {
  if (settings().delay_seed == 0) return;
  thread_local std::mt19937_64 generator = make_generator();
  std::this_thread::sleep_for(std::chrono::microseconds(generator() % 2001));
}

}  // namespace tessera::sim
