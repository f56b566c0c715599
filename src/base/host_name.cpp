// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/host_name.hpp"

#include <limits.h>
#include <unistd.h>

#include <array>

namespace tessera {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace tessera
