// SPDX-License-Identifier: Apache-2.0
// Where tests are asked to compute.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tessera::test {

/// TESSERA_TEST_DEVICE: cpu (the default), sim (the simulated GPU of tests/sim) or cuda (a real
/// one). Throws std::runtime_error for anything else.
inline std::string wanted_device() {
  const char* const set = std::getenv("TESSERA_TEST_DEVICE");
  const std::string wanted = set != nullptr ? set : "cpu";
  if (wanted != "cpu" && wanted != "sim" && wanted != "cuda")
    throw std::runtime_error("TESSERA_TEST_DEVICE=" + wanted + ": it may be cpu, sim or cuda");
  return wanted;
}

}  // namespace tessera::test
