// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "declare.hpp"
#include "tessera/config/datasets.hpp"

namespace tessera::config {

namespace {

Declaration::Words dataset_names() {
  Declaration::Words names;
  for (const Dataset& dataset : kDatasets) names.push_back(dataset.name);
  return names;
}

OptionList training_proper() {
  return {
      OPTION(training.dataset, kDatasetHelp).one_of(dataset_names()),
      OPTION(training.dataset_path,
             "File or folder of the data, or a pattern of files such as text/*.jsonl")
          .short_flag("--data")
          .looked_up(),
      OPTION(training.mixture,
             "Several sources instead of dataset_path: [[training.mixture]] tables with path, "
             "weight and optionally "
             "name; as a flag \"web/*.tokens,0.7;books.tokens,0.3,books\"")
          .rows_of({"path", "weight", "name"}, 1)
          .is_ours(),
      OPTION(training.tokens_cache,
             "Folder for token files made from text; none = tokens, in job.dump_folder or in a "
             "sweep's folder")
          .is_ours(),
      OPTION(training.local_batch_size,
             "Sequences of one data-parallel rank in one pass; auto = the planner's choice")
          .at_least(1)
          .or_auto(kAutomatic),
      OPTION(training.global_batch_size,
             "Sequences of one step over all ranks; -1 = local_batch_size on each data-parallel "
             "rank; more = gradient "
             "accumulation")
          .at_least(1)
          .or_minus_one(),
      OPTION(training.seq_len, "Tokens of a sequence").at_least(1),
      OPTION(training.max_norm, "Gradients are clipped to this global L2 norm; inf = never")
          .above(0)
          .at_most(std::numeric_limits<double>::infinity()),
      OPTION(training.steps, "Steps to train").at_least(1),
      OPTION(training.enable_cpu_offload,
             "Keep parameters, gradients and optimizer state in host memory"),
      OPTION(training.document_mask,
             "Tokens attend only within their own document (TorchTitan's block_causal); flavors in "
             "_flex and _varlen, and deepseek_v3's 16B, 236B and 671B, do so unless this is false")
          .is_ours(),
      OPTION(training.document_end_id,
             "Id of the token that ends a document; none = read the documents from the index of "
             "the token file")
          .at_least(0)
          .is_ours(),
      OPTION(training.freeze, "Parameters that are not trained, by regular expressions").is_ours(),
      OPTION(
          training.fused_linear_cross_entropy,
          "Compute output layer and loss a chunk of tokens at a time, so that the logits of a "
          "microbatch never exist whole; auto = where they take much memory. Off by default: its "
          "speed is not measured yet")
          .one_of({"auto", "always", "never"})
          .is_ours(),
      OPTION(
          training.dtype,
          "Type of parameters and of the optimizer's moments. Gradients are added up in it; with "
          "bfloat16, in mixed_precision_reduce")
          .one_of({"float32", "bfloat16", "float64"}),
      OPTION(training.mixed_precision_param, "Type of forward and backward computation")
          .one_of({"bfloat16", "float32", "float64"}),
      OPTION(training.mixed_precision_reduce, "Type in which gradients are reduced")
          .one_of({"float32", "bfloat16", "float64"}),
      OPTION(training.allow_tf32,
             "Compute float32 matrix products on GPUs with TF32, of 10 bits; as "
             "torch.backends.cuda.matmul.allow_tf32")
          .is_ours(),
      OPTION(training.allow_bf16_reduced_precision_reduction,
             "Let products of bfloat16 matrices on GPUs add their parts in bfloat16; as in "
             "torch.backends.cuda.matmul")
          .is_ours(),
      OPTION(training.gc_freq, "Steps between runs of Python's garbage collector")
          .at_least(1)
          .harmless("Tessera runs no Python and has no garbage collector"),
      OPTION(training.gc_debug, "Debug Python's garbage collector")
          .refused("Tessera runs no Python; metrics.jsonl has the peak memory"),
      OPTION(training.dataloader.num_workers,
             "Threads that read ahead, each prefetch_factor batches; 0 = one thread, one batch")
          .at_least(0),
      OPTION(training.dataloader.persistent_workers, "Keep workers between epochs")
          .with("training.dataloader.num_workers")
          .harmless("workers are threads, and they live as long as the run"),
      OPTION(training.dataloader.pin_memory,
             "Copy batches to a GPU through pinned memory, while it computes"),
      OPTION(training.dataloader.prefetch_factor, "Batches that each worker reads ahead; none = 2")
          .at_least(1)
          .with("training.dataloader.num_workers"),
  };
}

OptionList recompute() {
  return {
      OPTION(
          activation_checkpoint.mode,
          "What backward recomputes: nothing (none), every block (full), some of it "
          "(selective), or as little as "
          "memory_budget allows; auto = the fastest of the first three that fits, by the planner")
          .one_of({"none", "full", "selective", "memory_budget", "auto"})
          .or_auto(kAutomatic),
      OPTION(activation_checkpoint.selective_ac_option,
             "With mode selective: n = recompute every n-th block; op = recompute norms, SwiGLU "
             "and gathered tokens "
             "of every block, but no matrix products and attention"),
      OPTION(activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns,
             "Modules whose matrix products op mode recomputes, too, such as moe.router.gate or "
             "feed_forward.w1")
          .with("activation_checkpoint.selective_ac_option"),
      OPTION(activation_checkpoint.early_stop,
             "Stop recomputing once all needed tensors are recomputed")
          .refused(
              "a block is recomputed to its end; activation_checkpoint.mode = \"memory_budget\" or "
              "selective_ac_option = \"op\" recompute less"),
      OPTION(activation_checkpoint.memory_budget,
             "With mode memory_budget: share of the activations to keep; 0 = recompute all, 1 = "
             "recompute nothing")
          .at_least(0)
          .at_most(1)
          .with("activation_checkpoint.mode"),
      OPTION(activation_checkpoint.visualize_memory_budget_pareto,
             "Draw time against memory for every budget")
          .refused("Tessera draws no such picture; time runs with a few values of "
                   "activation_checkpoint.memory_budget"),
      OPTION(activation_checkpoint.preserve_rng_state, "Recompute with the same random numbers")
          .harmless(
              "random numbers depend only on seed and position; there is no state to preserve"),
      OPTION(activation_checkpoint.determinism_check,
             "How recomputed tensors are compared with the first ones")
          .works_with({"default", "none"},
                      "recomputed tensors are not compared; debug.deterministic = true makes them "
                      "the same bits"),
      OPTION(activation_checkpoint.debug, "Record what is recomputed")
          .refused("Tessera keeps no such record; a run with activation_checkpoint.mode = \"none\" "
                   "has the same losses"),
      OPTION(activation_checkpoint.offload,
             "On a GPU: keep what mode leaves of each block in pinned host memory between forward "
             "and backward; it travels while other blocks compute")
          .is_ours(),
  };
}

OptionList compile() {
  return {
      OPTION(compile.enable,
             "On GPUs: forward and backward of a step are one CUDA graph, where they can be; the "
             "log says why where they cannot"),
      OPTION(compile.components, "The graph is made where \"model\" is one of them")
          .with("compile.enable"),
      OPTION(compile.backend, "Compiler")
          .with("compile.enable")
          .harmless("Tessera's kernels are compiled when it is built; results are the same"),
  };
}

OptionList validation() {
  return {
      OPTION(
          validation.enable,
          "Compute the loss on the validation data after step 1 and every validation.freq steps"),
      OPTION(validation.dataset, "Like training.dataset")
          .one_of(dataset_names())
          .with("validation.enable"),
      OPTION(validation.dataset_path,
             "Like training.dataset_path; none = the windows that validation.split holds out")
          .looked_up()
          .with("validation.enable"),
      OPTION(validation.split,
             "Share of the windows of each source, at its end, that training never reads, with or "
             "without "
             "validation.enable")
          .at_least(0)
          .below(1)
          .is_ours(),
      OPTION(validation.local_batch_size,
             "Sequences of one data-parallel rank in one pass; default: training.local_batch_size")
          .at_least(1)
          .with("validation.enable"),
      OPTION(validation.seq_len,
             "Tokens of a sequence, at most training.seq_len, which is the default")
          .at_least(1)
          .with("validation.enable"),
      OPTION(validation.freq, "Steps between validations").at_least(1).with("validation.enable"),
      OPTION(validation.steps, "Batches of a validation; -1 = all data")
          .at_least(1)
          .or_minus_one()
          .with("validation.enable"),
      OPTION(validation.samples,
             "Sequences of a validation on any mesh, instead of validation.steps")
          .at_least(1)
          .with("validation.enable")
          .is_ours(),
      OPTION(validation.dataloader.num_workers, "Like training.dataloader")
          .at_least(0)
          .with("validation.enable"),
      OPTION(validation.dataloader.persistent_workers, "Like training.dataloader")
          .with("validation.enable")
          .harmless("workers are threads, and they live as long as the run"),
      OPTION(validation.dataloader.pin_memory, "Like training.dataloader")
          .with("validation.enable"),
      OPTION(validation.dataloader.prefetch_factor, "Like training.dataloader")
          .at_least(1)
          .with("validation.enable"),
  };
}

}  // namespace

OptionList training_options() {
  OptionList all = training_proper();
  for (const auto& part : {recompute(), compile(), validation()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace tessera::config
