// Small dense products: a few rows times one matrix that stays in cache, and sums of outer
// products. Accumulators stay in registers; rows of matrices are padded to whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "wide.h"

namespace structdist {

template <class T> constexpr int64_t lanes() {
  return 32 / sizeof(T);
}
template <class T> constexpr int64_t padded(int64_t k) {
  return (k + lanes<T>() - 1) / lanes<T>() * lanes<T>();
}

// Numbers that begin where a cache line does: vectors that straddle two lines are read at half the
// speed.
constexpr size_t kLine = 64;
template <class T> struct InWholeLines {
  using value_type = T;
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(kLine)));
  }
  void deallocate(T* at, size_t) { ::operator delete(at, std::align_val_t(kLine)); }
  bool operator==(const InWholeLines&) const { return true; }
  bool operator!=(const InWholeLines&) const { return false; }
};
template <class T> using Numbers = std::vector<T, InWholeLines<T>>;

template <class T> struct Vec {
  typedef T type __attribute__((vector_size(32), aligned(sizeof(T))));
};

// Ask for a row [Kp] that a later step will read: rows of one step lie far apart in memory, so that
// no processor guesses which are next. Inlined, since compilers drop calls that only do this.
template <class T> inline __attribute__((always_inline)) void fetch(const T* row, int64_t kp) {
  for (int64_t j = 0; j < kp; j += 64 / sizeof(T)) __builtin_prefetch(row + j);
}
template <class T> inline __attribute__((always_inline)) void fetch_to_write(T* row, int64_t kp) {
  for (int64_t j = 0; j < kp; j += 64 / sizeof(T)) __builtin_prefetch(row + j, 1);
}

// Copy k numbers, without the call that copies of unknown size take; the last vector overlaps.
template <class T> inline void copy_row(const T* from, T* to, int64_t k) {
  using vec = typename Vec<T>::type;
  const auto copy = [&](int64_t j) {
    *reinterpret_cast<vec*>(to + j) = *reinterpret_cast<const vec*>(from + j);
  };
  if (k < lanes<T>()) {
    for (int64_t j = 0; j < k; ++j) to[j] = from[j];
    return;
  }
  for (int64_t j = 0; j + lanes<T>() <= k; j += lanes<T>()) copy(j);
  copy(k - lanes<T>());
}

// Each lane of a vector from the lane of `x` that `from` says.
template <class V, class Places> inline V shuffled(V x, Places from) {
#ifdef __clang__  // where such a shuffle has to be known when compiled; loops over lanes become one
  V y{};
  for (size_t v = 0; v < sizeof(V) / sizeof(y[0]); ++v) y[v] = x[from[v]];
  return y;
#else
  return __builtin_shuffle(x, from);
#endif
}

// The largest, the first place where it is, and the sum of numbers [Kp].
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
template <class T> inline int64_t place_of_max(const T* x, int64_t kp) {
  using vec = typename Vec<T>::type;
  using places = decltype(vec{} > vec{});
  places first{}, at;  // of each lane
  for (int v = 0; v < lanes<T>(); ++v) first[v] = v;
  at = first;
  vec most = reinterpret_cast<const vec*>(x)[0];
  for (int64_t j = lanes<T>(); j < kp; j += lanes<T>()) {
    const vec here = *reinterpret_cast<const vec*>(x + j);
    const places more = here > most;
    most = more ? here : most;
    at = more ? first + int(j) : at;
  }
#pragma GCC unroll 4
  for (int half = lanes<T>() / 2; half > 0; half /= 2) {
    const places other = (first + half) & int(lanes<T>() - 1);
    const vec here = shuffled(most, other);
    const places there = shuffled(at, other);
    const places better = (here > most) | ((here == most) & (there < at));
    most = better ? here : most;
    at = better ? there : at;
  }
  return at[0];
}
template <class T> inline T sum_of(const T* x, int64_t kp) {
  using vec = typename Vec<T>::type;
  vec sum = reinterpret_cast<const vec*>(x)[0];
  for (int64_t j = lanes<T>(); j < kp; j += lanes<T>()) sum += *reinterpret_cast<const vec*>(x + j);
  T total = 0;
  for (int v = 0; v < lanes<T>(); ++v) total += sum[v];
  return total;
}

// The sum of products of numbers [K], which need not be padded.
template <class T> inline T dot(const T* x, const T* y, int64_t k) {
  using vec = typename Vec<T>::type;
  vec sum{};
  int64_t i = 0;
  for (; i + lanes<T>() <= k; i += lanes<T>())
    sum += *reinterpret_cast<const vec*>(x + i) * *reinterpret_cast<const vec*>(y + i);
  T total = 0;
  for (int v = 0; v < lanes<T>(); ++v) total += sum[v];
  for (; i < k; ++i) total += x[i] * y[i];
  return total;
}

// Of `left` vectors, how many go into the next tile: three at a time, but never one alone last.
inline int64_t tile_width(int64_t left) {
  return left == 4 || left == 2 ? 2 : left == 1 ? 1 : 3;
}

// Accumulators [R, V] of a tile, all of them in registers.
template <class T, int R, int V> struct Tile {
  using vec = typename Vec<T>::type;
  vec sum[R][V];

  // Call f(r, v, the accumulator) for each; unrolled, so that none needs an address.
  template <class F> inline __attribute__((always_inline)) void each(F f) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) f(r, v, sum[r][v]);
  }

  // Add rows x [R, K] times the columns of a matrix [K, Kp] that the tile stands for.
  inline __attribute__((always_inline)) void add_product(const T* const* x, const T* matrix,
                                                         int64_t k, int64_t kp) {
    for (int64_t i = 0; i < k; ++i) {
      const vec* row = reinterpret_cast<const vec*>(matrix + i * kp);
      each([&](int r, int v, vec& total) { total += x[r][i] * row[v]; });
    }
  }
};

// Rows [Kp] that are not neighbours in memory; 1 or 4 of them.
template <class T> struct Rows {
  const T* at[4]{};

  // `rows` rows, the first of which is given, each `stride` after the one before; where there are
  // fewer than `rows`, the first stands in for the others.
  Rows(const T* first, int64_t rows, int64_t stride, int64_t count) {
    for (int64_t r = 0; r < rows; ++r) at[r] = first + (r < count ? r * stride : 0);
  }
};

// Rows, and the matrix [K, Kp] that they are multiplied with.
template <class T> struct Factors {
  Rows<T> rows;
  const T* matrix;
};

// Columns from j on of a product, or of the sum of two (the second may be none).
template <class T, int R, int V>
inline void product_tile(const Factors<T>& one, const Factors<T>* other, T* out, int64_t j,
                         int64_t k, int64_t kp) {
  using vec = typename Vec<T>::type;
  Tile<T, R, V> tile;
  tile.each([](int, int, vec& total) { total = vec{}; });
  tile.add_product(one.rows.at, one.matrix + j, k, kp);
  if (other) tile.add_product(other->rows.at, other->matrix + j, k, kp);
  tile.each([&](int r, int v, vec& total) { reinterpret_cast<vec*>(out + r * kp + j)[v] = total; });
}

// A product into [rows, Kp], or the sum of two (the second may be none).
template <class T> struct Product {
  Factors<T> one;
  const Factors<T>* other;
  T* out;

  template <int R, int V> inline void tile(int64_t j, int64_t k, int64_t kp) const {
    product_tile<T, R, V>(one, other, out, j, k, kp);
  }
};

// Rows that are summed up in outer products: a [count, K], b [count, Kp], each in strides.
template <class T> struct Outer {
  const T *a, *b;
  int64_t a_stride, b_stride, count;
};

// Their twins in wide.cpp pay for long rows alone.
template <class T> inline bool goes_wide(int64_t kp) {
  return wide_vectors && kp * sizeof(T) >= 3 * kLine;
}

template <class T, int V, class... Products>
inline int64_t single_row_tiles(int64_t j, int64_t k, int64_t kp, const Products&... products) {
  for (; j + V * lanes<T>() <= kp; j += V * lanes<T>())
    (products.template tile<1, V>(j, k, kp), ...);
  return j;
}

// Products of 1 or 4 rows. Several of them go together, column by column, so that a matrix which
// they share is still in the nearest cache for the second.
template <class T, class... Products>
void multiply(int64_t rows, int64_t k, int64_t kp, const Products&... products) {
  if (rows == 1) {
    int64_t j = single_row_tiles<T, 8>(0, k, kp, products...);
    j = single_row_tiles<T, 4>(j, k, kp, products...);
    single_row_tiles<T, 1>(j, k, kp, products...);
    return;
  }
  if (goes_wide<T>(kp)) {
    const Product<T> all[] = {products...};
    multiply_wide(all, sizeof...(products), k, kp);
    return;
  }
  for (int64_t j = 0; j < kp;) {
    const int64_t width = tile_width((kp - j) / lanes<T>());
    if (width == 3)
      (products.template tile<4, 3>(j, k, kp), ...);
    else if (width == 2)
      (products.template tile<4, 2>(j, k, kp), ...);
    else
      (products.template tile<4, 1>(j, k, kp), ...);
    j += width * lanes<T>();
  }
}

// One product, or the sum of two, into [rows, Kp]; of 1 or 4 rows.
template <class T>
void times(int64_t rows, const Factors<T>& one, const Factors<T>* other, T* out, int64_t k,
           int64_t kp) {
  multiply<T>(rows, k, kp, Product<T>{one, other, out});
}

// Rows [rows, Kp] that are neighbours, times a matrix.
template <class T>
void times(int64_t rows, const T* x, const Numbers<T>& matrix, T* out, int64_t k, int64_t kp) {
  times<T>(rows, {Rows<T>(x, rows, kp, rows), matrix.data()}, nullptr, out, k, kp);
}

template <class T, int R, int V>
inline void outer_tile(const Outer<T>& x, T* total, int64_t i, int64_t j, int64_t kp) {
  using vec = typename Vec<T>::type;
  Tile<T, R, V> tile;
  T* place = total + i * kp + j;
  tile.each([&](int r, int v, vec& sum) { sum = reinterpret_cast<vec*>(place + r * kp)[v]; });
  const T *a = x.a + i, *b = x.b + j;
  for (int64_t m = 0; m < x.count; ++m, a += x.a_stride, b += x.b_stride) {
    const vec* row = reinterpret_cast<const vec*>(b);
    tile.each([&](int r, int v, vec& sum) { sum += a[r] * row[v]; });
  }
  tile.each([&](int r, int v, vec& sum) { reinterpret_cast<vec*>(place + r * kp)[v] = sum; });
}

// All rows of V vectors: what stands there of b stays in the nearest cache.
template <class T, int V>
inline void outer_columns(const Outer<T>& x, T* total, int64_t j, int64_t k, int64_t kp) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) outer_tile<T, 4, V>(x, total, i, j, kp);
  for (; i + 2 <= k; i += 2) outer_tile<T, 2, V>(x, total, i, j, kp);
  for (; i < k; ++i) outer_tile<T, 1, V>(x, total, i, j, kp);
}

// Add outer products to total [K, Kp].
template <class T> void add_outer(const Outer<T>& x, T* total, int64_t k, int64_t kp) {
  if (goes_wide<T>(kp)) {
    add_outer_wide(x, total, k, kp);
    return;
  }
  for (int64_t j = 0; j < kp;) {
    const int64_t width = tile_width((kp - j) / lanes<T>());
    if (width == 3)
      outer_columns<T, 3>(x, total, j, k, kp);
    else if (width == 2)
      outer_columns<T, 2>(x, total, j, k, kp);
    else
      outer_columns<T, 1>(x, total, j, k, kp);
    j += width * lanes<T>();
  }
}

}  // namespace structdist
