// SPDX-License-Identifier: Apache-2.0
// Names and sizes for messages and arithmetic, and the one place where a broken rule is told.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>

#include "segment.hpp"

namespace tessera::sim::nccl {

const char* name_of(Kind kind);  ///< "ncclAllReduce"
const char* name_of(ncclDataType_t type);
const char* name_of(ncclRedOp_t op);
const char* text_of(ncclResult_t result);
/// Bytes of one element; 0 for a type that does not exist.
std::size_t size_of(ncclDataType_t type);
inline bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce_scatter; }
inline bool transfers(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

/// "ncclAllReduce(sum, float32, 10 elements)"
std::string describe(const Call& call);

/// One line on stderr, and the text of ncclGetLastError().
void tell(const std::string& text);
/// The text alone, for what another rank has told already.
void remember(const std::string& text);
/// The text as it is now; the pointer is valid until this thread asks again.
const char* last_told();

}  // namespace tessera::sim::nccl
