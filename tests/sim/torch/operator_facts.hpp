// SPDX-License-Identifier: Apache-2.0
// What LibTorch's operators do on a GPU, unlike those for the host that compute for it here.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <string_view>

namespace tessera::sim {

/// Whether the operator takes indices in host memory.
bool takes_host_indices(std::string_view name);

/// Whether it packs pointers on the way to a GPU in pinned memory, whose allocator asks for events.
bool packs_in_pinned_memory(std::string_view name);

/// Throws where a GPU would add numbers that are no integers to one element in any order, and round
/// to its type after each: index_add, and with it the gradient of index_select; index_reduce and
/// scatter_reduce. Results differ from run to run, and 256 is the largest sum of ones in bfloat16.
/// Also for the gradient of at::embedding in a type of 16 bits: of up to 3,072 tokens, a GPU rounds
/// it after each 32. `stack` ends with the arguments.
void refuse_inexact_adds(const c10::FunctionSchema& schema, const torch::jit::Stack& stack);

/// Throws where scatter_add adds more than one number that is no integer to an element, as above.
/// It is also the gradient of gather. `arguments` are in host memory, and have their values.
void refuse_repeated_adds(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments);

}  // namespace tessera::sim
