// SPDX-License-Identifier: Apache-2.0
// The calls of LibTorch that are not its public interface, each with a test of what it is relied on
// for.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

/// Frees the memory of `tensor` and of every view of it, while tensors and autograd graphs that
/// hold them live on. Until restore_storage nothing may read them.
void release_storage(const at::Tensor& tensor);

/// Allocates `storage_bytes` again (uninitialised) from the storage's own allocator, for all of
/// those tensors; the caller then fills it.
void restore_storage(const at::Tensor& tensor, std::size_t storage_bytes);

/// Gives the memory of `from`, which nobody may read any more, to `to`, whose storage is empty
/// (release_storage).
void move_storage(const at::Tensor& from, const at::Tensor& to);

/// Bytes that this process has allocated on the device: tensors alone on a GPU, all that malloc
/// gave on the host (0 where another allocator than glibc's is loaded).
std::int64_t allocated_bytes(at::Device device);

/// Bytes that the tensor's storage holds now; 0 after release_storage.
std::size_t storage_bytes(const at::Tensor& tensor);

/// out [m, n] <- a b + beta out of float32 in host memory, in oneDNN. LibTorch throws where it has
/// no oneDNN, or the processor no AVX-512. Not differentiable.
void mm_in_onednn(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, float beta);
/// x times the transpose of `weight`, likewise, on processors without AVX-512 too: what LibTorch's
/// compiled models call. Any strides.
at::Tensor linear_in_onednn(const at::Tensor& x, const at::Tensor& weight);

}  // namespace tessera::kernels
