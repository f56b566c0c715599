// SPDX-License-Identifier: Apache-2.0
// Tensors in graphs: what a launch computes, and whose memory it uses.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "sim/sim.hpp"
#include "step_graph.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/joined.hpp"

namespace tessera::train {
namespace {

using at::Tensor;

/// Operators with fresh results, results in place, lists of them, and temporaries.
std::vector<Tensor> compute(const Tensor& x, const Tensor& index) {
  const Tensor product = x.mm(x.t()).softmax(1) * 3;
  Tensor sum = product.sum(0, true).add_(1);
  std::vector<Tensor> results = at::cat({product, sum}).split(3);
  results.push_back(x.index_select(0, index).to(at::kBFloat16));
  results.push_back(std::get<0>(at::max(product, 1)).view({2, 2}).transpose(0, 1).contiguous());
  return results;
}

Tensor values(std::int64_t first) {
  return at::arange(first, first + 20, at::kFloat).view({4, 5}).sin();
}

class StepGraphs : public testing::Test {
 protected:
  void capture() {
    EXPECT_EQ(graph_->capture([&] { results_ = compute(x_, index_); }), "");
  }
  void expect_results_for(std::int64_t first) {
    x_.copy_(values(first));
    graph_->launch();
    const std::vector<Tensor> expected = compute(values(first), index_.cpu());
    ASSERT_EQ(results_.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(at::equal(results_[i].cpu(), expected[i])) << i << results_[i].cpu();
  }

  void expect_refused(const std::function<void()>& work) {
    const std::string why = graph_->capture(work);
    EXPECT_THAT(why, testing::HasSubstr("stream is capturing"));
    EXPECT_THAT(why, testing::Not(testing::HasSubstr("\n")));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  Tensor x_ = values(0).cuda(), index_ = at::tensor({3, 0}, at::kLong).cuda();
  std::vector<Tensor> results_;
  std::unique_ptr<StepGraph> graph_ = make_step_graph({at::kCUDA, 0});
};

TEST_F(StepGraphs, ComputeOnWhatIsThereAtTheLaunch) {
  at::set_num_threads(1);
  capture();
  for (const std::int64_t first : {5, 9}) expect_results_for(first);
}

/// Others may take and give back memory between launches. The temporary has memory of its own: no
/// result keeps it.
TEST_F(StepGraphs, KeepTheirMemory) {
  constexpr std::int64_t kLarge = 1 << 20;
  Tensor sum;
  EXPECT_EQ(graph_->capture([&] { sum = (at::ones({kLarge}, x_.options()) * x_.sum()).sum(); }),
            "");
  for (const std::int64_t first : {5, 9}) {
    c10::cuda::CUDACachingAllocator::emptyCache();
    const Tensor other = at::full({kLarge}, 7.0, at::kCUDA);
    x_.copy_(values(first));
    graph_->launch();
    EXPECT_NEAR(sum.item<float>() / kLarge, values(first).sum().item<float>(), 1e-4);
    EXPECT_TRUE(other.eq(7).all().item<bool>());
  }
}

TEST_F(StepGraphs, CanBeCapturedAgain) {
  capture();
  expect_results_for(5);
  capture();
  expect_results_for(9);
}

TEST_F(StepGraphs, GiveTheirMemoryBack) {
  const auto reserved = [] {
    c10::cuda::CUDACachingAllocator::emptyCache();
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0).reserved_bytes[0].current;
  };
  const std::int64_t before = reserved();
  capture();
  expect_results_for(5);
  EXPECT_GT(reserved(), before);
  results_.clear();
  graph_.reset();
  EXPECT_EQ(reserved(), before);
}

/// A step that failed leaves no capture behind.
TEST_F(StepGraphs, CannotAskForValues) {
  expect_refused([&] { static_cast<void>(x_.sum().item<float>()); });
  capture();
  expect_results_for(5);
}

/// What was allocated before is given back.
TEST_F(StepGraphs, CannotTakeMoreMemoryThanThereIs) {
  const std::string why = graph_->capture([&] {
    const Tensor first = at::ones({1 << 20}, x_.options());
    static_cast<void>(at::ones({std::int64_t{1} << 40}, x_.options()));
  });
  EXPECT_EQ(why, "the GPU has too little memory for it");
  capture();
  expect_results_for(5);
}

/// An error of another kind is the caller's.
TEST_F(StepGraphs, LetErrorsPass) {
  EXPECT_THROW(
      static_cast<void>(graph_->capture([] { fail(ExitCode::communication, "a rank is gone"); })),
      Error);
  capture();
  expect_results_for(5);
}

/// LibTorch's operators for it pack pointers in pinned memory, whose allocator asks for events.
TEST_F(StepGraphs, CannotPackPointers) {
  Tensor joined = at::empty({2, 10}, x_.options());
  const std::vector<Tensor> parts{joined.narrow(1, 0, 2), joined.narrow(1, 2, 8)};
  expect_refused([&] { at::_chunk_cat_out(joined, {x_}, 0, 2); });
  expect_refused([&] { at::split_with_sizes_copy_out(parts, joined, {2, 8}, 1); });
}

TEST_F(StepGraphs, CopyManyTensors) {
  const Tensor joined = at::empty({2, 12}, x_.options().dtype(at::kDouble));
  const std::vector<Tensor> parts{at::empty({2, 5}, joined.options()),
                                  at::empty({2, 7}, joined.options())};
  const std::string why = graph_->capture([&] {
    kernels::copy_runs(joined, std::vector<Tensor>{x_, x_[0].narrow(0, 0, 4)});
    kernels::copy_columns(joined, parts);
  });
  EXPECT_EQ(why, "");
  const Tensor x = values(7);
  x_.copy_(x);
  graph_->launch();
  const Tensor expected = at::cat({x.view({2, 10}), x[0].narrow(0, 0, 4).view({2, 2})}, 1);
  EXPECT_TRUE(at::equal(joined.cpu(), expected.to(at::kDouble)));
  EXPECT_TRUE(at::equal(at::cat(parts, 1), joined));
}

}  // namespace
}  // namespace tessera::train
