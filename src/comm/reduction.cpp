// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <array>

#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

std::size_t count_usable() {
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return 1 + (__builtin_cpu_supports("avx2") ? 1 + (avx512 ? 1 : 0) : 0);
#else
  return 1;
#endif
}

}  // namespace

std::span<Reduction* const> usable_reductions() {
#if defined(__x86_64__)
  static constexpr std::array<Reduction*, 3> all{&reduce_generic, &reduce_avx2, &reduce_avx512};
#else
  static constexpr std::array<Reduction*, 1> all{&reduce_generic};
#endif
  static const std::size_t usable = count_usable();
  return std::span(all).first(usable);
}

void reduce_parts(std::span<const void* const> parts, void* out, std::int64_t count, DType dtype,
                  Op op) {
  static Reduction* const best = usable_reductions().back();
  require(best(parts.data(), static_cast<int>(parts.size()), out, count, dtype, op),
          ExitCode::usage, "{} has no reduction; reduce bf16 or f32 instead", name_of(dtype));
}

}  // namespace tessera::comm
