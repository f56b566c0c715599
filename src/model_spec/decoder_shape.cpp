// SPDX-License-Identifier: Apache-2.0
#include "tessera/model_spec/decoder_shape.hpp"

#include <cmath>

namespace tessera::model {
namespace {

/// YaRN's sharpening of attention: 0.1 weight ln(factor) + 1.
double sharpening(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

}  // namespace

double Yarn::rotation_factor() const {
  if (attention_factor > 0) return attention_factor;
  if (mscale > 0 && mscale_all_dim > 0)
    return sharpening(factor, mscale) / sharpening(factor, mscale_all_dim);
  return sharpening(factor, 1);
}

double Yarn::softmax_factor() const {
  const double sharp = mscale_all_dim > 0 ? sharpening(factor, mscale_all_dim) : 1;
  return sharp * sharp;
}

void DecoderShape::settle_yarn(std::int64_t positions) {
  if (yarn && !yarn->applies_to(positions)) yarn.reset();
  if (yarn) yarn->only_beyond = false;
}

}  // namespace tessera::model
