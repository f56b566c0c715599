// SPDX-License-Identifier: Apache-2.0
// Loops on the threads that LibTorch's own operations use.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// For parallel_for(): body(context, first, last) on parts of [begin, end), each on a thread of its
/// own.
void run_in_threads(std::int64_t begin, std::int64_t end, std::int64_t grain,
                    void (*body)(const void* context, std::int64_t first, std::int64_t last),
                    const void* context);

/// body(first, last) on parts of [begin, end) of equal size: as many as threads at most, and no
/// more than one for each `grain` elements begun; one part inside another parallel loop. `body`
/// must not throw. at::parallel_for() is serial in a file that is compiled without OpenMP, as all
/// files of this project are but parallel_for.cpp.
template <class Body>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, const Body& body) {
  const auto call = [](const void* context, std::int64_t first, std::int64_t last) {
    (*static_cast<const Body*>(context))(first, last);
  };
  run_in_threads(begin, end, grain, call, &body);
}

}  // namespace tessera::kernels
