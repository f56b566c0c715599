#include "declare.hpp"

namespace tessera::config {

namespace {

bool starts_from_another_run(const JobConfig& job) { return job.checkpoint.initial_load_path.has_value(); }

}  // namespace

OptionList checkpoint_options() {
  return {
      OPTION(checkpoint.enable, "Save checkpoints, and resume from the newest valid one"),
      OPTION(checkpoint.folder, "Folder of the checkpoints, inside job.dump_folder"),
      OPTION(checkpoint.interval,
             "Steps between checkpoints; auto (or 0) = by what a save costs and how often the machine fails")
          .at_least(0)
          .or_word_for_zero("auto"),
      OPTION(checkpoint.mtbf_hours,
             "Mean hours between failures of the whole job, for interval = auto; 0 = 50,000 for each rank")
          .at_least(0)
          .is_ours(),
      OPTION(checkpoint.initial_load_path,
             "What a run without checkpoints of its own starts from: a step folder, a Hugging Face "
             "folder or one .safetensors file"),
      OPTION(checkpoint.initial_load_model_only,
             "Take only the model from there, not optimizer, schedule and data position")
          .works_with({"true"},
                      "a run that starts from another one's model begins its own optimizer, schedule and data; to "
                      "continue a run whole, resume it in its own job.dump_folder")
          .only_if(&starts_from_another_run),
      OPTION(checkpoint.initial_load_in_hf, "initial_load_path holds Hugging Face weights"),
      OPTION(checkpoint.initial_load_in_hf_quantized,
             "and they are quantized (FP8 in blocks, MXFP4), which Tessera sees by itself"),
      OPTION(checkpoint.last_save_model_only,
             "The checkpoint after the last step holds the model alone, in export_dtype: no run resumes from it"),
      OPTION(checkpoint.last_save_in_hf,
             "The same, and a folder hf-STEP beside it with Hugging Face weights, tokenizer and config.json"),
      OPTION(checkpoint.export_dtype, "Type of the weights in a model-only checkpoint")
          .one_of({"float32", "bfloat16", "float16"}),
      OPTION(checkpoint.async_mode,
             "Train on while a checkpoint is written, from a copy in host memory; async_with_pinned_mem is the same")
          .one_of({"disabled", "async", "async_with_pinned_mem"}),
      OPTION(checkpoint.keep_latest_k, "Checkpoints to keep, at least 2; 0 = all").at_least(0),
      OPTION(checkpoint.keep_every, "Steps whose multiples are kept permanently, in addition to keep_latest_k; 0 = none")
          .at_least(0)
          .is_ours(),
      OPTION(checkpoint.load_step, "Step to load; -1 = the newest").at_least(0).or_minus_one(),
      OPTION(checkpoint.exclude_from_loading,
             "What not to load: optimizer, lr_scheduler, dataloader, or patterns of parameters, which then keep their "
             "initial values"),
      OPTION(checkpoint.load_mismatch,
             "Tensors that are missing, unexpected or of another shape: stop with a table of them (strict), load the "
             "others and print it (warn), or say nothing (ignore)")
          .one_of({"strict", "warn", "ignore"})
          .is_ours(),
      OPTION(checkpoint.enable_first_step_checkpoint, "Save after step 1 too: a test of the file system"),
      OPTION(checkpoint.create_seed_checkpoint,
             "Save the initial values as step 0 and end; Tessera's initial values do not depend on the mesh"),
      OPTION(checkpoint.load_only, "Load, never save"),
      OPTION(checkpoint.files, "One file for each rank, for each node, or a single one")
          .one_of({"rank", "node", "single"})
          .is_ours(),
      OPTION(checkpoint.enable_ft_dataloader_checkpoints, "Data position of each fault-tolerant replica")
          .refused_with("fault_tolerance.enable"),
  };
}

}  // namespace tessera::config
