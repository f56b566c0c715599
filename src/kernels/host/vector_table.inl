// SPDX-License-Identifier: Apache-2.0
// The row functions by vectors, and their table; included once by the file that is compiled for an
// instruction set.
#include "host/attention_rows.hpp"
#include "host/element_rows.hpp"
#include "host/flat_rows.hpp"
#include "host/norm_rows.hpp"
#include "host/rope_rows.hpp"
#include "host/softmax_rows.hpp"
#include "host/table.inl"
