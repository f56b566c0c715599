// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/setup.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/cores.hpp"

namespace tessera::train {

comm::Backend backend_of(const plan::JobPlan& plan, at::Device device) {
  using enum plan::BackendChoice;
  const plan::BackendChoice choice = plan.comm.backend;
  require(!(device.is_cpu() && choice == nccl), ExitCode::environment,
          "comm.backend = \"nccl\" needs a GPU and a build with TESSERA_WITH_NCCL; this rank lacks "
          "at least one of them. Use auto or mpi");
  const bool over_mpi = choice == mpi || choice == strict || device.is_cpu();
  require(!plan.sharding.register_buffers || !over_mpi, ExitCode::environment,
          "parallelism.fsdp_register_buffers needs GPUs and NCCL, and this job communicates over "
          "MPI; leave the key out");
  if (choice == strict) return comm::Backend::strict;
  return over_mpi ? comm::Backend::mpi : comm::Backend::nccl;
}

void use_share_of_cores(comm::World& world) {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int cores = cores_of_this_rank(world), wanted = text ? std::atoi(text) : 0;
  at::set_num_threads(wanted > 0 ? std::min(wanted, cores) : cores);
  const std::int64_t fewer = comm::all_reduce_scalar(world.control(), std::int64_t{wanted > cores});
  if (fewer > 0 && world.rank() == 0)
    log::warning(
        "OMP_NUM_THREADS exceeds the number of cores of {} of {} ranks; they start one thread for "
        "each core (rank 0: "
        "{} threads requested, {} cores)",
        fewer, world.size(), wanted, cores);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int largest_threshold = 32 << 20;  // glibc accepts no larger one
  mallopt(M_MMAP_THRESHOLD, largest_threshold);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
}

parallel::Precision precision_of(const plan::PrecisionPlan& types) {
  using parallel::scalar_type_of;
  return {scalar_type_of(types.master), scalar_type_of(types.compute),
          scalar_type_of(types.reduce)};
}

model::Model model_of(const plan::JobPlan& plan, at::Device device) {
  return model::make_decoder(plan.model.shape, plan.data.seq_len,
                             precision_of(plan.precision).compute, device);
}

parallel::StageOptions stage_options_of(const plan::JobPlan& plan, at::Device device) {
  const plan::BatchPlan& batch = plan.batch();
  return {{plan.sharding, precision_of(plan.precision), device},
          plan.tensor,
          {batch.cut, plan.rotation},
          plan.recompute,
          {batch.microbatch_rows, batch.cut.positions()},
          plan.fused_loss,
          plan.linears,
          plan.expert_rows};
}

}  // namespace tessera::train
