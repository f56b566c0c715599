// Which of the compiled instruction sets the host kernels run with.
#pragma once

#include <string_view>

namespace tessera::kernels {

enum class InstructionSet { sse, avx2, avx512 };

/// The best one that this processor has, at most the one that TESSERA_CPU=sse|avx2|avx512 names. Fixed at the first call.
/// Throws Error(usage) for another value of TESSERA_CPU.
InstructionSet instruction_set();
std::string_view name_of(InstructionSet set) noexcept;

/// Whether this processor multiplies bfloat16 matrices by instructions of its own (AVX512-BF16, AMX), and neither
/// TESSERA_CPU nor oneDNN's ONEDNN_MAX_CPU_ISA (DNNL_MAX_CPU_ISA) forbids them. Fixed at the first call.
bool has_bfloat16_products();

}  // namespace tessera::kernels
