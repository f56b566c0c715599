// SPDX-License-Identifier: Apache-2.0
// Operation and apply() beside torch::autograd::Function, whose place they take.
#include "tessera/kernels/operation.hpp"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <thread>

#include "test_device.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// scale * a * b, and a + b.
struct Reference : torch::autograd::Function<Reference> {
  static Tensors forward(torch::autograd::AutogradContext* context, const Tensor& a,
                         const Tensor& b, double scale) {
    context->save_for_backward({a, b});
    context->saved_data["scale"] = scale;
    return {scale * a * b, a + b};
  }
  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    const auto saved = context->get_saved_variables();
    const double scale = context->saved_data["scale"].toDouble();
    return {scale * gradients[0] * saved[1] + gradients[1],
            scale * gradients[0] * saved[0] + gradients[1], Tensor()};
  }
};

struct Seen {
  bool gradients_on = true, alive = false;
  std::vector<bool> needed;
};

class Ours final : public Operation {
 public:
  Ours(double scale, Seen& seen) : scale_(scale), seen_(&seen) { seen.alive = true; }
  ~Ours() override { seen_->alive = false; }
  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    seen_->gradients_on = at::GradMode::is_enabled();
    kept.save({inputs[0], inputs[1]});
    return {scale_ * inputs[0] * inputs[1], inputs[0] + inputs[1]};
  }
  Tensors backward(Kept& kept, Tensors gradients) override {
    const auto saved = kept.saved();
    seen_->needed = {kept.needs_gradient(0), kept.needs_gradient(1)};
    return {scale_ * gradients[0] * saved[1] + gradients[1],
            scale_ * gradients[0] * saved[0] + gradients[1]};
  }

 private:
  double scale_;
  Seen* seen_;
};

Tensors ours(const Tensor& a, const Tensor& b, Seen& seen) {
  return apply_all(std::make_unique<Ours>(3.0, seen), {a, b});
}

struct Leaves {
  Leaves(bool of_a, bool of_b) : a(random()), b(random()) {
    a.set_requires_grad(of_a);
    b.set_requires_grad(of_b);
  }
  Tensors gradients() {
    Tensors result{a.grad(), b.grad()};
    a.mutable_grad() = b.mutable_grad() = Tensor();
    return result;
  }
  Tensor a, b;

 private:
  static Tensor random() { return at::randn({4, 3}, at::kDouble).to(tessera::test::test_device()); }
};

bool same(const Tensor& x, const Tensor& y) {
  return x.defined() == y.defined() && (!x.defined() || x.equal(y));
}

TEST(Operation, GivesTheGradientsOfAutogradFunction) {
  for (const auto& [of_a, of_b] :
       {std::pair{true, true}, std::pair{true, false}, std::pair{false, true}}) {
    Leaves leaves(of_a, of_b);
    Seen seen;
    const Tensors got = ours(leaves.a, leaves.b, seen),
                  want = Reference::apply(leaves.a, leaves.b, 3.0);
    const Tensors dy{at::randn_like(got[0]), at::randn_like(got[1])};
    run_backward(got, dy);
    const Tensors ours = leaves.gradients();
    run_backward(want, dy);
    const Tensors theirs = leaves.gradients();
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(same(ours[i], theirs[i]) && got[i].equal(want[i])) << i;
    EXPECT_FALSE(seen.gradients_on);
    EXPECT_EQ(seen.needed, (std::vector<bool>{of_a, of_b}));
  }
}

TEST(Operation, GivesZerosForAnOutputThatNobodyUses) {
  Leaves leaves(true, true);
  Seen seen;
  run_backward({ours(leaves.a, leaves.b, seen)[1]}, {at::ones_like(leaves.a)});
  for (const Tensor& gradient : leaves.gradients())
    EXPECT_TRUE(gradient.equal(at::ones_like(gradient)));
}

TEST(Operation, IsUsedTwiceInOneGraph) {
  Leaves leaves(true, false);
  Seen first, second;
  const Tensor once = ours(leaves.a, leaves.b, first)[0];
  run_backward({ours(once, leaves.b, second)[0]}, {at::ones_like(once)});
  EXPECT_TRUE(leaves.gradients()[0].allclose(9 * leaves.b * leaves.b));
}

TEST(Operation, RunsBackwardOnceAndThenHasReleasedWhatItSaved) {
  Leaves leaves(true, true);
  Seen seen;
  const Tensors out = ours(leaves.a, leaves.b, seen);
  run_backward({out[0]}, {at::ones_like(out[0])});
  EXPECT_THROW(run_backward({out[0]}, {at::ones_like(out[0])}), c10::Error);
}

TEST(Operation, NoticesASavedTensorThatWasChangedInPlace) {
  Leaves leaves(true, false);
  Seen seen;
  const Tensors out = ours(leaves.a, leaves.b, seen);
  leaves.b.add_(1);
  EXPECT_THROW(run_backward({out[0]}, {at::ones_like(out[0])}), c10::Error);
}

TEST(Operation, LivesAsLongAsItsNode) {
  Leaves leaves(true, true);
  Seen seen;
  {
    const Tensors out = ours(leaves.a, leaves.b, seen);
    EXPECT_TRUE(seen.alive);
  }
  EXPECT_FALSE(seen.alive);
}

TEST(Operation, KeepsNothingWhereGradientsAreOff) {
  Leaves leaves(true, true);
  Seen seen;
  const at::NoGradGuard no_gradients;
  const Tensors out = ours(leaves.a, leaves.b, seen);
  EXPECT_FALSE(out[0].requires_grad());
  EXPECT_FALSE(seen.alive);
}

TEST(SavedTensors, LeavesOutConstants) {
  Leaves leaves(true, false);
  Seen seen;
  Tensors saved;
  {
    const SavedTensors listing(&saved);
    ours(leaves.a, leaves.b, seen);
    const SavedTensors nothing(nullptr);
    ours(leaves.a, leaves.b, seen);
  }
  ours(leaves.a, leaves.b, seen);
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_TRUE(saved[0].is_alias_of(leaves.a));
}

/// The same value; writes its letter in backward.
class Letter final : public Operation {
 public:
  Letter(std::string& log, char letter) : log_(log), letter_(letter) {}
  Tensors forward(Kept&, std::span<const at::Tensor> inputs) override {
    return {inputs[0].clone()};
  }
  Tensors backward(Kept&, Tensors gradients) override {
    log_ += letter_;
    return gradients;
  }

 private:
  std::string& log_;
  char letter_;
};

/// The second thread has numbered nothing before.
TEST(OperationNumbers, FollowTheGraphFromThreadToThread) {
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  std::string log;
  OperationNumbers numbers;
  numbers.resume();
  const at::Tensor first = apply(Letter(log, 'a'), {leaf});
  numbers.pause();
  at::Tensor second;
  std::thread([&] {
    numbers.resume();
    second = apply(Letter(log, 'b'), {leaf});
    numbers.pause();
  }).join();
  numbers.resume();
  run_backward({(first + second).sum()}, {at::ones({})});
  EXPECT_EQ(log, "ba") << "the last one first";
}

}  // namespace
}  // namespace tessera::kernels
