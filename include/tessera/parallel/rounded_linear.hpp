// SPDX-License-Identifier: Apache-2.0
// Linear layers whose products have operands in 8-bit floating point, as torchao's recipes round
// them. CUDA devices multiply the bytes of float8 operands into bfloat16. All other products are
// emulated: of the values that the bytes stand for, summed in float32 (float64 for float64) and
// rounded once to the layer's type.
//
// Weights stay what they are, and each use rounds them again, or FSDP rounds the masters to float8
// before each gather, and all products use these bytes. Where tensor parallelism
// cuts a matrix, the elements that share a scale are those of the whole matrix, so that a mesh
// rounds as one rank does: the largest magnitude over the ranks of tp decides, as it does where
// torchao has a DTensor, and a block of MX or of recipe `blockwise` is in one rank's part.
// Gradients of copies of key-value heads are summed first. Data- and context-parallel ranks do not
// know each other's tokens.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/kernels/scaled_bytes.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/linear.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/plan/linear_precision.hpp"

namespace tessera::parallel {

/// What ranks of tp have a part of, of tokens x inputs times outputs x inputs.
enum class LinearCut : std::uint8_t { outputs, inputs, tokens, nothing };

/// How the products of a layer are rounded.
struct LinearRounding {
  plan::LinearRecipe recipe = plan::LinearRecipe::none;
  LinearCut cut = LinearCut::tokens;
  /// These must outlive every graph.
  comm::Communicator* tp = nullptr;
  /// The ranks of tp that have the same rows of the weight, each of which knows a part of their
  /// outputs' gradients; null: no others.
  comm::Communicator* copies = nullptr;
  bool emulated = false;  ///< on devices, too
  /// Of a weight that is gathered in bytes: these, which are there while it is gathered. The weight
  /// itself has no memory.
  std::optional<kernels::ScaledBytes> gathered = std::nullopt;
};

/// The weights of a stage whose products are rounded.
class RoundedWeights {
 public:
  RoundedWeights(plan::LinearPrecision plan, mesh::DeviceMesh& mesh)
      : plan_(std::move(plan)), mesh_(&mesh) {}

  /// Takes those of the parameters that the plan names. Collective over tp.
  void add(const std::vector<ShardedParam>& params);
  /// Null: the weight's products are not rounded.
  const LinearRounding* find(const at::Tensor& weight) const;

 private:
  void add_experts(const ShardedParam& param);

  plan::LinearPrecision plan_;
  mesh::DeviceMesh* mesh_;
  std::map<const c10::TensorImpl*, LinearRounding> roundings_;
};

struct RoundedWeight {
  at::Tensor value;
  LinearRounding how;
};

/// linear() of x with each weight, rounded; all with one recipe and cut. Collective over tp,
/// backward and what `gradients` puts off too.
std::vector<at::Tensor> rounded_linear(const at::Tensor& x, std::span<const RoundedWeight> weights,
                                       WeightGradients& gradients);

/// The values of that product, without a graph.
at::Tensor rounded_product(const at::Tensor& x, const at::Tensor& weight,
                           const LinearRounding& how);

}  // namespace tessera::parallel
