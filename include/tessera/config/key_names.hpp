// SPDX-License-Identifier: Apache-2.0
// Keys that several rules compare, in short.
#pragma once

#include <string_view>

namespace tessera::config::key_names {

inline constexpr std::string_view kBatch = "training.global_batch_size";
inline constexpr std::string_view kLocal = "training.local_batch_size";
inline constexpr std::string_view kSeq = "training.seq_len";
inline constexpr std::string_view kPp = "parallelism.pipeline_parallel_degree";
inline constexpr std::string_view kTp = "parallelism.tensor_parallel_degree";
inline constexpr std::string_view kCp = "parallelism.context_parallel_degree";
inline constexpr std::string_view kEp = "parallelism.expert_parallel_degree";
inline constexpr std::string_view kEtp = "parallelism.expert_tensor_parallel_degree";
inline constexpr std::string_view kShard = "parallelism.data_parallel_shard_degree";
inline constexpr std::string_view kReplicate = "parallelism.data_parallel_replicate_degree";
inline constexpr std::string_view kPolicy = "parallelism.fsdp_reshard_after_forward";
inline constexpr std::string_view kBalancer = "parallelism.context_parallel_load_balancer";
inline constexpr std::string_view kNoSequenceParallel = "parallelism.disable_sequence_parallel";
inline constexpr std::string_view kMicro = "parallelism.pipeline_parallel_microbatch_size";
inline constexpr std::string_view kMicroSteps = "parallelism.pipeline_parallel_microbatch_steps";
inline constexpr std::string_view kSchedule = "parallelism.pipeline_parallel_schedule";
inline constexpr std::string_view kCsv = "parallelism.pipeline_parallel_schedule_csv";
inline constexpr std::string_view kParts = "parallelism.module_fqns_per_model_part";
inline constexpr std::string_view kCuts = "parallelism.pipeline_parallel_split_points";
inline constexpr std::string_view kLayers = "parallelism.pipeline_parallel_layers_per_stage";
inline constexpr std::string_view kSplit = "parallelism.pipeline_parallel_split";
inline constexpr std::string_view kMode = "activation_checkpoint.mode";
inline constexpr std::string_view kOption = "activation_checkpoint.selective_ac_option";
inline constexpr std::string_view kMachine = "job.machine";
inline constexpr std::string_view kMap = "parallelism.pipeline_parallel_stage_map";

}  // namespace tessera::config::key_names
