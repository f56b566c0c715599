// Which of the compiled instruction sets the host kernels run with.
#pragma once

#include <string_view>

namespace tessera::kernels {

enum class InstructionSet { sse, avx2, avx512 };

/// The best one that this processor has, at most the one that TESSERA_CPU=sse|avx2|avx512 names. Fixed at the first call.
/// Throws Error(usage) for another value of TESSERA_CPU.
InstructionSet instruction_set();
std::string_view name_of(InstructionSet set) noexcept;

}  // namespace tessera::kernels
