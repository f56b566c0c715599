// SPDX-License-Identifier: Apache-2.0
// Which of the compiled instruction sets the host kernels run with.
#pragma once

#include <string_view>

namespace tessera::kernels {

/// none: a processor for which no vector files are compiled.
enum class InstructionSet { none, sse, avx2, avx512 };

/// The best one that this processor has, at most the one that TESSERA_CPU=sse|avx2|avx512 names.
/// Fixed at the first call. Throws Error(usage) for another value of TESSERA_CPU.
InstructionSet instruction_set();
std::string_view name_of(InstructionSet set) noexcept;

/// Whether this processor multiplies bfloat16 matrices faster than float32 ones: with AMX, or with
/// AVX512-BF16 on AMD. Intel's AVX512-BF16 does as many products in a cycle as its float32
/// instructions, and oneDNN is slower with it than MKL in float32. False where TESSERA_CPU or
/// oneDNN's ONEDNN_MAX_CPU_ISA (DNNL_MAX_CPU_ISA) forbids the instructions. Fixed at the first
/// call.
bool has_fast_bfloat16();

/// Whether oneDNN multiplies float32 matrices faster than MKL does: on AMD processors, for which
/// MKL has AVX2 code only. False where TESSERA_CPU or oneDNN's limit forbids AVX2, and where
/// TESSERA_CPU forbids what oneDNN would use. Fixed at the first call.
bool has_fast_onednn();

}  // namespace tessera::kernels
