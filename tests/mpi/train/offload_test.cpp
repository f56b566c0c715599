// SPDX-License-Identifier: Apache-2.0
// training.enable_cpu_offload: the same training, and on a GPU copies that hold nobody.
#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/tiny_model.hpp"
#include "simulated_work.hpp"
#include "support/planned.hpp"
#include "tessera/kernels/side_stream.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/trainer.hpp"
#include "test_device.hpp"

namespace tessera::test {
namespace {

/// This rank's own.
at::Device device_of_rank() {
  plan::DevicePlan place;
  place.share = true;
  return test_device().is_cpu() ? at::Device(at::kCPU)
                                : train::choose_device(world(), place).device;
}

struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
  Copies gradients;  ///< for those of the last step
};

class Offload : public testing::TestWithParam<const char*> {
 protected:
  Outcome train(bool offload, bool registers = false) const {
    config::JobConfig job = tiny_job("float32");
    const bool in_bytes = std::string(GetParam()) == "float8";
    job.training.mixed_precision_param = in_bytes ? "bfloat16" : GetParam();
    if (in_bytes) {
      job.model.converters = {"quantize.linear.float8"};
      job.quantize.linear.float8.enable_fsdp_float8_all_gather = true;
    }
    job.training.enable_cpu_offload = offload;
    job.parallelism.fsdp_register_buffers = registers;
    job.training.global_batch_size = 8;
    job.training.local_batch_size = 8 / world().size() / kMicrobatches;
    const at::Device device = device_of_rank();
    const mesh::Layout layout = mesh::Layout::resolve({1, 1, world().size(), 1, 1}, world().size());
    mesh::DeviceMesh mesh(world(), layout,
                          device.is_cpu() ? comm::Backend::mpi : comm::Backend::nccl);
    const bool half = job.training.mixed_precision_param == "bfloat16";
    const at::ScalarType type = half ? at::kBFloat16 : at::kFloat;
    const model::Model model =
        in_bytes ? even_model(true, type, false, 8, device) : tiny_model(true, type, 4, device);
    const UnevenSource source;
    const plan::JobPlan plan = planned(job, model, layout);
    train::Trainer trainer(plan, model, mesh, source, device);
    trainer.stages().initialize(7);
    Outcome outcome;
    Copies before;
    for (int step = 0; step < 3; ++step) {
      before = simulated_copies();
      trainer.compute();
      outcome.gradients = simulated_copies() - before;
      outcome.losses.push_back(trainer.apply().loss);
    }
    for (const auto* param : trainer.stages().params()) {
      EXPECT_EQ(param->master.is_cpu(), offload || device.is_cpu());
      outcome.weights.push_back(param->master.to(at::kCPU, at::kDouble).clone());
    }
    groups_ = static_cast<std::int64_t>(trainer.stages().groups().size());
    gathers_ = trainer.stages().gather_count().gathers / 3;
    return outcome;
  }
  static constexpr std::int64_t kMicrobatches = 2;
  mutable std::int64_t groups_ = 0, gathers_ = 0;
};

/// How far weights may be apart: the last bits of sums and updates differ. Where a GPU's kernels
/// update one job and the host's the other, enough weights differ that bfloat16 rounds some of them
/// to another neighbour, which changes all that follows.
double limit(const std::string& type) {
  const char* const kernels = std::getenv("TESSERA_SIM_KERNELS");
  const bool same = wanted_device() == "cpu" || (kernels && std::string_view(kernels) == "host");
  return same || type == "float32" ? 1e-5 : 1e-4;
}

TEST_P(Offload, TrainsAsWithout) {
  const Outcome without = train(false), with = train(true);
  const double apart = limit(GetParam());
  for (std::size_t step = 0; step < without.losses.size(); ++step)
    EXPECT_NEAR(with.losses[step], without.losses[step], 1e-6 * without.losses[step])
        << "step " << step;
  for (std::size_t i = 0; i < without.weights.size(); ++i)
    EXPECT_LE((with.weights[i] - without.weights[i]).norm().item<double>(),
              apart * without.weights[i].norm().item<double>());
  if (wanted_device() != "sim") return;
  EXPECT_LE(with.gradients.blocking, without.gradients.blocking)
      << "no copy of masters or gradients holds the caller";
  const bool has_scales = std::string(GetParam()) == "float8";
  const std::int64_t down = groups_ * kMicrobatches + (has_scales ? 1 : 0);
  if (world().size() > 1) {
    EXPECT_EQ(with.gradients.asynchronous - without.gradients.asynchronous, gathers_ + down);
  } else {
    EXPECT_GT(with.gradients.asynchronous, without.gradients.asynchronous + down);
  }
}

TEST_P(Offload, GathersIntoRegisteredMemory) {
  if (test_device().is_cpu()) GTEST_SKIP() << "there is no NCCL";
  const Outcome plain = train(true), registered = train(true, true);
  EXPECT_EQ(registered.losses, plain.losses);
  for (std::size_t i = 0; i < plain.weights.size(); ++i)
    EXPECT_TRUE(at::equal(registered.weights[i], plain.weights[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(In, Offload, testing::Values("float32", "bfloat16", "float8"),
                         [](const auto& each) { return std::string(each.param); });

/// Work behind a mark is done when that has passed, on both sides.
TEST(SideStream, MarksHoldWhoWaits) {
  const at::Device device = device_of_rank();
  kernels::SideStream side(device);
  const at::Tensor from = at::full({1000}, 3.0),
                   pinned = device.is_cpu() ? from : from.pin_memory();
  const at::Tensor up = at::zeros({1000}, at::TensorOptions(device));
  const auto uploaded = side.run([&] { up.copy_(pinned, /*non_blocking=*/true); });
  uploaded.hold_current();
  const at::Tensor twice = up * 2,
                   down = at::empty_like(pinned, pinned.options().pinned_memory(!device.is_cpu()));
  side.run([&] { down.copy_(twice, /*non_blocking=*/true); }).wait();
  EXPECT_EQ(down.sum().item<double>(), 6000);
  kernels::SideStream::Mark().wait();
}

}  // namespace
}  // namespace tessera::test
