// SPDX-License-Identifier: Apache-2.0
// Where tests with tensors compute.
#pragma once

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "wanted_device.hpp"

namespace tessera::test {

/// The wanted device. Throws std::runtime_error where it is not there: such a test must not pass on
/// another one.
inline at::Device test_device() {
  const std::string wanted = wanted_device();
  if (wanted == "cpu") return at::kCPU;
  const bool simulated = dlsym(RTLD_DEFAULT, "tessera_simulated_gpu") != nullptr;
  if (wanted == "sim" && !simulated)
    throw std::runtime_error("TESSERA_TEST_DEVICE=sim, but libtessera_sim_gpu.so is not preloaded");
  if (wanted == "cuda" && (simulated || !at::globalContext().hasCUDA()))
    throw std::runtime_error("TESSERA_TEST_DEVICE=cuda, but LibTorch sees no GPU");
  return {at::kCUDA, 0};
}

}  // namespace tessera::test
