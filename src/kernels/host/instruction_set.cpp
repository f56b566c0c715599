// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/instruction_set.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "host/row_functions.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

InstructionSet of_processor() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("fma"))
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

/// Whether the limit that oneDNN reads is one of `names`. Names that it does not know are no limit.
bool onednn_is_limited_to(std::initializer_list<const char*> names) {
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit == nullptr) limit = std::getenv("DNNL_MAX_CPU_ISA");
  return limit != nullptr &&
         std::ranges::any_of(names, [&](const char* name) { return strcasecmp(limit, name) == 0; });
}

bool onednn_has_at_most_avx2() {
  return onednn_is_limited_to({"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2"});
}

/// Whether Tessera and oneDNN may both use AVX-512 here.
bool has_avx512() {
  return instruction_set() == InstructionSet::avx512 && !onednn_has_at_most_avx2();
}

/// Whether both may use AVX2, and oneDNN nothing that TESSERA_CPU forbids.
bool has_avx2() {
  return instruction_set() == InstructionSet::avx2 && !onednn_is_limited_to({"SSE41", "AVX"}) &&
         (of_processor() == InstructionSet::avx2 || onednn_has_at_most_avx2());
}

bool fast_bfloat16() {
  if (!has_avx512() || onednn_is_limited_to({"AVX512_CORE", "AVX512_CORE_VNNI"})) return false;
  if (__builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16")) return true;
  return __builtin_cpu_supports("amx-bf16") &&
         !onednn_is_limited_to({"AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX10_1_512"});
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

bool has_fast_bfloat16() {
  static const bool fast = fast_bfloat16();
  return fast;
}

bool has_fast_onednn() {
  static const bool fast = __builtin_cpu_is("amd") && (has_avx512() || has_avx2());
  return fast;
}

const HostFunctions* vector_functions() {
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return &avx512::host_functions;
    case InstructionSet::avx2:
      return &avx2::host_functions;
    default:
      return &sse::host_functions;
  }
}

}  // namespace tessera::kernels
