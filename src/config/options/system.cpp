// SPDX-License-Identifier: Apache-2.0
#include "declare.hpp"

namespace tessera::config {

namespace {

constexpr double kMostSeconds = 1e9, kMostTraced = 1e9;  ///< more is a mistake

OptionList communication() {
  return {
      OPTION(comm.backend,
             "Communication back end: auto = nccl on GPUs, else mpi; strict = mpi with NCCL's "
             "rules; mpi and strict copy "
             "what GPUs send through host memory, unless MPI takes device pointers")
          .one_of({"auto", "mpi", "strict", "nccl"})
          .is_ours(),
      OPTION(comm.init_timeout_seconds,
             "Timeout of a communication call until the first step ends; the job then ends with "
             "code 7")
          .at_least(1)
          .at_most(kMostSeconds),
      OPTION(comm.train_timeout_seconds, "Timeout of a communication call after the first step")
          .at_least(1)
          .at_most(kMostSeconds),
      OPTION(comm.save_timeout_seconds,
             "Timeout of a communication call while a checkpoint is saved or loaded, where ranks "
             "wait for the slowest disk; and of the end of a job that is done")
          .at_least(1)
          .at_most(kMostSeconds)
          .is_ours(),
      OPTION(comm.trace_buf_size,
             "Number of collective calls in the file of each rank when a call hangs, at most 100; "
             "0 = no file")
          .at_least(0),
      OPTION(comm.save_traces_folder,
             "Folder in job.dump_folder for the last calls of each rank when a call hangs"),
      OPTION(comm.save_traces_file_prefix, "Name of that file, before the number of the rank"),
      OPTION(comm.mode, "Real communication, or none for rehearsals")
          .one_of({"default", "fake_backend", "local_tensor"})
          .works_with({"default"},
                      "Tessera always communicates; `tessera train --rehearse RANKS` checks a job "
                      "without its ranks, and tells what they send and take"),
  };
}

OptionList observation() {
  return {
      OPTION(kernels.backend,
             "Kernels on the host: native = Tessera's own for the instruction set; kokkos = those "
             "written in Kokkos; "
             "auto = native on x86, kokkos elsewhere, or what TESSERA_KERNELS names")
          .one_of({"auto", "kokkos", "native"})
          .is_ours(),

      OPTION(metrics.log_freq, "Steps between printed lines; metrics.jsonl has every step")
          .at_least(1),
      OPTION(metrics.peak_flops,
             "FLOP/s of one device, for MFU; none = from the data sheet of the GPU, or estimated "
             "for the processor")
          .above(0)
          .is_ours(),
      OPTION(metrics.disable_color_printing, "Print without colours"),
      OPTION(metrics.enable_tensorboard,
             "Write TensorBoard files too; metrics.jsonl is always written"),
      OPTION(metrics.save_tb_folder, "Folder of the TensorBoard files, inside job.dump_folder")
          .with("metrics.enable_tensorboard"),
      OPTION(metrics.save_for_all_ranks,
             "Write TensorBoard files on every rank, not only on rank 0")
          .with("metrics.enable_tensorboard"),
      OPTION(metrics.enable_wandb, "Send metrics to Weights & Biases")
          .refused("Tessera sends nothing to services; metrics.enable_tensorboard writes "
                   "TensorBoard files"),

      OPTION(profiling.enable_profiling,
             "Trace phases, units, communication and a GPU's kernels in some steps, for "
             "chrome://tracing and Perfetto")
          .short_flag("--profile"),
      OPTION(profiling.save_traces_folder, "Folder of the traces, inside job.dump_folder")
          .with("profiling.enable_profiling"),
      OPTION(profiling.profile_freq,
             "Steps between traces; each trace ends with a step that is a multiple of this")
          .at_least(1)
          .at_most(kMostTraced)
          .with("profiling.enable_profiling"),
      OPTION(profiling.profiler_active, "Steps that a trace covers")
          .at_least(1)
          .at_most(kMostTraced)
          .with("profiling.enable_profiling"),
      OPTION(profiling.profiler_warmup,
             "Steps before those of a trace; profile_freq must be at least profiler_warmup + "
             "profiler_active")
          .at_least(0)
          .at_most(kMostTraced)
          .with("profiling.enable_profiling"),
      OPTION(profiling.enable_memory_snapshot,
             "Write what the memory of each rank holds over every profile_freq-th step, for "
             "Perfetto"),
      OPTION(profiling.save_memory_snapshot_folder,
             "Folder of the snapshots, inside job.dump_folder")
          .with("profiling.enable_memory_snapshot"),
  };
}

OptionList debugging() {
  return {
      OPTION(debug.seed, "Seed of initial values and of the order of samples").at_least(0),
      OPTION(debug.deterministic, "A run has the same bits whenever it is repeated or resumed"),
      OPTION(debug.deterministic_warn_only,
             "Only warn about operations that have no deterministic form on GPUs; without it they "
             "end the job")
          .with("debug.deterministic"),
      OPTION(
          debug.dump_gradients,
          "Folder to which step 1 writes its full, unclipped gradients, with Hugging Face names; "
          "experts and their biases have Tessera's")
          .is_ours(),
      OPTION(debug.inject_faults,
             "Faults to cause on purpose, as STEP:KIND:RANK: nan (a gradient), flip (a bit of a "
             "parameter), spike "
             "(multiplies the parameters by 64), slow (40 ms late from then on), freeze, die, "
             "memory (allocates too much); or, in "
             "a collective call, as "
             "STEP:KIND:RANK:CALL: skip, shape, order, freeze, die, memory")
          .is_ours(),
      OPTION(debug.check_replicas,
             "Steps between comparisons of the replicas' parameters by hash; a difference ends the "
             "run; 0 = never")
          .at_least(0)
          .is_ours(),
      OPTION(debug.check_collectives,
             "Before each collective call, check that all ranks make the same call")
          .is_ours(),
      OPTION(debug.moe_force_load_balance,
             "Assign tokens to experts round-robin, in the order in which a rank has those of a "
             "microbatch, whatever the router chooses"),
  };
}

OptionList others() {
  return {
      OPTION(memory_estimation.enable, "Estimate memory instead of training")
          .refused("a run trains; `tessera train --rehearse RANKS` tells its memory, "
                   "with --job.device cuda that on GPUs"),
      OPTION(memory_estimation.disable_fake_mode, "Estimate memory with real tensors")
          .refused_with("memory_estimation.enable"),

      OPTION(fault_tolerance.enable, "Replicas that join and leave a run (TorchFT)")
          .refused("replicas neither join nor leave a run; with checkpoint.enable = true, submit a "
                   "job again after a "
                   "failure to resume; checkpoint.interval = \"auto\" chooses how often to save"),
      OPTION(fault_tolerance.process_group, "Communication library of the replicas")
          .refused_with("fault_tolerance.enable"),
      OPTION(fault_tolerance.process_group_timeout_ms, "Timeout of one operation")
          .at_least(1)
          .refused_with("fault_tolerance.enable"),
      OPTION(fault_tolerance.replica_id, "Number of this replica")
          .at_least(0)
          .refused_with("fault_tolerance.enable"),
      OPTION(fault_tolerance.group_size, "Number of replicas")
          .at_least(0)
          .refused_with("fault_tolerance.enable"),
      OPTION(fault_tolerance.min_replica_size, "Replicas that a step needs")
          .at_least(1)
          .refused_with("fault_tolerance.enable"),
      OPTION(fault_tolerance.semi_sync_method, "local_sgd or diloco")
          .refused_with("fault_tolerance.enable"),

      OPTION(experimental.custom_import, "Python module to import")
          .refused("Tessera runs no Python; leave the key out"),
      OPTION(experimental.custom_args_module, "Old name of job.custom_config_module")
          .refused("Tessera runs no Python; write the keys that Tessera has into the file"),
  };
}

}  // namespace

OptionList system_options() {
  OptionList all = communication();
  for (const auto& part : {observation(), debugging(), others()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace tessera::config
