// Small dense products: a few rows times one matrix that stays in cache, and sums of outer
// products. Accumulators stay in registers; rows of matrices are padded to whole vectors.
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

// The largest, and the sum, of numbers [Kp].
template <class T> inline T max_of(const T* x, int64_t kp) {
  using vec = typename Vec<T>::type;
  vec most = reinterpret_cast<const vec*>(x)[0];
  for (int64_t j = lanes<T>(); j < kp; j += lanes<T>()) {
    const vec here = *reinterpret_cast<const vec*>(x + j);
    most = here > most ? here : most;
  }
  T found = most[0];
  for (int v = 1; v < lanes<T>(); ++v) found = most[v] > found ? most[v] : found;
  return found;
}
template <class T> inline T sum_of(const T* x, int64_t kp) {
  using vec = typename Vec<T>::type;
  vec sum = reinterpret_cast<const vec*>(x)[0];
  for (int64_t j = lanes<T>(); j < kp; j += lanes<T>()) sum += *reinterpret_cast<const vec*>(x + j);
  T total = 0;
  for (int v = 0; v < lanes<T>(); ++v) total += sum[v];
  return total;
}

// Of `left` vectors, how many go into the next tile: three at a time, but never one alone last.
inline int64_t tile_width(int64_t left) {
  return left == 4 || left == 2 ? 2 : left == 1 ? 1 : 3;
}

template <class T, int R, int V>
inline void product_tile(const T* const* x, const T* matrix, T* out, int64_t k, int64_t kp) {
  using vec = typename Vec<T>::type;
  vec sum[R][V] = {};
  for (int64_t i = 0; i < k; ++i) {
    const vec* row = reinterpret_cast<const vec*>(matrix + i * kp);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] += x[r][i] * row[v];
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) reinterpret_cast<vec*>(out + r * kp)[v] = sum[r][v];
}

template <class T, int R>
inline void product(const T* const* x, const T* m, T* out, int64_t k, int64_t kp) {
  for (int64_t j = 0; j < kp;) {
    const int64_t width = tile_width((kp - j) / lanes<T>());
    if (width == 3)
      product_tile<T, R, 3>(x, m + j, out + j, k, kp);
    else if (width == 2)
      product_tile<T, R, 2>(x, m + j, out + j, k, kp);
    else
      product_tile<T, R, 1>(x, m + j, out + j, k, kp);
    j += width * lanes<T>();
  }
}

template <class T, int V>
inline int64_t single_row_tiles(const T* const* x, const T* m, T* out, int64_t k, int64_t kp,
                                int64_t j) {
  for (; j + V * lanes<T>() <= kp; j += V * lanes<T>())
    product_tile<T, 1, V>(x, m + j, out + j, k, kp);
  return j;
}

// Rows [Kp] that are not neighbours in memory; 1 or 4 of them.
template <class T> struct Rows {
  const T* at[4];

  // `rows` rows, the first of which is given, each `stride` after the one before; where there are
  // fewer than `rows`, the first stands in for the others.
  Rows(const T* first, int64_t rows, int64_t stride, int64_t count) {
    for (int64_t r = 0; r < rows; ++r) at[r] = first + (r < count ? r * stride : 0);
  }
};

// Rows times a matrix [K, Kp], into [rows, Kp].
template <class T>
void times(int64_t rows, const Rows<T>& x, const std::vector<T>& matrix, T* out, int64_t k,
           int64_t kp) {
  const T* m = matrix.data();
  if (rows == 4) return product<T, 4>(x.at, m, out, k, kp);
  int64_t j = single_row_tiles<T, 8>(x.at, m, out, k, kp, 0);
  j = single_row_tiles<T, 4>(x.at, m, out, k, kp, j);
  single_row_tiles<T, 1>(x.at, m, out, k, kp, j);
}

// The same for rows [rows, Kp] that are neighbours.
template <class T>
void times(int64_t rows, const T* x, const std::vector<T>& matrix, T* out, int64_t k, int64_t kp) {
  times(rows, Rows<T>(x, rows, kp, rows), matrix, out, k, kp);
}

template <class T, int R, int V>
inline void outer_tile(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t kp,
                       int64_t count, T* total) {
  using vec = typename Vec<T>::type;
  vec sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = reinterpret_cast<vec*>(total + r * kp)[v];
  for (int64_t m = 0; m < count; ++m) {
    const vec* row = reinterpret_cast<const vec*>(b + m * b_stride);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] += a[m * a_stride + r] * row[v];
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) reinterpret_cast<vec*>(total + r * kp)[v] = sum[r][v];
}

template <class T, int R>
inline void outer_rows(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t kp,
                       int64_t count, T* total) {
  for (int64_t j = 0; j < kp;) {
    const int64_t width = tile_width((kp - j) / lanes<T>());
    if (width == 3)
      outer_tile<T, R, 3>(a, a_stride, b + j, b_stride, kp, count, total + j);
    else if (width == 2)
      outer_tile<T, R, 2>(a, a_stride, b + j, b_stride, kp, count, total + j);
    else
      outer_tile<T, R, 1>(a, a_stride, b + j, b_stride, kp, count, total + j);
    j += width * lanes<T>();
  }
}

// Add to total [K, Kp] the outer products of `count` rows a [K] and b [Kp], each in strides.
template <class T>
void add_outer(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t count, T* total,
               int64_t k, int64_t kp) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4)
    outer_rows<T, 4>(a + i, a_stride, b, b_stride, kp, count, total + i * kp);
  for (; i < k; ++i) outer_rows<T, 1>(a + i, a_stride, b, b_stride, kp, count, total + i * kp);
}

}  // namespace structdist
