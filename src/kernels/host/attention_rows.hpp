// SPDX-License-Identifier: Apache-2.0
// The table's functions of attention.
#pragma once

#include "host/attention_backward.hpp"
#include "host/attention_forward.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class T>
constexpr AttentionFunctions<T> attention_functions() {
  return {.forward = &attention_forward<T>,
          .backward = &attention_backward<T>,
          .store = &attention_store<T>};
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
