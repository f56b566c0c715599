// SPDX-License-Identifier: Apache-2.0
// Operators with inputs, for comparisons of devices bit by bit.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace tessera::sim::test {

/// The same inputs for every device, made on the host.
class Inputs {
 public:
  explicit Inputs(at::Device device) : device_(device) { at::manual_seed(11); }

  at::Tensor real(at::IntArrayRef shape, at::ScalarType type = at::kFloat) const {
    return at::randn(shape, at::kDouble).to(type).to(device_);
  }
  at::Tensor whole(at::IntArrayRef shape, std::int64_t below) const {
    return at::randint(below, shape, at::kLong).to(device_);
  }
  at::Device device() const { return device_; }
  at::TensorOptions options(at::ScalarType type = at::kFloat) const {
    return at::device(device_).dtype(type);
  }

 private:
  at::Device device_;
};

struct Case {
  std::string name;
  std::function<std::vector<at::Tensor>(const Inputs&)> run;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> arithmetic();
std::vector<Case> reductions();
std::vector<Case> products();
std::vector<Case> indexing();
std::vector<Case> factories();

}  // namespace tessera::sim::test
