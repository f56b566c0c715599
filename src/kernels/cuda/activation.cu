// SPDX-License-Identifier: Apache-2.0
// SwiGLU and rotary embedding on the device: element-wise, threads over packs of 16 bytes.
#include "cuda/launch.cuh"

namespace tessera::kernels::device {
namespace {

/// body(row, column) for each pack of a rows x width box.
template <int size, class Body>
void for_packs(const char* name, Extent extent, cudaStream_t stream,
               std::initializer_list<Operand> operands, const Body& body) {
  const std::int64_t packs_per_row = extent.width / size, packs = extent.rows * packs_per_row;
  launch({name, (packs + threads_per_block - 1) / threads_per_block, 0, stream, operands},
         [=] __device__(std::int64_t block, unsigned char*) {
           const std::int64_t i = block * threads_per_block + threadIdx.x;
           if (i < packs) body(i / packs_per_row, i % packs_per_row * size);
         });
}

template <int size, class T>
void gated(Rows<const T> gate, Rows<const T> up, Rows<T> out, Extent extent, cudaStream_t stream) {
  const auto body = [=] __device__(std::int64_t row, std::int64_t i) {
    const auto g = load<size>(gate.data + row * gate.stride + i),
               u = load<size>(up.data + row * up.stride + i);
    Pack<T, size> y;
    for (int k = 0; k < size; ++k)
      y.items[k] = narrow<T>(swiglu_element(wide(g.items[k]), wide(u.items[k])));
    store<size>(out.data + row * out.stride + i, y);
  };
  for_packs<size>("swiglu", extent, stream,
                  {reads(gate, extent), reads(up, extent), writes(out, extent)}, body);
}

template <int size, class T>
void gated_backward(Rows<const T> dy, Rows<const T> gate, Rows<const T> up, Rows<T> dgate,
                    Rows<T> dup, Extent extent, cudaStream_t stream) {
  const auto body = [=] __device__(std::int64_t row, std::int64_t i) {
    const auto d = load<size>(dy.data + row * dy.stride + i),
               g = load<size>(gate.data + row * gate.stride + i),
               u = load<size>(up.data + row * up.stride + i);
    Pack<T, size> dg, du;
    for (int k = 0; k < size; ++k) {
      const auto gradient = swiglu_gradient(wide(d.items[k]), wide(g.items[k]), wide(u.items[k]));
      dg.items[k] = narrow<T>(gradient.gate);
      du.items[k] = narrow<T>(gradient.up);
    }
    store<size>(dgate.data + row * dgate.stride + i, dg);
    store<size>(dup.data + row * dup.stride + i, du);
  };
  for_packs<size>("swiglu_backward", extent, stream,
                  {reads(dy, extent), reads(gate, extent), reads(up, extent), writes(dgate, extent),
                   writes(dup, extent)},
                  body);
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

template <class T>
void swiglu(Rows<const T> gate, Rows<const T> up, Rows<T> out, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  if (rows_fit(size, extent.width, gate, up, out))
    gated<size>(gate, up, out, extent, stream);
  else
    gated<1>(gate, up, out, extent, stream);
}

template <class T>
void swiglu_backward(Rows<const T> dy, Rows<const T> gate, Rows<const T> up, Rows<T> dgate,
                     Rows<T> dup, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  if (rows_fit(size, extent.width, dy, gate, up, dgate, dup))
    gated_backward<size>(dy, gate, up, dgate, dup, extent, stream);
  else
    gated_backward<1>(dy, gate, up, dgate, dup, extent, stream);
}

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
  template void swiglu(Rows<const T>, Rows<const T>, Rows<T>, Extent, cudaStream_t);               \
  template void swiglu_backward(Rows<const T>, Rows<const T>, Rows<const T>, Rows<T>, Rows<T>,     \
                                Extent, cudaStream_t);                                             \
  template void rope(const T*, const Compute<T>*, const Compute<T>*, T*, RopeExtent, std::int64_t, \
                     std::int64_t, bool, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
