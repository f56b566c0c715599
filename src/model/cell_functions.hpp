// SPDX-License-Identifier: Apache-2.0
// What each kind of cell computes.
#pragma once

#include "tessera/model/cell.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::model {

/// Makes the functions of a model's cells from their specs.
class CellMaker {
 public:
  /// The shape's YaRN is settled. Both references must outlive this object.
  CellMaker(const DecoderShape& shape, const ModelSpec& model) : shape_(shape), model_(model) {}

  CellFunctions functions_of(const CellSpec& cell) const;

 private:
  CellFunction forward_of(const CellSpec& cell) const;
  // attention.cpp
  CellFunction projections(bool biased) const;
  CellFunction attention(int layer) const;
  // latent_attention.cpp
  CellFunction latents() const;
  CellFunction latent_projections() const;
  // mixture.cpp
  CellFunction router(int mixture) const;
  CellFunction dispatch() const;
  CellFunction dispatched() const;
  CellFunction experts() const;
  CellFunction combine() const;
  CellFunction combined() const;

  const DecoderShape& shape_;
  const ModelSpec& model_;
};

}  // namespace tessera::model
