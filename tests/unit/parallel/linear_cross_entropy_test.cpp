// SPDX-License-Identifier: Apache-2.0
// Against its twin: the product with whole logits, then their loss.
#include "tessera/parallel/linear_cross_entropy.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/parallel/linear.hpp"
#include "tessera/plan/fused_loss.hpp"
#include "test_device.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using test::test_device;

constexpr double kScale = 0.125;

struct Case {
  std::int64_t tokens, vocab, dim;
  at::ScalarType type;
};

struct Inputs {
  Tensor x, weight, labels;
};

Inputs inputs_of(const Case& c) {
  at::manual_seed(static_cast<std::uint64_t>(c.tokens));
  const auto leaf = [&](at::IntArrayRef shape) {
    return at::randn(shape, at::kDouble).to(test_device(), c.type).requires_grad_();
  };
  return {leaf({c.tokens, c.dim}), leaf({c.vocab, c.dim}),
          at::randint(0, c.vocab, {c.tokens}, at::kLong).to(test_device())};
}

struct Outcome {
  TokenLoss made;
  Tensor of_x, of_weight;
};

Outcome outcome(const Inputs& in, const std::function<TokenLoss(const Tensor&, const Tensor&)>& of,
                double incoming = 1) {
  const Tensor x = in.x.detach().requires_grad_(in.x.requires_grad()),
               weight = in.weight.detach().requires_grad_(in.weight.requires_grad());
  Outcome result{of(x, weight), {}, {}};
  if (result.made.loss.requires_grad()) (result.made.loss * incoming).backward();
  result.of_x = x.grad();
  result.of_weight = weight.grad();
  return result;
}

class LinearCrossEntropy : public testing::Test {
 protected:
  Outcome whole(const Inputs& in, double incoming = 1) {
    return outcome(
        in,
        [&](const Tensor& x, const Tensor& weight) {
          return vocabulary_parallel_loss(linear(x, weight, later_), in.labels, 0, kScale, *alone_);
        },
        incoming);
  }
  Outcome chunked(const Inputs& in, std::int64_t chunk, double incoming = 1) {
    return outcome(
        in,
        [&](const Tensor& x, const Tensor& weight) {
          return linear_cross_entropy(x, weight, in.labels, {0, kScale, chunk, *alone_});
        },
        incoming);
  }

  std::unique_ptr<comm::Communicator> alone_ = comm::make_self_communicator("one rank");
  WeightGradients later_;
};

/// One unit in the last place of the type, at the size of the largest value. A device's products of
/// other sizes add in another order, which float32 shows.
double unit_of(at::ScalarType type) {
  const double of_float = tessera::test::test_device().is_cpu() ? 1e-6 : 2e-6;
  return type == at::kDouble ? 1e-14 : type == at::kFloat ? of_float : 0x1p-8;
}

void expect_close(const Tensor& got, const Tensor& want, at::ScalarType type) {
  ASSERT_TRUE(got.defined());
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_EQ(got.scalar_type(), want.scalar_type());
  if (want.numel() == 0) return;
  const Tensor g = got.detach().to(at::kDouble), w = want.detach().to(at::kDouble);
  const double largest = w.abs().max().item<double>();
  EXPECT_LE((g - w).abs().max().item<double>(), unit_of(type) * largest);
}

void expect_equal(const Outcome& got, const Outcome& want, at::ScalarType type) {
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  expect_close(got.made.loss, want.made.loss, wide);
  expect_close(got.made.token_losses, want.made.token_losses, wide);
  expect_close(got.of_x, want.of_x, type);
  expect_close(got.of_weight, want.of_weight, type);
}

constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

TEST_F(LinearCrossEntropy, EqualsItsTwin) {
  for (const at::ScalarType type : kTypes)
    for (const auto& [tokens, vocab, dim] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {1, 7, 3}, {37, 101, 13}, {64, 256, 32}}) {
      Inputs in = inputs_of({tokens, vocab, dim, type});
      for (const std::int64_t ignored : {std::int64_t{0}, std::int64_t{1}, tokens / 2, tokens}) {
        if (ignored > 0) in.labels.narrow(0, 0, ignored).fill_(kernels::ignored_label);
        const Outcome want = whole(in);
        for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{5}, tokens, 2 * tokens}) {
          SCOPED_TRACE(testing::Message()
                       << c10::toString(type) << ", " << tokens << " x " << vocab << " x " << dim
                       << ", " << ignored << " ignored, chunks of " << chunk);
          expect_equal(chunked(in, chunk), want, type);
        }
      }
    }
}

TEST_F(LinearCrossEntropy, TakesNoTokens) {
  for (const at::ScalarType type : kTypes) {
    const Inputs in = inputs_of({0, 5, 3, type});
    const Outcome got = chunked(in, 4);
    EXPECT_EQ(got.made.loss.item<double>(), 0);
    EXPECT_EQ(got.made.token_losses.numel(), 0);
    EXPECT_EQ(got.of_weight.abs().sum().item<double>(), 0);
  }
}

TEST_F(LinearCrossEntropy, ScalesByTheIncomingGradient) {
  for (const at::ScalarType type : kTypes) {
    const Inputs in = inputs_of({9, 17, 4, type});
    expect_equal(chunked(in, 4, 0.5), whole(in, 0.5), type);
  }
}

TEST_F(LinearCrossEntropy, ComputesOnlyWhatIsAskedFor) {
  Inputs in = inputs_of({9, 17, 4, at::kFloat});
  const Outcome both = chunked(in, 4);
  in.weight.requires_grad_(false);
  const Outcome frozen = chunked(in, 4);
  EXPECT_FALSE(frozen.of_weight.defined());
  EXPECT_TRUE(at::equal(frozen.of_x, both.of_x));
  in.x.requires_grad_(false);
  in.weight.requires_grad_(true);
  const Outcome first = chunked(in, 4);
  EXPECT_FALSE(first.of_x.defined());
  EXPECT_TRUE(at::equal(first.of_weight, both.of_weight));
  const at::NoGradGuard no_grad;
  const Outcome evaluated = chunked(in, 4);
  EXPECT_TRUE(at::equal(evaluated.made.token_losses, both.made.token_losses));
  EXPECT_FALSE(evaluated.of_weight.defined());
}

template <class Run>
std::int64_t peak_of(const Run& run) {
  const kernels::Allocations counted(test_device().type());
  run();
  return counted.peak();
}

/// What oneDNN allocates for a chunk's two bfloat16 products, whose results are there already. It
/// grows with the processor's threads and is most on those with AMX.
std::int64_t scratch_of(const Inputs& in, std::int64_t chunk) {
  if (!in.x.is_cpu() || in.x.scalar_type() != at::kBFloat16 || kernels::widens(in.x)) return 0;
  const at::NoGradGuard no_grad;
  const Tensor x = in.x.narrow(0, 0, chunk);
  Tensor logits = at::empty({chunk, in.weight.size(0)}, x.options()), of_x = at::empty_like(x);
  return peak_of([&] {
    at::mm_out(logits, x, in.weight.t());
    at::mm_out(of_x, logits, in.weight);
  });
}

/// In addition to the gradients, which whole logits need, too, and to oneDNN's own: at most 1/8 of
/// float32 logits. The float32 sum is the gradient of a bfloat16 weight, until it is rounded.
TEST_F(LinearCrossEntropy, NeedsAnEighthOfTheLogits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // A GPU's allocator rounds up to 1 MiB more.
    const std::int64_t tokens = 4100, vocab = test::wanted_device() == "cuda" ? 16016 : 1001,
                       dim = 16;
    const Inputs in = inputs_of({tokens, vocab, dim, type});
    const std::int64_t logits = 4 * tokens * vocab,
                       gradients = 4 * in.weight.numel() + in.x.nbytes();
    const std::int64_t chunk =
        plan::loss_chunk_tokens(plan::FusedLoss::always, {tokens, vocab, dim, 4});
    whole(in);  // which allocates cuBLAS's workspace
    const std::int64_t extra =
        peak_of([&] { chunked(in, chunk); }) - gradients - scratch_of(in, chunk);
    std::printf(
        "%s: %.3f of float32 logits in addition to gradients, %.3f with whole logits, %.3f of "
        "oneDNN\n",
        c10::toString(type), static_cast<double>(extra) / static_cast<double>(logits),
        static_cast<double>(peak_of([&] { whole(in); }) - gradients) / static_cast<double>(logits),
        static_cast<double>(scratch_of(in, chunk)) / static_cast<double>(logits));
    EXPECT_LE(extra, logits / 8) << c10::toString(type);
    EXPECT_GE(peak_of([&] { whole(in); }), logits / 2) << "nothing was counted";
  }
}

TEST_F(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  const Inputs in = inputs_of({4, 5, 3, at::kFloat});
  EXPECT_THROW(linear_cross_entropy(in.x, in.weight.t(), in.labels, {0, 1, 4, *alone_}),
               ContractViolation);
  EXPECT_THROW(linear_cross_entropy(in.x, in.weight, in.labels, {0, 1, 0, *alone_}),
               ContractViolation);
}

}  // namespace
}  // namespace tessera::parallel
