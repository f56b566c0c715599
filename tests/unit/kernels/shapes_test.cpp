// SPDX-License-Identifier: Apache-2.0
// Tensors with shapes alone have the shapes and types of those with values.
#include "tessera/kernels/shapes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/elementwise.hpp"
#include "tessera/kernels/embedding.hpp"
#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/host_copy.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"
#include "tessera/kernels/square_sums.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/kernels/torch_internal.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// Results, and gradients of `inputs` from the first result.
Tensors with_gradients(Tensors results, const Tensors& inputs) {
  run_backward({results[0]}, {at::ones_like(results[0])});
  for (const Tensor& input : inputs) results.push_back(input.grad());
  return results;
}

/// `make` on the host and with shapes alone.
void expect_same_shapes(const std::function<Tensors(at::Device)>& make) {
  const Tensors values = make(at::kCPU), shapes = make(shape_device());
  ASSERT_EQ(values.size(), shapes.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(shapes[i].defined()) << i;
    EXPECT_TRUE(shapes_alone(shapes[i].device())) << i;
    EXPECT_EQ(shapes[i].sizes(), values[i].sizes()) << i;
    EXPECT_EQ(shapes[i].scalar_type(), values[i].scalar_type()) << i;
  }
}

Tensor leaf(at::IntArrayRef sizes, at::Device device, at::ScalarType type = at::kFloat) {
  return at::ones(sizes, at::TensorOptions(device).dtype(type)).set_requires_grad(true);
}

TEST(Shapes, OfNorms) {
  expect_same_shapes([](at::Device device) {
    const Tensor x = leaf({5, 8}, device), more = leaf({5, 8}, device), weight = leaf({8}, device);
    const auto [sum, norm] = summed_rms_norm(x, more, weight, 1e-5);
    return with_gradients({norm, sum}, {x, more, weight});
  });
}

TEST(Shapes, OfHeads) {
  expect_same_shapes([](at::Device device) {
    const Tensor x = leaf({2, 3, 4, 8}, device), angles = at::ones({3, 4}, device);
    return with_gradients({rope(x, angles, angles)}, {x});
  });
}

TEST(Shapes, OfActivationsAndProducts) {
  expect_same_shapes([](at::Device device) {
    const Tensor x = leaf({5, 8}, device), w = leaf({6, 8}, device), v = leaf({6, 8}, device);
    return with_gradients({swiglu(kernels::linear(x, w), kernels::linear(x, v))}, {x, w, v});
  });
}

TEST(Shapes, OfAttention) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    expect_same_shapes([type](at::Device device) {
      const Tensor q = leaf({2, 3, 4, 8}, device, type), k = leaf({2, 3, 2, 8}, device, type),
                   v = leaf({2, 3, 2, 8}, device, type);
      return with_gradients({attention({q, k, v, 1, true, {}})}, {q, k, v});
    });
  expect_same_shapes([](at::Device device) {
    const Tensor q = leaf({2, 3, 4, 16}, device, at::kBFloat16),
                 k = leaf({2, 3, 2, 16}, device, at::kBFloat16),
                 v = leaf({2, 3, 2, 8}, device, at::kBFloat16);
    AttentionPart part{q, k, v, 1, true, {}};
    if (attends_in_bands(part))  // runs too
      part.segments = {at::zeros({5}, at::TensorOptions(device).dtype(at::kInt)), 2};
    return with_gradients({attention(part)}, {q, k, v});
  });
}

TEST(Shapes, OfTheLoss) {
  expect_same_shapes([](at::Device device) {
    Tensor logits = at::ones({5, 7}, device);
    const Tensor labels = at::zeros({5}, at::TensorOptions(device).dtype(at::kLong)),
                 max = row_max(logits);
    const auto [sum, target] = sum_exp_and_target(logits, max, labels, 0);
    softmax_gradient_(logits, max, sum, labels, 0, 1);
    return Tensors{max, sum, target, logits};
  });
}

TEST(Shapes, OfExperts) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    expect_same_shapes([type](at::Device device) {
      const Tensor x = leaf({6, 8}, device, type), w = leaf({2, 16, 8}, device, type);
      const Tensor counts = at::full({2}, 3, at::TensorOptions(at::kLong));
      return with_gradients({grouped_mm(x, w, counts)}, {x, w});
    });
}

TEST(Shapes, OfSquaresAndUpdates) {
  expect_same_shapes([](at::Device device) {
    const Tensor param = at::ones({70000}, device), other = at::ones_like(param);
    adamw_sweep(param, other, other.clone(), other.clone(), {}, {});
    return Tensors{exact_squares(param)};
  });
  const Tensor blocks = block_squares(at::ones({70000}, shape_device()));
  EXPECT_EQ(blocks.sizes(), at::IntArrayRef({2}));  // as on a GPU: a sum for 65,536 values
}

TEST(Shapes, OfOperators) {
  expect_same_shapes([](at::Device device) {
    const auto whole = at::TensorOptions(device).dtype(at::kLong);
    const Tensor table = leaf({9, 4}, device), ids = at::zeros({2, 3}, whole),
                 x = at::ones({3, 1}, device), odd = at::ones({1, 2}, device) == 1;
    return with_gradients(
        {kernels::embedding(table, ids), x.index_select(1, at::zeros({5}, whole)),
         at::searchsorted(at::arange(4, whole), ids),
         at::searchsorted(at::arange(4, whole), ids, /*out_int32=*/true),
         at::arange(2, whole).repeat_interleave(at::ones({2}, whole), 0, 2), x.abs(), x.isnan(),
         odd.logical_or(x == 1), odd.logical_and(x == 1), odd.logical_not(), at::where(odd, x, 2.0),
         at::where(odd, x.to(at::kDouble), x)},
        {table});
  });
}

TEST(Shapes, AreCountedAsOnAGpu) {
  const at::Device device = shape_device();
  const std::int64_t before = allocated_bytes(device);
  const Allocations counted(device.type());
  Tensor a = at::empty({100}, device), none = at::empty({0}, device);
  const Tensor b = at::empty({200}, device);
  EXPECT_EQ(allocated_bytes(device) - before, 512 + 1024);
  EXPECT_NE(a.data_ptr(), b.data_ptr());
  a = Tensor();
  EXPECT_EQ(allocated_bytes(device) - before, 1024);
  release_storage(b);
  EXPECT_EQ(allocated_bytes(device) - before, 0);
  restore_storage(b, 800);
  EXPECT_EQ(counted.now(), 1024);
  EXPECT_EQ(counted.peak(), 512 + 1024);
}

TEST(Shapes, TheHostReadsZeros) {
  const Tensor values = HostCopy(at::ones({3}, shape_device())).wait();
  EXPECT_TRUE(values.is_cpu());
  EXPECT_TRUE(values.equal(at::zeros({3})));
}

/// By the kernel, which says so where the process would end.
TEST(Shapes, NobodyCanReadThem) {
  const Tensor x = at::empty({4}, shape_device());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], x.data_ptr(), 4), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tessera::kernels
