// SPDX-License-Identifier: Apache-2.0
// Element kernels and the rotary embedding on the device: threads over packs of 16 bytes.
#include <utility>

#include "cuda/launch.cuh"

namespace tessera::kernels::device {
namespace {

/// body(row, column) for each pack of a rows x width box.
template <int size, class Body>
void for_packs(const char* name, Extent extent, cudaStream_t stream, std::vector<Operand> operands,
               const Body& body) {
  const std::int64_t packs_per_row = extent.width / size, packs = extent.rows * packs_per_row;
  launch(
      {name, (packs + threads_per_block - 1) / threads_per_block, 0, stream, std::move(operands)},
      [=] __device__(std::int64_t block, unsigned char*) {
        const std::int64_t i = block * threads_per_block + threadIdx.x;
        if (i < packs) body(i / packs_per_row, i % packs_per_row * size);
      });
}

template <int size, class Kernel, class T>
void packs_of_elements(const char* name, const ElementRows<T>& rows, Extent extent,
                       cudaStream_t stream) {
  using C = Compute<T>;
  const auto body = [=] __device__(std::int64_t row, std::int64_t i) {
    Pack<T, size> inputs[Kernel::inputs], outputs[Kernel::outputs];
    for (int k = 0; k < Kernel::inputs; ++k)
      inputs[k] = load<size>(rows.inputs[k].data + row * rows.inputs[k].stride + i);
    for (int item = 0; item < size; ++item) {
      C in[Kernel::inputs], out[Kernel::outputs];
      for (int k = 0; k < Kernel::inputs; ++k) in[k] = wide(inputs[k].items[item]);
      Kernel::apply(in, out);
      for (int k = 0; k < Kernel::outputs; ++k) outputs[k].items[item] = narrow<T>(out[k]);
    }
    for (int k = 0; k < Kernel::outputs; ++k)
      store<size>(rows.outputs[k].data + row * rows.outputs[k].stride + i, outputs[k]);
  };
  std::vector<Operand> operands;
  for (int k = 0; k < Kernel::inputs; ++k) operands.push_back(reads(rows.inputs[k], extent));
  for (int k = 0; k < Kernel::outputs; ++k) operands.push_back(writes(rows.outputs[k], extent));
  for_packs<size>(name, extent, stream, std::move(operands), body);
}

template <class Kernel, class T>
void elements(const char* name, const ElementRows<T>& rows, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  bool fit = true;
  for (int k = 0; k < Kernel::inputs; ++k)
    fit = fit && rows_fit(size, extent.width, rows.inputs[k]);
  for (int k = 0; k < Kernel::outputs; ++k)
    fit = fit && rows_fit(size, extent.width, rows.outputs[k]);
  fit ? packs_of_elements<size, Kernel>(name, rows, extent, stream)
      : packs_of_elements<1, Kernel>(name, rows, extent, stream);
}

/// Operands of one rotation: `batch` sequences, the input's batch_stride apart.
template <class T>
struct Rotation {
  const T* x;
  const Compute<T>*cos, *sin;
  T* y;
  RopeExtent extent;
  std::int64_t batch, batch_stride;
  Compute<T> sign;
};

template <class T>
Operand rotated_rows(const Rotation<T>& r, std::int64_t width) {
  Operand x = reads(Rows<const T>{r.x, r.extent.stride}, {r.extent.positions, width});
  x.groups = r.batch;
  x.group_stride = r.batch_stride * static_cast<std::int64_t>(sizeof(T));
  return x;
}

template <int size, bool aligned, class T>
void rotate(const Rotation<T>& r, cudaStream_t stream) {
  using C = Compute<T>;
  const std::int64_t width = r.extent.heads * r.extent.head_dim,
                     rows = r.batch * r.extent.positions;
  const std::int64_t angles = r.extent.positions * r.extent.head_dim / 2;
  const auto body = [=] __device__(std::int64_t row, std::int64_t i) {
    const std::int64_t position = row % r.extent.positions;
    const std::int64_t angle = (position * r.extent.head_dim + i % r.extent.head_dim) / 2;
    const auto v = load<size, aligned>(r.x + row / r.extent.positions * r.batch_stride +
                                       position * r.extent.stride + i);
    Pack<T, size> result;
    for (int k = 0; k < size; k += 2) {
      const C c = r.cos[angle + k / 2], s = r.sign * r.sin[angle + k / 2];
      const C a = wide(v.items[k]), b = wide(v.items[k + 1]);
      result.items[k] = narrow<T>(fma(a, c, -(b * s)));
      result.items[k + 1] = narrow<T>(fma(b, c, a * s));
    }
    store<size, aligned>(r.y + row * width + i, result);
  };
  for_packs<size>("rope", {rows, width}, stream,
                  {rotated_rows(r, width), reads(r.cos, angles), reads(r.sin, angles),
                   writes(r.y, rows * width)},
                  body);
}

}  // namespace

#define TESSERA_LAUNCHER(name, Type)                                          \
  template <class T>                                                          \
  void name(const ElementRows<T>& rows, Extent extent, cudaStream_t stream) { \
    elements<Type>(#name, rows, extent, stream);                              \
  }                                                                           \
  template void name(const ElementRows<double>&, Extent, cudaStream_t);       \
  template void name(const ElementRows<float>&, Extent, cudaStream_t);        \
  template void name(const ElementRows<Bf16>&, Extent, cudaStream_t);
TESSERA_ELEMENT_KERNELS(TESSERA_LAUNCHER)
#undef TESSERA_LAUNCHER

template <class T>
void rope(const T* x, const Compute<T>* cos, const Compute<T>* sin, T* y, RopeExtent extent,
          std::int64_t batch, std::int64_t batch_stride, bool inverse, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const Rotation<T> rotation{x,      cos,   sin,          y,
                             extent, batch, batch_stride, Compute<T>(inverse ? -1 : 1)};
  const std::int64_t width = extent.heads * extent.head_dim;
  if (extent.head_dim % size == 0 && batch_stride % size == 0 &&
      rows_fit(size, width, rows(x, extent.stride), rows(y, width)))
    rotate<size, true>(rotation, stream);
  else
    rotate<2, false>(rotation, stream);
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template void rope(const T*, const Compute<T>*, const Compute<T>*, T*, RopeExtent, std::int64_t, \
                     std::int64_t, bool, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
