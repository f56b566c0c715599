// SPDX-License-Identifier: Apache-2.0
#include "mpi/comm/mpi_main.hpp"

int main(int argc, char** argv) { return tessera::test::run_ranks(argc, argv); }
