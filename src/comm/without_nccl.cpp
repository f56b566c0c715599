// Stands for the device files in a build without TESSERA_WITH_NCCL.
#include "device_memory.hpp"
#include "nccl_communicator.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

[[noreturn]] void no_device() {
  fail(ExitCode::environment, "this build of Tessera has no GPU communication; build it with TESSERA_WITH_CUDA=ON and TESSERA_WITH_NCCL=ON");
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<MpiCommunicator>) { no_device(); }
void copy_on_device(const void*, void*, std::size_t) { no_device(); }
int choose_device(int) { no_device(); }
void set_compute_stream_provider(std::function<void*()>) {}

}  // namespace tessera::comm
