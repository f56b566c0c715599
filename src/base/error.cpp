// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/error.hpp"

namespace tessera {

void contract_violated(const char* expression, const char* file, int line, const std::string& why) {
  throw ContractViolation(
      fmt::format("internal error: {} ({}:{}: `{}` does not hold); please report this", why, file,
                  line, expression));
}

}  // namespace tessera
