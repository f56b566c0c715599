// SPDX-License-Identifier: Apache-2.0
// Replaces nccl_communicator.cpp in a build without TESSERA_WITH_NCCL.
#include "nccl_communicator.hpp"
#include "nccl_versions.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<MpiCommunicator>, int) {
  fail(ExitCode::environment,
       "this build of Tessera has no NCCL; build it with TESSERA_WITH_CUDA=ON and "
       "TESSERA_WITH_NCCL=ON, or "
       "set comm.backend = \"mpi\"");
}

bool abort_device_communicators(const std::string&, std::chrono::milliseconds) { return true; }

void set_device_clock(std::function<void(void*, std::uint64_t*)>) {}

void note_graph_capture() {}

void note_graph_abandoned() {}

void note_graph_launch() {}

void collect_device_waits() {}

NcclVersions nccl_versions() { return {}; }

}  // namespace tessera::comm
