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

}  // namespace tessera
