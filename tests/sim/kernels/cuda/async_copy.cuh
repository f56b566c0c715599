// SPDX-License-Identifier: Apache-2.0
// src/kernels/cuda/async_copy.cuh for the simulated GPU: the include path puts this one first. What
// a thread copies is poison until it waits.
#pragma once

#include "cuda_on_host.hpp"

namespace tessera::kernels::device {

template <class Pack>
void copy_async(Pack* shared, const void* from) {
  sim::AsyncCopies::Copy copy{shared, {}}, poison{shared, {~0ULL, ~0ULL}};
  static_assert(sizeof(Pack) == sizeof copy.words);
  const Pack value = *static_cast<const Pack*>(from);
  __builtin_memcpy(copy.words, &value, sizeof value);
  poison.land();
  if (sim::this_block().async_copies().is_coming(shared))
    sim::this_block().accesses().report("copies to where another copy has not arrived");
  sim::this_block().async_copies().begin(copy);
}

inline void end_copies() { sim::this_block().async_copies().end_group(); }

inline void wait_for_copies() {
  for (const sim::AsyncCopies::Copy& copy : sim::this_block().async_copies().take_arrived())
    copy.land();
}

}  // namespace tessera::kernels::device
