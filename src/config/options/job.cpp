// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include "declare.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::config {

namespace {

/// What the keys say of the families of models; the table of keys refers to it.
struct FamilyTexts {
  std::vector<std::string> stored = model::family_names();
  Declaration::Words names{stored.begin(), stored.end()};
  std::string why = fmt::format(
      "Tessera trains {}; name one of them, or describe a model of these families by "
      "model.hf_config",
      fmt::join(stored, ", "));
  std::string flavors = "Size of the model, by name: " + sizes();

 private:
  std::string sizes() const {
    std::vector<std::string> each;
    for (const std::string& family : stored)
      each.push_back(fmt::format("{} for {}", fmt::join(model::flavors_of(family), ", "), family));
    return fmt::format("{}", fmt::join(each, "; "));
  }
};

const FamilyTexts& families() {
  static const FamilyTexts texts;
  return texts;
}

/// A config.json names the architecture itself.
bool named(const JobConfig& job) { return !job.model.hf_config; }

}  // namespace

OptionList job_options() {
  return {
      OPTION(job.config_file, "TOML file to read; the same as the argument FILE"),
      OPTION(job.dump_folder, "Folder of the run: metrics, checkpoints, resolved configuration"),
      OPTION(job.description, "Free text, stored with the run"),
      OPTION(job.print_config, "Print the resolved configuration when the run starts"),
      OPTION(job.save_config_file,
             "Also store the resolved configuration under this name in job.dump_folder"),
      OPTION(job.custom_config_module, "Python module that adds keys")
          .refused("Tessera runs no Python; write the keys that Tessera has into the file"),

      OPTION(job.device,
             "What ranks train on: auto = a GPU each in a build with CUDA, else the host; cuda = a "
             "GPU each; cpu = the "
             "host, in a build with CUDA too")
          .one_of({"auto", "cuda", "cpu"})
          .short_flag("--device")
          .is_ours(),
      OPTION(job.share_device,
             "Let ranks of a node share GPUs; with comm.backend = mpi, or where NCCL allows it "
             "(NCCL_MULTI_RANK_GPU_ENABLE=1, since 2.30)")
          .is_ours(),

      OPTION(job.machine,
             "Machine for which values of auto are chosen and a run is predicted: a name that "
             "`tessera plan --help` lists, or a file that ends in .toml")
          .is_ours(),

      OPTION(model.name, "Architecture")
          .works_with(families().names, families().why)
          .only_if(&named),
      OPTION(model.flavor, families().flavors),
      OPTION(model.hf_assets_path,
             "Folder with tokenizer.json (and weights, with checkpoint.initial_load_in_hf)")
          .short_flag("--tokenizer"),
      OPTION(model.tokenizer_path, "Old name of model.hf_assets_path"),
      OPTION(model.hf_config,
             "A Hugging Face config.json that alone defines the model, in place of name and flavor")
          .is_ours(),
      OPTION(model.moe_load_balance_coeff,
             "How much the balancing bias of each expert's score changes after each step; 0 = "
             "never; none = the "
             "model's default")
          .at_least(0)
          .is_ours(),
      OPTION(model.moe_aux_loss_coeff,
             "Weight of the load-balancing loss of all mixtures of experts; none = the model's "
             "default")
          .at_least(0)
          .is_ours(),
      OPTION(model.moe_z_loss_coeff, "Weight of the routers' z-loss; none = 0")
          .at_least(0)
          .is_ours(),
      OPTION(model.converters,
             "Conversions of the model: quantize.linear.float8 or quantize.linear.mx rounds the "
             "operands of linear layers, and quantize.grouped_mm.float8 or quantize.grouped_mm.mx "
             "those of experts"),
      OPTION(model.print_after_conversion, "Print the model after its conversions")
          .refused(
              "conversions change no module; `tessera config show` prints the job, and the start "
              "of a run its mesh and "
              "pipeline stages"),

      OPTION(optimizer.name,
             "Optimizer: AdamW decays weights by themselves, Adam adds the decay to "
             "the gradient")
          .one_of({"AdamW", "Adam"}),
      OPTION(optimizer.lr, "Peak learning rate").at_least(0),
      OPTION(optimizer.beta1, "Decay of the first moment").at_least(0).below(1),
      OPTION(optimizer.beta2, "Decay of the second moment").at_least(0).below(1),
      OPTION(optimizer.eps, "Added to the root of the second moment").at_least(0),
      OPTION(optimizer.weight_decay, "Weight decay").at_least(0),
      OPTION(optimizer.implementation, "PyTorch's choice of kernel")
          .one_of({"fused", "foreach", "for-loop"})
          .harmless("Tessera has one kernel; results are the same"),
      OPTION(optimizer.early_step_in_backward, "Update each parameter inside the backward pass")
          .refused("clipping and the check for non-finite gradients need all gradients before the "
                   "first update; to save "
                   "memory set parallelism.fsdp_gradient_accumulation = \"sharded\" or "
                   "training.enable_cpu_offload"),
      OPTION(optimizer.moments_dtype,
             "Type of the two moments; auto is training.dtype. Without effect in float64")
          .one_of({"auto", "float32", "bfloat16"})
          .is_ours(),
      OPTION(optimizer.stochastic_rounding,
             "Round weights and moments in bfloat16 up or down at random, so that their mean is "
             "exact; false: to nearest, which loses small updates")
          .is_ours(),
      OPTION(optimizer.on_nonfinite,
             "After a non-finite loss or gradient: skip the step, stop with exit code 6, or rewind "
             "to the last "
             "checkpoint and continue after the batch")
          .one_of({"skip", "stop", "rewind"})
          .is_ours(),
      OPTION(optimizer.spike_zscore,
             "A loss more than this many standard deviations above the last 128 losses is a spike; "
             "0 = off")
          .at_least(0)
          .is_ours(),
      OPTION(optimizer.on_spike,
             "After a loss spike: print a line (warn), or rewind to the last checkpoint and "
             "continue after the batch")
          .one_of({"warn", "rewind"})
          .with("optimizer.spike_zscore")
          .is_ours(),
      OPTION(optimizer.max_skipped_steps,
             "Faults in a row (skipped steps, or rewinds to one checkpoint) before the run stops "
             "with code 6")
          .at_least(0)
          .is_ours(),

      OPTION(lr_scheduler.warmup_steps, "Steps of linear warm-up").at_least(0),
      OPTION(lr_scheduler.total_steps, "Length of the schedule in steps; none = training.steps")
          .at_least(1),
      OPTION(lr_scheduler.decay_ratio,
             "Share of the steps that decay; none = all after the warm-up")
          .at_least(0)
          .at_most(1),
      OPTION(lr_scheduler.decay_type, "Shape of the decay").one_of({"linear", "sqrt", "cosine"}),
      OPTION(lr_scheduler.min_lr_factor,
             "Learning rate at the end of the decay, as a share of its peak")
          .at_least(0)
          .at_most(1),
  };
}

}  // namespace tessera::config
