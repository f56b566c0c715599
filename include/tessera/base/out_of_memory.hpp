// SPDX-License-Identifier: Apache-2.0
// Telling that memory is used up from everything else that can go wrong.
#pragma once

#include <exception>
#include <string>

namespace tessera {

/// "" if `error` is not about memory. Else what the allocator said, in one line; "out of memory"
/// where it said nothing. LibTorch's allocators do not throw std::bad_alloc, and the host's has no
/// type of its own: they are recognized by their text.
std::string out_of_memory(const std::exception& error);

/// Keeps what to change should this process's job run out of memory: known before it does.
void keep_memory_advice(std::string advice);
/// What was kept, or `otherwise`. Any thread may ask.
std::string memory_advice(std::string otherwise);

}  // namespace tessera
