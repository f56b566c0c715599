// SPDX-License-Identifier: Apache-2.0
// The pairs of types for which copy_rows() of launchers.hpp exists.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <type_traits>

#include "typed.hpp"

namespace tessera::kernels {

/// Calls body(From{}, To{}) with types that copy_rows has.
template <class Body>
void with_copied_types(const at::Tensor& from, const at::Tensor& to, const Body& body) {
  if (from.scalar_type() == to.scalar_type()) {
    if (from.element_size() == 1) return body(std::uint8_t{}, std::uint8_t{});
    if (from.element_size() == 2) return body(std::uint16_t{}, std::uint16_t{});
    if (from.element_size() == 4) return body(std::uint32_t{}, std::uint32_t{});
    if (from.element_size() == 8) return body(std::uint64_t{}, std::uint64_t{});
  }
  with_type(from.scalar_type(), [&]<class From>(From f) {
    with_type(to.scalar_type(), [&]<class To>(To t) {
      if constexpr (!std::is_same_v<From, To>) body(f, t);
    });
  });
}

}  // namespace tessera::kernels
