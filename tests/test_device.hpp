// Where tests with tensors compute.
#pragma once

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tessera::test {

/// From TESSERA_TEST_DEVICE: cpu (the default), sim (the simulated GPU of tests/sim) or cuda (a real one). Throws
/// std::runtime_error where that device is not there: such a test must not pass on another one.
inline at::Device test_device() {
  const char* const set = std::getenv("TESSERA_TEST_DEVICE");
  const std::string wanted = set != nullptr ? set : "cpu";
  if (wanted == "cpu") return at::kCPU;
  const bool simulated = dlsym(RTLD_DEFAULT, "tessera_simulated_gpu") != nullptr;
  if (wanted == "sim" && !simulated)
    throw std::runtime_error("TESSERA_TEST_DEVICE=sim, but libtessera_sim_gpu.so is not preloaded");
  if (wanted == "cuda" && (simulated || !at::globalContext().hasCUDA()))
    throw std::runtime_error("TESSERA_TEST_DEVICE=cuda, but LibTorch sees no GPU");
  if (wanted != "sim" && wanted != "cuda")
    throw std::runtime_error("TESSERA_TEST_DEVICE=" + wanted + ": it may be cpu, sim or cuda");
  return {at::kCUDA, 0};
}

}  // namespace tessera::test
