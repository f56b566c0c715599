// SPDX-License-Identifier: Apache-2.0
// In place of instruction_set.cpp on processors that have no vector files.
#include "host/row_functions.hpp"
#include "tessera/kernels/instruction_set.hpp"

namespace tessera::kernels {

InstructionSet instruction_set() { return InstructionSet::none; }

bool has_fast_bfloat16() { return false; }

bool has_fast_onednn() { return false; }

const HostFunctions* vector_functions() { return nullptr; }

}  // namespace tessera::kernels
