// SPDX-License-Identifier: Apache-2.0
// Prints tessera-config(5) at build time. Not the program's own `tessera config keys --man`: a CUDA
// build's program wants NVIDIA's libraries, which a machine that only compiles does not have.
#include <iostream>

#include "tessera/config/document.hpp"

int main() { std::cout << tessera::config::keys_as_man_page(); }
