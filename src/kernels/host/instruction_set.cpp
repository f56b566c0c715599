#include "tessera/kernels/instruction_set.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "host/row_functions.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

InstructionSet of_processor() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"))
    return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
  return InstructionSet::sse;
}

InstructionSet from_name(std::string_view name) {
  for (const auto set : {InstructionSet::sse, InstructionSet::avx2, InstructionSet::avx512})
    if (name_of(set) == name) return set;
  fail(ExitCode::usage, "TESSERA_CPU={} names no instruction set; use sse, avx2 or avx512", name);
}

InstructionSet choose() {
  const InstructionSet best = of_processor();
  const char* wanted = std::getenv("TESSERA_CPU");
  return wanted == nullptr ? best : std::min(best, from_name(wanted));
}

/// Whether the limit that oneDNN reads leaves it the bfloat16 instructions. Names that it does not know are no limit.
bool onednn_may_use_bfloat16() {
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit == nullptr) limit = std::getenv("DNNL_MAX_CPU_ISA");
  if (limit == nullptr) return true;
  for (const char* without : {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"})
    if (strcasecmp(limit, without) == 0) return false;
  return true;
}

}  // namespace

std::string_view name_of(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::sse: return "sse";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::avx512: return "avx512";
  }
  return "";
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

bool has_bfloat16_products() {
  static const bool has = instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16") &&
                          onednn_may_use_bfloat16();
  return has;
}

const HostFunctions& host_functions() {
  switch (instruction_set()) {
    case InstructionSet::avx512: return avx512::host_functions;
    case InstructionSet::avx2: return avx2::host_functions;
    default: return sse::host_functions;
  }
}

}  // namespace tessera::kernels
