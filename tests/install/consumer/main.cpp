// SPDX-License-Identifier: Apache-2.0
// A program outside the project that uses an installed Tessera.
#include <iostream>

#include "tessera/base/box.hpp"  // has C++20, which the package asks for
#include "tessera/base/dtype.hpp"

int main() { std::cout << tessera::name_of(*tessera::dtype_from_name("bfloat16")) << '\n'; }
