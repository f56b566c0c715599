// SPDX-License-Identifier: Apache-2.0
#include "declare.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::config {

namespace {

bool pipelined(const JobConfig& job) { return job.parallelism.pipeline_parallel_degree != 1; }
bool shares_experts(const JobConfig& job) { return job.parallelism.expert_parallel_degree != 1; }
bool shares_sequences(const JobConfig& job) { return job.parallelism.context_parallel_degree != 1; }

/// Those that Tessera generates, and TorchTitan's words for one from a file.
Declaration::Words schedules() {
  Declaration::Words words = schedule::names();
  words.insert(words.end(), {"PipelineScheduleSingle", "PipelineScheduleMulti"});
  return words;
}

constexpr double kMostLayers = 1e6;

}  // namespace

OptionList parallelism_options() {
  return {
      OPTION(parallelism.data_parallel_replicate_degree,
             "Copies of the sharded model; auto = the planner's choice")
          .at_least(1)
          .or_minus_one()
          .or_auto(kAutomatic),
      OPTION(parallelism.data_parallel_shard_degree,
             "Ranks that share one copy of parameters; -1 = the ranks that are left")
          .at_least(1)
          .or_minus_one(),
      OPTION(parallelism.fsdp_reshard_after_forward,
             "When to free gathered parameters after forward; default = unless pipelined; true = "
             "always; false = "
             "never; last_layer = except for the last unit; auto = what exceeds half of the memory "
             "that a step leaves "
             "free; k = each of "
             "k neighbouring ranks keeps 1/k")
          .one_of({"default", "always", "never", "last_layer", "auto"})
          .or_count()
          .or_boolean("always", "never")
          .also_spelt(
              {"parallelism.reshard_after_forward_mode", "parallelism.reshard_after_forward"}),
      OPTION(parallelism.reshard_rules,
             "Reshard policies by name of the unit; the first rule that matches applies: tables of "
             "match (a regular "
             "expression) and policy; as a flag: layers[.]0,never;layers,always")
          .rows_of({"match", "policy"})
          .is_ours(),
      OPTION(parallelism.fsdp_gradient_accumulation,
             "Accumulate gradients unsharded (one reduction per step) or sharded (one per "
             "microbatch, less memory); "
             "default = sharded unless pipelined or deterministic")
          .one_of({"default", "unsharded", "sharded"})
          .is_ours(),
      OPTION(parallelism.fsdp_prefetch_units,
             "Units whose weights are gathered ahead of the unit that computes; each needs the "
             "memory of its weights")
          .at_least(0)
          .is_ours(),
      OPTION(parallelism.fsdp_register_buffers,
             "Register the buffers of gathers and reductions with NCCL (symmetric memory), so that "
             "GPUs access each other's directly; needs NCCL 2.27")
          .is_ours(),
      OPTION(
          parallelism.tensor_parallel_degree,
          "Ranks over which each weight matrix is split, and the tokens between matrix products; "
          "auto = the planner's choice")
          .at_least(1)
          .or_minus_one()
          .or_auto(kAutomatic),
      OPTION(parallelism.disable_loss_parallel,
             "Gather the logits of all tensor-parallel ranks before the loss"),
      OPTION(parallelism.disable_sequence_parallel,
             "Compute norms and residuals of every token on every tensor-parallel rank; needs more "
             "memory")
          .is_ours(),
      OPTION(parallelism.enable_async_tensor_parallel,
             "Split tokens into chunks, and transfer one while another is multiplied (needs "
             "sequence parallelism)"),
      OPTION(parallelism.async_tensor_parallel_chunks, "Chunks of each rank's tokens")
          .at_least(1)
          .is_ours(),
      OPTION(parallelism.pipeline_parallel_degree,
             "Ranks that share the layers; auto = the planner's choice")
          .at_least(1)
          .or_minus_one()
          .or_auto(kAutomatic),
      OPTION(parallelism.module_fqns_per_model_part,
             "Modules of each pipeline stage; as a flag: a,b;c,d")
          .only_if(&pipelined),
      OPTION(
          parallelism.pipeline_parallel_split,
          "Where stages begin: layers = as in TorchTitan; balanced, balanced_sublayer = even "
          "FLOPs, cut between "
          "blocks or at any cell; measured = even times of the cells; auto = the planner's choice "
          "of the first three")
          .one_of({"layers", "balanced", "balanced_sublayer", "measured", "auto"})
          .or_auto(kAutomatic)
          .only_if(&pipelined)
          .is_ours(),
      OPTION(parallelism.pipeline_parallel_split_points,
             "First block or cell of every stage but the first: layers.4,layers.9.attention.wo")
          .only_if(&pipelined)
          .is_ours(),
      OPTION(parallelism.pipeline_parallel_first_stage_less_layers,
             "Number of layers that the embedding counts as")
          .at_least(0)
          .at_most(kMostLayers),
      OPTION(parallelism.pipeline_parallel_last_stage_less_layers,
             "Number of layers that the output layer counts as")
          .at_least(0)
          .at_most(kMostLayers),
      OPTION(parallelism.pipeline_parallel_layers_per_stage,
             "Layers of a stage; none = one or two stages on each rank, as the schedule needs")
          .at_least(1)
          .at_most(kMostLayers)
          .only_if(&pipelined),
      OPTION(parallelism.pipeline_parallel_schedule,
             "Order of forward and backward passes; case, - and _ are ignored")
          .one_of(schedules())
          .only_if(&pipelined),
      OPTION(parallelism.pipeline_parallel_schedule_csv,
             "File with a schedule in PyTorch's notation, a row a rank")
          .only_if(&pipelined),
      OPTION(parallelism.pipeline_parallel_stage_map,
             "Rank of each stage: default = as the schedule needs; loop, e.g. 0,1,0,1; v, e.g. "
             "0,1,1,0; or a list of "
             "ranks")
          .or_list()
          .only_if(&pipelined)
          .is_ours(),
      OPTION(parallelism.pipeline_parallel_microbatch_size,
             "Sequences of a microbatch; divides local_batch_size; auto (or 0) = the fastest size "
             "in the first steps")
          .at_least(0)
          .or_auto(0),
      OPTION(parallelism.pipeline_parallel_microbatch_steps,
             "Other microbatch sizes from given steps on, as STEP:SIZE: 101:2,1001:4; the global "
             "batch stays the same")
          .only_if(&pipelined)
          .is_ours(),
      OPTION(parallelism.pipeline_parallel_expert_parallel_overlap,
             "Under DualPipeV: while tokens of a forward travel to experts, a backward computes, "
             "and the reverse")
          .with("parallelism.expert_parallel_degree"),
      OPTION(parallelism.context_parallel_degree,
             "Ranks that share each sequence; auto = the planner's choice")
          .at_least(1)
          .or_minus_one()
          .or_auto(kAutomatic),
      OPTION(parallelism.context_parallel_load_balancer,
             "Positions of each context-parallel rank: headtail = equal work under a causal mask; "
             "none = in order")
          .one_of({"headtail", "ptrr"})
          .works_with({"headtail", "none"},
                      "ptrr balances masks of FlexAttention, which Tessera does not use; headtail "
                      "balances causal masks")
          .only_if(&shares_sequences),
      OPTION(parallelism.context_parallel_rotate_method,
             "How context-parallel ranks exchange keys and values: allgather = all at once; "
             "alltoall, ring = block by "
             "block, overlapped with computation")
          .one_of({"allgather", "alltoall", "ring"}),
      OPTION(parallelism.expert_parallel_degree,
             "Ranks that share the experts, taken from data_parallel_shard x context_parallel x "
             "tensor_parallel; auto = the planner's choice")
          .at_least(1)
          .or_auto(kAutomatic),
      OPTION(parallelism.expert_tensor_parallel_degree,
             "Ranks that share each expert: 1 or tensor_parallel_degree")
          .at_least(1),
      OPTION(
          parallelism.expert_parallel_capacity_factor,
          "Send each rank this many times an even share of tokens, so that the host waits for no "
          "counts. A step with more is computed again; none = as many as are chosen")
          .at_least(1)
          .only_if(&shares_experts)
          .is_ours(),
      OPTION(parallelism.expert_parallel_comm_backend,
             "How tokens travel: standard = once for each of their experts; deepep = once to each "
             "rank that has some of them. That rank returns a sum")
          .one_of({"standard", "deepep"})
          .only_if(&shares_experts),
  };
}

}  // namespace tessera::config
