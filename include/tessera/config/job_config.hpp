// SPDX-License-Identifier: Apache-2.0
// A job as typed values. Member names are the TOML sections and keys: TorchTitan v0.2.2's, with its
// defaults, and Tessera's own (marked "ours"). What each key means, its range and whether Tessera
// honours it: option_table.hpp, `tessera config keys`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::config {

using Strings = std::vector<std::string>;

struct Job {
  std::optional<std::string> config_file;
  std::string dump_folder = "./outputs";
  std::string description = "default job";
  bool print_config = false;
  std::optional<std::string> save_config_file;
  std::string custom_config_module;
  /// ours: auto (a GPU in a build with CUDA, else the host) | cuda | cpu
  std::string device = "auto";
  bool share_device = false;  ///< ours: whether ranks of a node may have the same GPU
  /// ours: for which the planner chooses values, see left_to_planner()
  std::optional<std::string> machine;
};

struct Profiling {
  bool enable_profiling = false;
  std::string save_traces_folder = "profile_traces";
  std::int64_t profile_freq = 10;
  std::int64_t profiler_active = 1;
  std::int64_t profiler_warmup = 3;
  bool enable_memory_snapshot = false;
  std::string save_memory_snapshot_folder = "memory_snapshot";
};

struct Metrics {
  std::int64_t log_freq = 10;  ///< steps between printed lines; metrics.jsonl has every step
  bool enable_tensorboard = false;
  bool disable_color_printing = false;
  std::string save_tb_folder = "tb";
  bool save_for_all_ranks = false;
  bool enable_wandb = false;
  std::optional<double> peak_flops;  ///< ours: FLOP/s of one device for MFU; absent = known from
                                     ///< the device, or measured
};

struct Model {
  std::string name = "llama3";
  std::string flavor = "debugmodel";
  std::string hf_assets_path = "./tests/assets/tokenizer";  ///< folder with tokenizer.json
  std::optional<std::string> tokenizer_path;  ///< deprecated; resolve() copies it to hf_assets_path
  Strings converters;
  bool print_after_conversion = false;
  /// ours: a Hugging Face config.json that alone defines the model
  std::optional<std::string> hf_config;
  std::optional<double> moe_load_balance_coeff;  ///< ours; absent = the model's own
  std::optional<double> moe_aux_loss_coeff;      ///< ours; absent = the model's own
  std::optional<double> moe_z_loss_coeff;        ///< ours; absent = 0
};

struct Optimizer {
  std::string name = "AdamW";
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  /// for-loop | foreach | fused: one implementation here, all three accepted
  std::string implementation = "fused";
  bool early_step_in_backward = false;
  std::string moments_dtype = "auto";  ///< ours: auto (training.dtype) | float32 | bfloat16
  bool stochastic_rounding = true;     ///< ours: of weights and moments in bfloat16
  std::string on_nonfinite = "skip";   ///< ours: skip | stop | rewind
  /// ours: losses this many standard deviations above the last ones are spikes; 0 = none
  double spike_zscore = 0;
  std::string on_spike = "warn";  ///< ours: warn | rewind
  /// ours: faults in a row before the run stops with exit code 6
  std::int64_t max_skipped_steps = 10;
};

struct LrScheduler {
  /// resolve() cuts it to the schedule's length, with a warning, as TorchTitan does
  std::int64_t warmup_steps = 200;
  std::optional<std::int64_t> total_steps;  ///< absent = training.steps
  std::optional<double> decay_ratio;        ///< absent = decay from the end of the warm-up
  std::string decay_type = "linear";        ///< linear | sqrt | cosine
  double min_lr_factor = 0.0;
};

struct DataLoader {
  std::int64_t num_workers = 0;
  bool persistent_workers = false;
  bool pin_memory = false;
  std::optional<std::int64_t> prefetch_factor;
};

struct Training {
  /// a name in datasets.hpp
  std::string dataset = "c4_test";
  std::optional<std::string> dataset_path;
  /// sequences of one data-parallel rank in one forward and backward pass
  std::int64_t local_batch_size = 8;
  /// sequences of a step; -1 = local_batch_size * data-parallel degree
  std::int64_t global_batch_size = -1;
  std::int64_t seq_len = 2048;
  double max_norm = 1.0;  ///< inf = measure, never clip
  std::int64_t steps = 10000;
  Strings freeze;  ///< ours: patterns of parameters that are not trained
  /// ours: auto (where it saves much memory) | always | never
  std::string fused_linear_cross_entropy = "never";
  bool enable_cpu_offload = false;
  /// Of weights and moments: bfloat16 | float32 | float64 (ours: everything in float64)
  std::string dtype = "float32";
  /// compute: bfloat16 | float32; float64 when dtype is
  std::string mixed_precision_param = "bfloat16";
  /// float32 | bfloat16 (ours); float64 when dtype is
  std::string mixed_precision_reduce = "float32";
  /// Ours, of PyTorch's meaning; on GPUs.
  bool allow_tf32 = false, allow_bf16_reduced_precision_reduction = true;
  std::int64_t gc_freq = 50;
  bool gc_debug = false;
  DataLoader dataloader;
  /// ours: folder of token files made from text; absent = of run or sweep
  std::optional<std::string> tokens_cache;
  bool document_mask = false;  ///< ours: tokens attend inside of their own document only
  /// ours: the token that ends one; absent = the token file's index
  std::optional<std::int64_t> document_end_id;
  /// Ours: [[training.mixture]], each {path, weight, name}; see mixture.hpp. In the place of
  /// dataset_path.
  std::vector<Strings> mixture;
};

struct Parallelism {
  int data_parallel_replicate_degree = 1;
  int data_parallel_shard_degree = -1;
  /// default | always | never | ours: last_layer | auto | "8"
  std::string fsdp_reshard_after_forward = "default";
  /// Ours: [[parallelism.reshard_rules]], each {match, policy}; the first whose pattern matches a
  /// unit's name decides.
  std::vector<Strings> reshard_rules;
  std::string fsdp_gradient_accumulation = "default";  ///< ours: default | unsharded | sharded
  std::int64_t fsdp_prefetch_units = 1;                ///< ours
  bool fsdp_register_buffers = false;                  ///< ours
  int tensor_parallel_degree = 1;
  bool disable_loss_parallel = false;
  bool disable_sequence_parallel = false;  ///< ours
  bool enable_async_tensor_parallel = false;
  std::int64_t async_tensor_parallel_chunks = 8;  ///< ours: into which each rank's tokens are cut
  int pipeline_parallel_degree = 1;
  /// One list of module names for each stage, e.g. {{"tok_embeddings", "layers.0"}, {"layers.1",
  /// "norm", "output"}}.
  std::optional<std::vector<Strings>> module_fqns_per_model_part;
  /// Ours: layers | balanced | balanced_sublayer | measured.
  std::string pipeline_parallel_split = "layers";
  /// Ours: first block or cell of every stage but the first, e.g. {"layers.4",
  /// "layers.9.attention.wo"}.
  Strings pipeline_parallel_split_points;
  std::int64_t pipeline_parallel_first_stage_less_layers = 1;
  std::int64_t pipeline_parallel_last_stage_less_layers = 1;
  std::optional<std::int64_t> pipeline_parallel_layers_per_stage;
  /// PyTorch's spelling after resolve(), however it was typed: a name in the table of
  /// schedule/traits.hpp, or one of the two words for a schedule from a file,
  /// PipelineScheduleSingle | PipelineScheduleMulti.
  std::string pipeline_parallel_schedule = "1F1B";
  std::string pipeline_parallel_schedule_csv;
  /// ours: default | loop | v | the rank of each stage, "0,1,1,0"
  std::string pipeline_parallel_stage_map = "default";
  std::int64_t pipeline_parallel_microbatch_size = 1;
  /// ours: {"101:2", "1001:4"}, see microbatch_steps.hpp
  Strings pipeline_parallel_microbatch_steps;
  bool pipeline_parallel_expert_parallel_overlap = true;
  int context_parallel_degree = 1;
  std::optional<std::string> context_parallel_load_balancer = "headtail";
  std::string context_parallel_rotate_method = "allgather";
  int expert_parallel_degree = 1;
  int expert_tensor_parallel_degree = 1;
  /// ours: see plan::rows_for_each_rank(); none: as many rows as are chosen
  std::optional<double> expert_parallel_capacity_factor;
  std::string expert_parallel_comm_backend = "standard";
};

struct Checkpoint {
  bool enable = false;
  bool enable_ft_dataloader_checkpoints = true;
  std::string folder = "checkpoint";  ///< inside job.dump_folder
  std::int64_t interval = 500;        ///< 0 = auto
  double mtbf_hours = 0;  ///< ours: between failures of the job; 0 = as usual for its ranks
  std::optional<std::string> initial_load_path;
  bool initial_load_model_only = true;
  bool initial_load_in_hf = false;
  bool initial_load_in_hf_quantized = false;
  /// TorchTitan's default is true: there a finished run cannot be resumed
  bool last_save_model_only = false;
  bool last_save_in_hf = false;
  std::string export_dtype = "float32";  ///< float16 | bfloat16 | float32
  std::string async_mode = "disabled";   ///< disabled | async | async_with_pinned_mem
  std::int64_t keep_latest_k = 10;       ///< 0 = all
  std::int64_t keep_every = 0;  ///< ours: steps that are multiples are kept permanently; 0 = none
  std::int64_t load_step = -1;  ///< -1 = the newest
  Strings exclude_from_loading;
  /// ours: missing, extra or misshapen tensors: strict | warn | ignore
  std::string load_mismatch = "strict";
  bool enable_first_step_checkpoint = false;
  bool create_seed_checkpoint = false;
  bool load_only = false;
  std::string files = "rank";  ///< ours: one file for each rank | node | job (single)
};

struct ActivationCheckpoint {
  std::string mode = "selective";         ///< none | full | selective | memory_budget
  std::string selective_ac_option = "2";  ///< n = every n-th block; op
  Strings per_op_sac_force_recompute_mm_shapes_by_fqns{"moe.router.gate"};
  bool early_stop = false;
  double memory_budget = 0.5;
  bool visualize_memory_budget_pareto = false;
  bool preserve_rng_state = true;
  std::string determinism_check = "default";
  bool debug = false;
  bool offload = false;
};

struct Compile {
  bool enable = false;
  Strings components{"model", "loss"};
  std::string backend = "inductor";
};

struct Float8Linear {
  bool enable_fsdp_float8_all_gather = false;
  bool precompute_float8_dynamic_scale_for_fsdp = false;
  /// tensorwise | rowwise | rowwise_with_gw_hp | blockwise
  std::optional<std::string> recipe_name;
  Strings filter_fqns;
  bool emulate = false;
  bool enable = false;  ///< ours: the same as model.converters = ["float8"]
};

struct Float8GroupedMm {
  Strings fqns;
};

struct MxLinear {
  std::string mxfp8_dim1_cast_kernel_choice = "triton";
  std::string recipe_name = "mxfp8_cublas";
  Strings filter_fqns{"output"};
};

struct MxGroupedMm {
  std::string recipe_name = "mxfp8";
  Strings fqns;
};

struct QuantizedLinear {
  Float8Linear float8;
  MxLinear mx;
};

struct QuantizedGroupedMm {
  Float8GroupedMm float8;
  MxGroupedMm mx;
};

/// `quantize.dense` is another spelling of `quantize.linear`.
struct Quantize {
  QuantizedLinear linear;
  QuantizedGroupedMm grouped_mm;
};

struct Comm {
  std::int64_t init_timeout_seconds = 300;   ///< watchdog's limit until the first step is done
  std::int64_t train_timeout_seconds = 100;  ///< and afterwards
  std::int64_t save_timeout_seconds = 1800;  ///< ours: while checkpoints are saved or loaded
  std::int64_t trace_buf_size = 20000;
  std::string save_traces_folder = "comm_traces";
  std::string save_traces_file_prefix = "rank_";
  std::string mode = "default";
  std::string backend = "auto";  ///< ours: auto (nccl where the build and the machine have it, else
                                 ///< mpi) | mpi | strict | nccl
};

struct Kernels {
  std::string backend = "auto";  ///< ours: auto | kokkos | native; see kernels/host_kernels.hpp
};

struct MemoryEstimation {
  bool enable = false;
  bool disable_fake_mode = false;
};

struct FaultTolerance {
  bool enable = false;
  std::string process_group = "gloo";
  std::int64_t process_group_timeout_ms = 10000;
  std::int64_t replica_id = 0;
  std::int64_t group_size = 0;
  std::int64_t min_replica_size = 1;
  std::optional<std::string> semi_sync_method;
};

struct Experimental {
  std::string custom_import;
  std::string custom_args_module;
};

struct Validation {
  bool enable = false;
  std::string dataset = "c4_validation";
  std::optional<std::string> dataset_path;
  double split = 0;  ///< ours: share of the training data that is held out; 0 = none
  std::int64_t local_batch_size = 8;  ///< not written: training's
  std::int64_t seq_len = 2048;        ///< not written: training's
  std::int64_t freq = 10;
  /// batches of local_batch_size on each data-parallel rank; -1 = all data
  std::int64_t steps = -1;
  std::optional<std::int64_t> samples;  ///< ours: sequences of the whole job, on any mesh the same
  DataLoader dataloader;
};

struct Debug {
  std::int64_t seed = 42;
  bool deterministic = false;
  bool deterministic_warn_only = false;
  bool moe_force_load_balance = false;
  /// ours: folder for the unclipped gradients of step 1
  std::optional<std::string> dump_gradients;
  bool check_collectives = false;  ///< ours: ranks compare every collective before it starts
  Strings inject_faults;           ///< ours: STEP:KIND:RANK, see injected_faults.hpp
  /// ours: every k steps replicas compare their parameters; 0 = never
  std::int64_t check_replicas = 0;
};

struct JobConfig {
  Job job;
  Profiling profiling;
  Metrics metrics;
  Model model;
  Optimizer optimizer;
  LrScheduler lr_scheduler;
  Training training;
  Parallelism parallelism;
  Checkpoint checkpoint;
  ActivationCheckpoint activation_checkpoint;
  Compile compile;
  Quantize quantize;
  Comm comm;
  Kernels kernels;
  MemoryEstimation memory_estimation;
  FaultTolerance fault_tolerance;
  Experimental experimental;
  Validation validation;
  Debug debug;
};

}  // namespace tessera::config
