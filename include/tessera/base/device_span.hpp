// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// Something that a device did: a kernel, a copy or a memset, or an operator on the host.
struct DeviceSpan {
  std::string name;           ///< as its compiler has it: with namespaces, arguments and types
  std::int64_t stream = 0;    ///< a number of its stream, or of its thread on the host
  double begin = 0, end = 0;  ///< in seconds of std::chrono::steady_clock
};

}  // namespace tessera
