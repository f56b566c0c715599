// SPDX-License-Identifier: Apache-2.0
#include "measured_split.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <regex>

#include "tessera/train/device.hpp"

namespace tessera::train {
namespace {

using model::Flow;
using model::Slot;
using parallel::Stage;

/// "layers.7.attention.wo" with a weight of 256 x 256 -> "layers.#.attention.wo [256,256]".
std::string kind_of(const model::Model& model, const model::CellSpec& cell) {
  static const std::regex number("\\.[0-9]+\\.");
  std::string kind = std::regex_replace(cell.name, number, ".#.");
  for (const int param : cell.params)
    kind += fmt::format(" [{}]",
                        fmt::join(model.params[static_cast<std::size_t>(param)].global_shape, ","));
  return kind;
}

/// Cell `first` and those after it that no stage may begin with.
Range with_bound(const model::Model& model, std::size_t first) {
  std::size_t end = first + 1;
  while (end < model.cells.size() && !model.cells[end].bound.empty()) ++end;
  return {static_cast<std::int64_t>(first), static_cast<std::int64_t>(end - first)};
}

/// Times a cell (and those after it that are bound to it), as a stage by itself.
class Stopwatch {
 public:
  Stopwatch(const model::Model& model, Range cells, mesh::DeviceMesh& mesh,
            const parallel::StageOptions& options)
      : options_(options),
        vocab_(model.dimensions.vocab),
        reducer_(model, mesh, parallel::reducer_options_of(options, true)),
        stage_(model, cells, mesh, options_, reducer_) {
    stage_.weights().initialize(1);
    for (const plan::Crossing& crossing : stage_.inputs())
      in_[crossing.slot] = random(crossing.shape);
    for (const plan::Crossing& crossing : stage_.outputs())
      gradients_[crossing.slot] = random(crossing.shape);
    labels_ = at::randint(vocab_, {options.microbatch.tokens()},
                          at::TensorOptions(at::kLong).device(options.sharding.device));
    if (stage_.first()) in_[Slot::tokens] = labels_;
  }

  double seconds() {
    const auto begin = std::chrono::steady_clock::now();
    const parallel::LossInput input{labels_, 1};
    stage_.forward(0, in_, stage_.last() ? &input : nullptr);
    stage_.backward(0, gradients_);
    synchronize(options_.sharding.device);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  at::Tensor random(const std::vector<std::int64_t>& shape) const {
    return at::randn(shape, at::TensorOptions(options_.sharding.device))
        .to(options_.sharding.precision.compute);
  }

  parallel::StageOptions options_;
  std::int64_t vocab_;
  parallel::GradientReducer reducer_;
  Stage stage_;
  Flow in_, gradients_;
  at::Tensor labels_;
};

/// Seconds of forward and backward of each cell for one microbatch, on the slowest rank. Cells of
/// the same kind (the same name but for the block's number, the same shapes) are timed once.
/// Collective over the mesh.
std::vector<double> measured_costs(const model::Model& model, mesh::DeviceMesh& mesh,
                                   const parallel::StageOptions& given) {
  parallel::StageOptions options = given;
  // gathers are paid once, by the run that is
  options.sharding.reshard.kind = plan::ReshardPolicy::Kind::never;
  // not counted
  options.sharding.reshard_rules.clear();
  options.sharding.accumulation = plan::Accumulation::unsharded;
  options.recompute = {};
  options.sharding.deterministic = false;
  std::map<std::string, double> known;
  std::vector<double> costs;
  for (std::size_t i = 0; i < model.cells.size(); ++i) {
    if (!model.cells[i].bound.empty()) {  // timed with the cell that it is bound to
      costs.push_back(0);
      continue;
    }
    const Range run = with_bound(model, i);
    const std::string kind = kind_of(model, model.cells[i]);
    if (!known.contains(kind)) {
      Stopwatch watch(model, run, mesh, options);
      watch.seconds();
      known[kind] = std::min({watch.seconds(), watch.seconds(), watch.seconds()});
    }
    costs.push_back(known[kind]);
  }
  mesh.control()
      .all_reduce({costs.data(), static_cast<std::int64_t>(costs.size()), DType::f64},
                  comm::Op::max)
      .wait();
  return costs;
}

}  // namespace

plan::StageRanges stage_ranges_of(const plan::PipelinePlan& pipeline, const model::Model& model,
                                  mesh::DeviceMesh& mesh, const parallel::StageOptions& options) {
  if (pipeline.ranges) return *pipeline.ranges;
  return plan::split_balanced(model, pipeline.map.stages(), measured_costs(model, mesh, options),
                              plan::Granularity::cells);
}

}  // namespace tessera::train
