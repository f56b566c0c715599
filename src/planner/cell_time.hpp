// SPDX-License-Identifier: Apache-2.0
// What one rank computes for a block, the embedding or the output and one microbatch, and how long
// each part takes. Every second has a category, so that a plan can say where a step goes.
#pragma once

#include <array>
#include <cstdint>

#include "collectives.hpp"
#include "kernel_time.hpp"
#include "tessera/planner/roofline.hpp"
#include "tessera/planner/workload.hpp"

namespace tessera::planner {

enum class Category : std::uint8_t {
  gemm,
  grouped,  ///< products of experts
  attention,
  stream,    ///< kernels that memory bounds
  quantise,  ///< casts to fp8 and fp4
  loss,
  tp,
  cp,
  ep,
  dp,
  pp,
  copies,  ///< into and out of the buffers of FSDP's collectives
  offload,
  host,  ///< a GPU that waits for kernels to be launched
  optimizer,
  jitter,  ///< ranks that wait for the slowest
};
inline constexpr std::size_t kCategories = 16;
const char* name_of(Category category);

/// Seconds by category.
struct Times {
  std::array<double, kCategories> seconds{};

  double& operator[](Category category) { return seconds[static_cast<std::size_t>(category)]; }
  double operator[](Category category) const { return seconds[static_cast<std::size_t>(category)]; }
  Times& add(const Times& other, double factor = 1);
  double total() const;
};

/// Of one microbatch.
struct CellTime {
  Times forward, input, weight;  ///< the gradients of the input, and of the weights
  Times recomputed;              ///< in front of the gradient of the input
  double calls = 0;              ///< in which this rank waits for others
  double travels = 0;            ///< of `forward`, and of each other: tokens and results travel

  double backward() const { return input.total() + weight.total() + recomputed.total(); }
  CellTime& add(const CellTime& other, double factor = 1);
};

/// What computing of another microbatch hides of a cell's exchange of tokens, where a forward and a
/// backward run together: seconds of the forward and of the gradient of the input. Nothing on
/// hosts, whose cores move the rows.
struct HiddenSeconds {
  double forward = 0, input = 0;
};
HiddenSeconds hidden_of(const CellTime& cell, const Machine& machine);

/// The longer of two, smoothly: a GPU and its host each wait for the other a little where they take
/// about as long.
double longer(double busy, double launches);
/// The launches of which longer(busy, launches) is `whole`.
double launches_within(double whole, double busy);

/// Times of the cells of a workload. Keeps references to what it is given.
class CellClock {
 public:
  CellClock(const Workload& work, const Machine& machine, const Stack& stack);

  /// Notes the kernels of forwards in this list from now on.
  void note_in(std::vector<Kernel>* kernels) { kernels_ = kernels; }

  CellTime block(bool mixture) const;
  CellTime embedding() const;
  CellTime head() const;
  /// A block that predicts further tokens, with its output.
  CellTime predictor() const;

 private:
  CellTime block_with(bool mixture, Recompute recompute) const;
  double bytes_of_layer() const;
  void offload(CellTime& out, double bytes) const;
  void host(CellTime& out, bool mixture) const;

  const Workload& work_;
  const Machine& machine_;
  const Stack& stack_;
  std::vector<Kernel>* kernels_ = nullptr;
};

}  // namespace tessera::planner
