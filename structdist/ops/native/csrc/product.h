// Small dense products: a few rows times one matrix that stays in cache.
#pragma once

#include <cstdint>
#include <vector>

namespace structdist {

template <class T> constexpr int64_t lanes() {
  return 32 / sizeof(T);
}
template <class T> constexpr int64_t padded(int64_t k) {
  return (k + lanes<T>() - 1) / lanes<T>() * lanes<T>();
}

template <class T> struct Vec {
  typedef T type __attribute__((vector_size(32), aligned(sizeof(T))));
};

template <class T, int R, int V>
inline void product_tile(const T* x, const T* matrix, T* out, int64_t k, int64_t kp) {
  using vec = typename Vec<T>::type;
  vec sum[R][V] = {};
  for (int64_t i = 0; i < k; ++i) {
    const vec* row = reinterpret_cast<const vec*>(matrix + i * kp);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] += x[r * kp + i] * row[v];
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) reinterpret_cast<vec*>(out + r * kp)[v] = sum[r][v];
}

template <class T, int R, int V>
inline int64_t product_tiles(const T* x, const T* m, T* out, int64_t k, int64_t kp, int64_t j) {
  for (; j + V * lanes<T>() <= kp; j += V * lanes<T>())
    product_tile<T, R, V>(x, m + j, out + j, k, kp);
  return j;
}

// Rows [rows, Kp] times a matrix [K, Kp]; rows is 1 or 4. Accumulators stay in registers.
template <class T>
void times(int64_t rows, const T* x, const std::vector<T>& matrix, T* out, int64_t k, int64_t kp) {
  const T* m = matrix.data();
  if (rows == 4) {
    const int64_t j = product_tiles<T, 4, 2>(x, m, out, k, kp, 0);
    product_tiles<T, 4, 1>(x, m, out, k, kp, j);
  } else {
    int64_t j = product_tiles<T, 1, 8>(x, m, out, k, kp, 0);
    j = product_tiles<T, 1, 4>(x, m, out, k, kp, j);
    product_tiles<T, 1, 1>(x, m, out, k, kp, j);
  }
}

}  // namespace structdist
