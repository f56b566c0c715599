// SPDX-License-Identifier: Apache-2.0
// What forward keeps for backward, and what a step needs at most: two ranks that share sequences of
// 8192 tokens against one rank, in bytes that LibTorch's allocator gave out.
#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {
namespace {

using mesh::Axis;
using model::Slot;
using test::world;

struct Footprint {
  std::int64_t kept = 0;  ///< after forward
  std::int64_t peak = 0;  ///< in forward and backward
};

constexpr std::int64_t kSeq = 8192;

model::Model long_model() {
  model::DecoderShape shape;
  shape.name = "long";
  shape.dim = 32;
  shape.layers = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 8;
  shape.hidden = 96;
  shape.vocab = 64;
  return model::make_decoder(shape, kSeq, at::kFloat);
}

Footprint footprint(mesh::DeviceMesh& mesh, plan::Rotation rotation) {
  const model::Model model = long_model();
  StageOptions options;
  options.sharding.precision = {at::kFloat, at::kFloat, at::kFloat};
  options.context.cut = plan::SequenceCut::make(kSeq, mesh.layout().degree(Axis::cp), true);
  options.microbatch.seq = options.context.cut.positions();
  options.context.rotation = rotation;
  GradientReducer reducer(model, mesh, reducer_options_of(options, false));
  Stage stage(model, {0, static_cast<std::int64_t>(model.cells.size())}, mesh, options, reducer);
  stage.weights().initialize(1);
  model::Flow in;
  in[Slot::tokens] = at::arange(options.microbatch.seq) % 64;
  const LossInput input{in[Slot::tokens], 1.0 / kSeq};
  stage.begin_step(1);
  reducer.begin_step(1);
  const kernels::Allocations counted;
  const StagePass made = stage.forward(0, in, &input);
  Footprint result;
  result.kept = counted.now();
  stage.backward(0, {});
  result.peak = counted.peak();
  reducer.finish();
  stage.weights().end_step();
  return result;
}

TEST(ContextMemory, TwoRanksHoldHalf) {
  mesh::DeviceMesh alone(mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), mesh::Rank(0));
  const Footprint whole = footprint(alone, plan::Rotation::ring);
  ASSERT_GT(whole.kept,
            kSeq * 32 * 4 * 10);  // ten tensors of the residual stream, or nothing was counted
  mesh::DeviceMesh shared(world(), mesh::Layout::resolve({1, 1, 1, 2, 1}, 2), comm::Backend::mpi);
  for (const plan::Rotation rotation : {plan::Rotation::ring, plan::Rotation::all_gather}) {
    const Footprint half = footprint(shared, rotation);
    EXPECT_LE(static_cast<double>(half.kept), 0.6 * static_cast<double>(whole.kept));
    EXPECT_LE(static_cast<double>(half.peak), 0.6 * static_cast<double>(whole.peak));
    if (world().rank() == 0)
      std::printf("%s: kept %.1f of %.1f MB (%.2f), at most %.1f of %.1f MB (%.2f)\n",
                  rotation == plan::Rotation::ring ? "ring" : "all_gather",
                  1e-6 * static_cast<double>(half.kept), 1e-6 * static_cast<double>(whole.kept),
                  static_cast<double>(half.kept) / static_cast<double>(whole.kept),
                  1e-6 * static_cast<double>(half.peak), 1e-6 * static_cast<double>(whole.peak),
                  static_cast<double>(half.peak) / static_cast<double>(whole.peak));
  }
}

}  // namespace
}  // namespace tessera::parallel
