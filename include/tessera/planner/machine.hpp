// SPDX-License-Identifier: Apache-2.0
// A machine: what its GPUs and links do, from share/tessera/machines/NAME.toml, or its cores, from
// `tessera plan calibrate`. Facts alone; how well a program uses them is in the stack's file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/host.hpp"

namespace tessera::planner {

/// What matrix products take as operands.
enum class Format : std::uint8_t { f32, bf16, fp8, fp4 };
inline constexpr std::size_t kFormats = 4;
const char* name_of(Format format);

/// Generations of attention kernels: the first FlashAttention, the second, and those that use all
/// of a newer GPU (FlashAttention-3, cuDNN 9).
enum class AttentionKernel : std::uint8_t { flash1, flash2, fused };
inline constexpr std::size_t kAttentionKernels = 3;

struct AttentionRate {
  double forward = 0, backward = 0;  ///< FLOP/s, causal, head dimension 128, long sequences
};

/// FLOPs of the backward of flash attention to those of its forward
/// (https://arxiv.org/abs/2307.08691).
inline constexpr double kAttentionBackward = 2.5;

/// FLOP/s, bytes/s and bytes, of one GPU, or of the cores of a rank; links in one direction.
struct Machine {
  std::string name;
  double memory_bytes = 0;                 ///< what a program can allocate
  double hbm_bytes_per_second = 0;         ///< of the data sheet
  int multiprocessors = 1;                 ///< that work on tiles of a matrix product
  std::int64_t tile_rows = 128;            ///< of the fastest tile; its columns are 256
  double watts = 0;                        ///< of a GPU under load
  double node_watts = 0;                   ///< a GPU's share of its node's rating; 0: unknown
  std::array<double, kFormats> peak{};     ///< dense, of the data sheet; 0: not supported
  std::array<double, kFormats> ceiling{};  ///< best measured matrix product at this power limit
  std::array<AttentionRate, kAttentionKernels> attention{};
  /// The part of a stack's distance to the ceiling that products lose here. Stacks are fitted to
  /// GPUs whose power limit lowers clocks.
  double shortfall = 1;
  double nvlink_bytes_per_second = 0;
  int nvlink_domain = 1;             ///< GPUs that reach each other over it
  double nic_bytes_per_second = 0;   ///< a GPU's share of the network
  double host_bytes_per_second = 0;  ///< between a GPU and its host's memory
  std::optional<HostRank> host;      ///< of a node without GPUs
  /// A GPU's share of the file system: 2 TB/s on 16,384 GPUs, if the file does not say
  /// ("The Llama 3 Herd of Models", 2024, section 3.3.1).
  double storage_bytes_per_second = 2e12 / 16'384;

  double peak_of(Format format) const { return peak[static_cast<std::size_t>(format)]; }
  double ceiling_of(Format format) const { return ceiling[static_cast<std::size_t>(format)]; }
};

/// What the figures of a machine belong to.
inline const char* unit_of(const Machine& machine) { return machine.host ? "rank" : "GPU"; }

/// Where nobody names a machine.
inline constexpr const char* kUsualMachine = "h100-700w";

/// The names of the files that there are, sorted.
std::vector<std::string> machine_names();

/// Reads share/tessera/machines/`name`.toml, or the file itself if `name` ends in ".toml"; "h100"
/// and "a100" are the usual variants. Throws Error(usage) that lists the machines for a name that
/// is not known, and with file and line for a key that a machine does not have.
Machine load_machine(const std::string& name);

/// Throws Error(usage) unless `file` ends in ".toml" and is absent or a machine file, which may be
/// replaced. `flag` named it.
void require_machine_file(const std::string& flag, const std::string& file);

/// Throws Error(usage) for a machine file, which a job is not to replace. `flag` named it.
void refuse_machine_file(const std::string& flag, const std::string& file);

/// The file that it was read from, or a new one of this host.
std::string file_text_of(const Machine& machine);

/// A rank of a host, of which the node has `ranks`.
Machine machine_of(const Host& host, int ranks, const std::string& name = "this host");
/// Of one of `ranks` ranks: "host" is the node that this runs on, and else a name or a file.
Machine machine_of(const std::string& name, int ranks);
/// A host as one of `ranks` ranks of its node has it. A machine of GPUs stays as it is.
Machine share_of(const Machine& machine, int ranks);

}  // namespace tessera::planner
