// SPDX-License-Identifier: Apache-2.0
#include "host/parallel_for.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>

namespace tessera::kernels {

void run_in_threads(std::int64_t begin, std::int64_t end, std::int64_t grain,
                    void (*body)(const void* context, std::int64_t first, std::int64_t last),
                    const void* context) {
  if (begin >= end) return;
#ifdef _OPENMP
  const std::int64_t most = (end - begin + grain - 1) / grain;
  const auto threads = static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), most));
  if (threads > 1 && omp_in_parallel() == 0) {
#pragma omp parallel num_threads(threads)
    {
      const std::int64_t part = (end - begin + omp_get_num_threads() - 1) / omp_get_num_threads();
      const std::int64_t first = begin + part * omp_get_thread_num();
      if (first < end) body(context, first, std::min(end, first + part));
    }
    return;
  }
#endif
  body(context, begin, end);
}

}  // namespace tessera::kernels
