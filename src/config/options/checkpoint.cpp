// SPDX-License-Identifier: Apache-2.0
#include "declare.hpp"

namespace tessera::config {

OptionList checkpoint_options() {
  return {
      OPTION(checkpoint.enable, "Save checkpoints, and resume from the latest valid one"),
      OPTION(checkpoint.folder, "Folder of the checkpoints, relative to job.dump_folder"),
      OPTION(checkpoint.interval,
             "Steps between checkpoints; auto (or 0) = computed from the cost of a save and "
             "mtbf_hours")
          .at_least(0)
          .or_auto(0),
      OPTION(checkpoint.mtbf_hours,
             "Mean time between failures of the whole job in hours, for interval = auto; 0 = "
             "50,000 / ranks")
          .at_least(0)
          .is_ours(),
      OPTION(checkpoint.initial_load_path,
             "What a run without its own checkpoints starts from: a step folder, a checkpoint "
             "folder, a "
             "Hugging Face folder or a .safetensors file"),
      OPTION(checkpoint.initial_load_model_only,
             "Load only the model from initial_load_path; false = also optimizer, schedule, step "
             "and data position, so that the run continues another one (a branch)"),
      OPTION(checkpoint.initial_load_in_hf,
             "initial_load_path holds Hugging Face weights; without it, model.hf_assets_path does"),
      OPTION(checkpoint.initial_load_in_hf_quantized,
             "The Hugging Face weights are quantized (FP8 in blocks, MXFP4); Tessera also detects "
             "this itself"),
      OPTION(checkpoint.last_save_model_only,
             "Save only the model after the last step, in export_dtype; no run can resume from "
             "that checkpoint"),
      OPTION(checkpoint.last_save_in_hf,
             "Like last_save_model_only; also write the folder hf-STEP with Hugging Face weights, "
             "tokenizer and "
             "config.json"),
      OPTION(checkpoint.export_dtype, "Type of the weights in a model-only checkpoint")
          .one_of({"float32", "bfloat16", "float16"}),
      OPTION(checkpoint.async_mode,
             "async = continue training while a checkpoint is written from a copy in host memory; "
             "async_with_pinned_mem is the same")
          .one_of({"disabled", "async", "async_with_pinned_mem"}),
      OPTION(checkpoint.keep_latest_k, "Checkpoints to keep, at least 2; 0 = all").at_least(0),
      OPTION(checkpoint.keep_every,
             "Also keep, permanently, the checkpoints whose step is a multiple of this; 0 = none")
          .at_least(0)
          .is_ours(),
      OPTION(checkpoint.load_step, "Step to load; -1 = the latest valid one")
          .at_least(0)
          .or_minus_one(),
      OPTION(checkpoint.exclude_from_loading,
             "What not to load: optimizer, lr_scheduler, dataloader, or patterns of parameters, "
             "which then keep their "
             "initial values"),
      OPTION(checkpoint.load_mismatch,
             "If tensors are missing, unexpected or of another shape: stop and list them (strict), "
             "list them and load "
             "the others (warn), or load the others silently (ignore)")
          .one_of({"strict", "warn", "ignore"})
          .is_ours(),
      OPTION(checkpoint.enable_first_step_checkpoint,
             "Also save after step 1, to test the file system early"),
      OPTION(checkpoint.create_seed_checkpoint,
             "Save the initial values as step 0 and exit; Tessera's initial values do not depend "
             "on the mesh"),
      OPTION(checkpoint.load_only, "Load checkpoints, but never save"),
      OPTION(checkpoint.files, "One file for each rank, for each node, or a single one")
          .one_of({"rank", "node", "single"})
          .is_ours(),
      OPTION(checkpoint.enable_ft_dataloader_checkpoints,
             "Data position of each fault-tolerant replica")
          .refused_with("fault_tolerance.enable"),
  };
}

}  // namespace tessera::config
