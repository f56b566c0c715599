// SPDX-License-Identifier: Apache-2.0
// A file driver for libhdf5 that keeps what it writes in memory, sparsely. When a write to disk
// fails under libhdf5, its file cannot be closed any more and the process crashes at exit (seen
// with 1.10.8 on a full disk); here such writes cannot fail, and the bytes reach the disk through
// our own File.
#pragma once

#include <hdf5.h>

#include "format/sparse_image.hpp"

namespace tessera::checkpoint {

/// Makes files that are created with the access list `access` live in `image`, which must outlive
/// them.
herr_t use_memory_driver(hid_t access, SparseImage& image);

}  // namespace tessera::checkpoint
