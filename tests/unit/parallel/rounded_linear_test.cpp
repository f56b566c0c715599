// SPDX-License-Identifier: Apache-2.0
// torchao's float8 and MXFP8 linear layers (tests/golden/float8): bytes, scales, outputs and
// gradients.
#include "tessera/parallel/rounded_linear.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "support/relative_distance.hpp"
#include "tessera/hf/safetensors.hpp"
#include "tessera/kernels/mx_scales.hpp"
#include "tessera/kernels/scaled_bytes.hpp"
#include "tessera/kernels/torch_internal.hpp"
#include "tessera/parallel/weight_scales.hpp"
#include "test_device.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::ScaleBlock;
using plan::LinearRecipe;
using test::relative_distance;

/// Programs that were built elsewhere find the folder in the environment (first_hour.sh).
std::string path_of(const char* file) {
  const char* data = std::getenv("TESSERA_TEST_DATA");
  return std::string(data ? data : TESSERA_TEST_DATA) + "/float8/" + file;
}

/// The file that has a tensor, or null.
const hf::SafetensorsReader* golden(const std::string& name) {
  static const hf::SafetensorsReader float8(path_of("float8_linear.safetensors")),
      mx(path_of("mxfp8.safetensors"));
  for (const auto* reader : {&float8, &mx})
    if (reader->find(name)) return reader;
  return nullptr;
}

Tensor stored(const std::string& name) {
  const hf::SafetensorsReader* reader = golden(name);
  EXPECT_TRUE(reader) << name;
  const TensorInfo* entry = reader->find(name);
  const bool bytes = entry->dtype == DType::u8;
  const Tensor values = at::empty(entry->shape, bytes ? at::kByte : at::kFloat);
  reader->read_whole(name, bytes ? DType::u8 : DType::f32, values.data_ptr());
  return values.to(test::test_device());
}

constexpr std::pair<const char*, LinearRecipe> kRecipes[] = {
    {"tensorwise", LinearRecipe::tensorwise},
    {"rowwise", LinearRecipe::rowwise},
    {"rowwise_with_gw_hp", LinearRecipe::rowwise_with_gw_hp},
    {"linear.floor", LinearRecipe::mxfp8_floor},
    {"linear.rceil", LinearRecipe::mxfp8_rceil}};

constexpr ScaleBlock kRows{1, ScaleBlock::whole}, kColumns{ScaleBlock::whole, 1};

/// The operand `name` of a recipe, such as x_fwd, as the kernels make it of tensor `of`. Is there
/// one?
bool expect_bytes(const std::string& recipe, const std::string& name, const std::string& of,
                  ScaleBlock block) {
  const std::string key = recipe + "." + name;
  if (!golden(key + "_q")) return false;
  const Tensor matrix = stored(of).to(at::kBFloat16), scale = stored(key + "_scale");
  if (scale.numel() == 1) block = {};
  const bool tensorwise = recipe == "tensorwise";
  const DType type = of == "dy" && tensorwise ? DType::f8e5m2 : DType::f8e4m3;
  const Tensor scales =
      kernels::scales_for(kernels::largest_magnitudes(matrix, block), type, !tensorwise);
  EXPECT_TRUE(at::equal(scales.flatten(), scale)) << key;
  Tensor bytes = kernels::to_bytes(matrix, scales, type, block).bytes;
  const Tensor expected = stored(key + "_q");
  if (bytes.sizes() != expected.sizes()) bytes = bytes.t();
  EXPECT_TRUE(at::equal(bytes, expected)) << key;
  return true;
}

TEST(RoundedLinear, BytesAndScalesAreTorchaos) {
  int compared = 0;
  for (const auto& [recipe, number] : kRecipes) {
    compared += expect_bytes(recipe, "x_fwd", "x", kRows);
    compared += expect_bytes(recipe, "w_fwd", "w", kRows);
    compared += expect_bytes(recipe, "dy_dgrad", "dy", kRows);
    compared += expect_bytes(recipe, "w_dgrad", "w", kColumns);
    compared += expect_bytes(recipe, "dy_wgrad", "dy", kColumns);
    compared += expect_bytes(recipe, "x_wgrad", "x", kColumns);
  }
  EXPECT_EQ(compared, 14);
}

/// Of rows, and of columns of the transpose.
void expect_mx_bytes(const std::string& key, DType type, kernels::MxScale how) {
  const Tensor x = stored("t_f32"), bytes = stored(key + ".q"),
               scale_bytes = stored(key + ".scale_e8m0");
  for (const bool down : {false, true}) {
    const Tensor matrix = down ? x.t() : x;
    const ScaleBlock block = down ? ScaleBlock{32, 1} : ScaleBlock{1, 32};
    const kernels::MxScales scales =
        kernels::mx_scales(kernels::largest_magnitudes(matrix, block), type, how);
    const Tensor ours = kernels::to_bytes(matrix, scales.stored, type, block).bytes;
    EXPECT_TRUE(at::equal(down ? scales.bytes.t() : scales.bytes, scale_bytes)) << key;
    EXPECT_TRUE(at::equal(down ? ours.t() : ours, bytes)) << key;
  }
}

TEST(RoundedLinear, BytesAndScalesOfMxAreTorchaos) {
  using kernels::MxScale;
  for (const auto& [mode, how] : {std::pair{"floor", MxScale::floor}, {"rceil", MxScale::rceil}})
    for (const auto& [name, type] : {std::pair{".e4m3", DType::f8e4m3}, {".e5m2", DType::f8e5m2}})
      expect_mx_bytes(std::string(mode) + name, type, how);
}

struct Made {
  Tensor y, dx, dw;
};

/// By the layer, in `type`; `later`: the weight's gradient is put off.
Made make(LinearRecipe recipe, at::ScalarType type, bool later = false) {
  static const auto alone = comm::make_self_communicator("tp");
  WeightGradients gradients;
  if (later) gradients.put_off();
  const Tensor x = stored("x").to(type).requires_grad_(), w = stored("w").to(type).requires_grad_();
  const LinearRounding how{recipe, LinearCut::outputs, alone.get()};
  const Tensor y = rounded_linear(x, std::array{RoundedWeight{w, how}}, gradients)[0];
  y.backward(stored("dy").to(type));
  EXPECT_EQ(w.grad().defined(), !later);
  for (const auto& compute : gradients.take()) compute();
  EXPECT_TRUE(at::equal(y.detach(), rounded_product(x, w, how)));
  return {y.detach(), x.grad(), w.grad()};
}

TEST(RoundedLinear, OutputsAndGradientsAreTorchaos) {
  for (const auto& [recipe, number] : kRecipes)
    for (const auto& [type, limit] :
         {std::pair{at::kDouble, 1e-6}, {at::kFloat, 1e-6}, {at::kBFloat16, 3e-3}}) {
      const Made made = make(number, type);
      const std::string key = recipe;
      EXPECT_LE(relative_distance(made.y, stored(key + ".y_f32")), limit) << key;
      EXPECT_LE(relative_distance(made.dx, stored(key + ".dx_f32")), limit) << key;
      EXPECT_LE(relative_distance(made.dw, stored(key + ".dw_f32")), limit) << key;
    }
}

TEST(RoundedLinear, GradientsOfWeightsMayComeLater) {
  for (const auto& [recipe, number] : kRecipes) {
    const Made at_once = make(number, at::kBFloat16), later = make(number, at::kBFloat16, true);
    EXPECT_TRUE(at::equal(at_once.dw, later.dw)) << recipe;
    EXPECT_TRUE(at::equal(at_once.dx, later.dx)) << recipe;
  }
}

/// Values of a matrix whose blocks of rows and columns are rounded one by one, each with one scale.
Tensor rounded_in_blocks(const Tensor& matrix, std::int64_t rows, std::int64_t columns) {
  Tensor result = at::empty_like(matrix);
  for (std::int64_t i = 0; i < matrix.size(0); i += rows)
    for (std::int64_t j = 0; j < matrix.size(1); j += columns) {
      const auto part = [&](const Tensor& of) {
        return of.narrow(0, i, std::min(rows, of.size(0) - i))
            .narrow(1, j, std::min(columns, of.size(1) - j));
      };
      const auto bytes = kernels::to_scaled_bytes(part(matrix), DType::f8e4m3, false, {});
      part(result).copy_(kernels::from_bytes(bytes, matrix.scalar_type()));
    }
  return result;
}

/// Tiles of 128 elements of inputs and gradients, along what a product sums, and squares of
/// weights; at the end of 200 or 300 elements, what is left.
TEST(RoundedLinear, BlockwiseRoundsTilesAndSquares) {
  const auto alone = comm::make_self_communicator("tp");
  at::manual_seed(3);
  const auto random = [](at::IntArrayRef shape) {
    return (at::randn(shape, at::kDouble) * (2 * at::randn(shape, at::kDouble)).exp())
        .to(test::test_device());
  };
  const Tensor x = random({300, 200}).requires_grad_(), w = random({144, 200}).requires_grad_(),
               g = random({300, 144});
  WeightGradients gradients;
  const LinearRounding how{LinearRecipe::blockwise, LinearCut::outputs, alone.get()};
  const Tensor y = rounded_linear(x, std::array{RoundedWeight{w, how}}, gradients)[0];
  y.backward(g);
  const Tensor squares = rounded_in_blocks(w.detach(), 128, 128);
  EXPECT_LE(relative_distance(y.detach(), rounded_in_blocks(x.detach(), 1, 128).mm(squares.t())),
            1e-14);
  EXPECT_LE(relative_distance(x.grad(), rounded_in_blocks(g, 1, 128).mm(squares)), 1e-14);
  EXPECT_LE(relative_distance(w.grad(), rounded_in_blocks(g, 128, 1).t().mm(
                                            rounded_in_blocks(x.detach(), 128, 1))),
            1e-14);
  EXPECT_GT(relative_distance(y.detach(), x.detach().mm(w.detach().t())), 1e-3) << "it is rounded";
}

/// A weight that was gathered in bytes has no values of its own.
TEST(RoundedLinear, UsesTheBytesThatWereGathered) {
  const auto alone = comm::make_self_communicator("tp");
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const Made rounded = make(LinearRecipe::tensorwise, type);
    const Tensor x = stored("x").to(type).requires_grad_(), w = stored("w").to(type);
    LinearRounding how{LinearRecipe::tensorwise, LinearCut::outputs, alone.get()};
    how.gathered = kernels::to_scaled_bytes(w, DType::f8e4m3, false, {});
    w.requires_grad_();
    kernels::release_storage(w);
    WeightGradients gradients;
    const Tensor y = rounded_linear(x, std::array{RoundedWeight{w, how}}, gradients)[0];
    y.backward(stored("dy").to(type));
    EXPECT_TRUE(at::equal(y.detach(), rounded.y));
    EXPECT_TRUE(at::equal(rounded_product(x, w, how), rounded.y));
    // Devices may add in another order: the bytes lie in the order of rows.
    EXPECT_LE(relative_distance(x.grad(), rounded.dx), 1e-6);
    EXPECT_TRUE(at::equal(w.grad(), rounded.dw));
  }
}

/// As torchao's: of the whole weight, and of none where it is all zeros.
TEST(WeightScales, AreThoseOfMastersUntilTheseChange) {
  const auto alone = comm::make_self_communicator("fsdp");
  const auto options = at::TensorOptions(at::kFloat).device(test::test_device());
  WeightScales scales(3, *alone, *alone, test::test_device());
  const Tensor weight = at::full({4, 16}, -0.5, options);
  const kernels::ScaledBytes of_weight = scales.add(weight),
                             of_nothing = scales.add(at::zeros({0, 16}, options)),
                             of_zeros = scales.add(at::zeros({16, 16}, options));
  const auto number = [](const Tensor& one) { return one.cpu().item<float>(); };
  scales.refresh();
  EXPECT_EQ(number(of_weight.scales), 896.0F);
  EXPECT_EQ(number(of_weight.inverses), 1 / 896.0F);
  EXPECT_EQ(number(of_zeros.scales), static_cast<float>(448 / 1e-12));
  EXPECT_EQ(number(of_nothing.scales), number(of_zeros.scales));
  weight.mul_(4);
  scales.refresh();
  EXPECT_EQ(number(of_weight.scales), 896.0F);
  scales.mark_stale();
  scales.refresh();
  EXPECT_EQ(number(of_weight.scales), 224.0F);
}

/// Weights of one call share their input, and each has the result that it has alone.
TEST(RoundedLinear, SeveralWeightsAtOnce) {
  const auto alone = comm::make_self_communicator("tp");
  const LinearRounding how{LinearRecipe::rowwise, LinearCut::outputs, alone.get()};
  WeightGradients gradients;
  at::manual_seed(5);
  const auto random = [](at::IntArrayRef shape) {
    return at::randn(shape).to(test::test_device());
  };
  const Tensor x = random({12, 32}).requires_grad_(), a = random({16, 32}).requires_grad_(),
               b = random({48, 32}), ga = random({12, 16}), gb = random({12, 48});
  const auto both =
      rounded_linear(x, std::array{RoundedWeight{a, how}, RoundedWeight{b, how}}, gradients);
  ((both[0] * ga).sum() + (both[1] * gb).sum()).backward();
  const Tensor of_both = x.grad().clone(), of_a = a.grad().clone();
  x.mutable_grad() = a.mutable_grad() = Tensor();
  const Tensor first = rounded_linear(x, std::array{RoundedWeight{a, how}}, gradients)[0],
               second = rounded_linear(x, std::array{RoundedWeight{b, how}}, gradients)[0];
  ((first * ga).sum() + (second * gb).sum()).backward();
  EXPECT_TRUE(at::equal(both[0], first) && at::equal(both[1], second));
  EXPECT_LE(relative_distance(of_both, x.grad()), 1e-6);
  EXPECT_TRUE(at::equal(of_a, a.grad()));
  EXPECT_FALSE(b.grad().defined());
}

}  // namespace
}  // namespace tessera::parallel
