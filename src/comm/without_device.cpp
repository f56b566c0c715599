// SPDX-License-Identifier: Apache-2.0
// Replaces device.cpp and staged_communicator.cpp in a build without TESSERA_WITH_CUDA.
#include "device_memory.hpp"
#include "staged_communicator.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

[[noreturn]] void no_device() {
  fail(ExitCode::environment,
       "this build of Tessera has no GPU support; build with TESSERA_WITH_CUDA=ON");
}

}  // namespace

void set_compute_stream_provider(std::function<void*()>) {}
DeviceFacts device_facts(int, bool) { return {}; }
void use_device(int) { no_device(); }
void copy_on_device(const void*, void*, std::size_t) { no_device(); }
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<MpiCommunicator>) {
  no_device();
}

}  // namespace tessera::comm
