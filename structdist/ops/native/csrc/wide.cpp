// The products of product.h and the noise of gumbel.h for processors with vectors of 64 bytes
// (AVX-512), which have twice the registers, too. Rows are padded to 32 bytes, so the last vector of
// a row may be half a one.
#include "wide.h"

#include <algorithm>

#include "product.h"
#include "scalar_math.h"

#if defined(__x86_64__) && !defined(_WIN32)
#define STRUCTDIST_WIDE
#include <cpuid.h>
#endif

namespace structdist {

#ifdef STRUCTDIST_WIDE

// Asked of the processor itself, as in module.cpp; the system must save the wide registers.
bool has_wide_vectors() {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const unsigned wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
  return (low & 0xe6) == 0xe6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & wanted) == wanted;
}

// All that follows may be called on such a processor alone, so nothing of it has a name outside;
// nor can it share the tiles of product.h, which are compiled for any processor.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
#endif
}  // namespace structdist
#include "gumbel.h"  // here, for such processors
namespace structdist {
namespace {

template <class T, int Bytes> struct Lanes {
  typedef T type __attribute__((vector_size(Bytes), aligned(sizeof(T))));
};

// Accumulators [R, V] of a tile, all of them in registers.
template <class T, int Bytes, int R, int V> struct WideTile {
  using vec = typename Lanes<T, Bytes>::type;
  vec sum[R][V];

  inline __attribute__((always_inline)) void clear() {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = vec{};
  }
  inline __attribute__((always_inline)) void load(const T* at, int64_t kp) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = reinterpret_cast<const vec*>(at + r * kp)[v];
  }
  inline __attribute__((always_inline)) void store(T* at, int64_t kp) const {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) reinterpret_cast<vec*>(at + r * kp)[v] = sum[r][v];
  }
  // Add a number for each row times the same vectors.
  template <class Number>
  inline __attribute__((always_inline)) void add(Number number, const T* vectors) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += number(r) * reinterpret_cast<const vec*>(vectors)[v];
  }
};

template <class T, int Bytes, int V> struct Columns {
  static inline void multiply(const Product<T>& product, int64_t j, int64_t k, int64_t kp) {
    WideTile<T, Bytes, 4, V> tile;
    tile.clear();
    const Factors<T>* const both[] = {&product.one, product.other};
    for (const Factors<T>* factors : both) {
      if (!factors) continue;
      const T *const *x = factors->rows.at, *row = factors->matrix + j;
      const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
      for (int64_t i = 0; i < k; ++i, row += kp)
        tile.add([&](int r) { return (r == 0 ? x0 : r == 1 ? x1 : r == 2 ? x2 : x3)[i]; }, row);
    }
    tile.store(product.out + j, kp);
  }

  template <int R>
  static inline void add_outer(const Outer<T>& x, T* total, int64_t i, int64_t j, int64_t kp) {
    WideTile<T, Bytes, R, V> tile;
    tile.load(total + i * kp + j, kp);
    const T *a = x.a + i, *b = x.b + j;
    for (int64_t m = 0; m < x.count; ++m, a += x.a_stride, b += x.b_stride)
      tile.add([&](int r) { return a[r]; }, b);
    tile.store(total + i * kp + j, kp);
  }

  static inline void add_outers(const Outer<T>& x, T* total, int64_t j, int64_t k, int64_t kp) {
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) add_outer<4>(x, total, i, j, kp);
    for (; i < k; ++i) add_outer<1>(x, total, i, j, kp);
  }
};

// Call f(columns, where they begin) for tiles of up to four vectors, none of one vector alone where
// that can be helped, and for what is left of a row.
template <class T, class F> inline void over_columns(int64_t kp, F f) {
  constexpr int64_t lanes = 64 / sizeof(T);
  int64_t j = 0;
  for (int64_t left = kp / lanes; left > 0;) {
    const int64_t width = left == 5 || left == 6 ? 3 : left > 4 ? 4 : left;
    if (width == 4)
      f(Columns<T, 64, 4>(), j);
    else if (width == 3)
      f(Columns<T, 64, 3>(), j);
    else if (width == 2)
      f(Columns<T, 64, 2>(), j);
    else
      f(Columns<T, 64, 1>(), j);
    j += width * lanes, left -= width;
  }
  if (j < kp) f(Columns<T, 32, 1>(), j);
}

template <class T>
void multiply_all(const Product<T>* products, int64_t count, int64_t k, int64_t kp) {
  over_columns<T>(kp, [&](auto columns, int64_t j) {
    for (int64_t p = 0; p < count; ++p) columns.multiply(products[p], j, k, kp);
  });
}

template <class T> void add_all(const Outer<T>& x, T* total, int64_t k, int64_t kp) {
  over_columns<T>(kp, [&](auto columns, int64_t j) { columns.add_outers(x, total, j, k, kp); });
}

}  // namespace
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

void multiply_wide(const Product<float>* products, int64_t count, int64_t k, int64_t kp) {
  multiply_all(products, count, k, kp);
}
void multiply_wide(const Product<double>* products, int64_t count, int64_t k, int64_t kp) {
  multiply_all(products, count, k, kp);
}
void add_outer_wide(const Outer<float>& x, float* total, int64_t k, int64_t kp) {
  add_all(x, total, k, kp);
}
void add_outer_wide(const Outer<double>& x, double* total, int64_t k, int64_t kp) {
  add_all(x, total, k, kp);
}
void fill_with_noise_wide(uint64_t seed, int64_t begin, int64_t count, float* out) {
  fill_with_noise(seed, begin, count, out);
}
void fill_with_noise_wide(uint64_t seed, int64_t begin, int64_t count, double* out) {
  fill_with_noise(seed, begin, count, out);
}

#else

bool has_wide_vectors() {
  return false;
}
void multiply_wide(const Product<float>*, int64_t, int64_t, int64_t) {}
void multiply_wide(const Product<double>*, int64_t, int64_t, int64_t) {}
void add_outer_wide(const Outer<float>&, float*, int64_t, int64_t) {}
void add_outer_wide(const Outer<double>&, double*, int64_t, int64_t) {}
void fill_with_noise_wide(uint64_t, int64_t, int64_t, float*) {}
void fill_with_noise_wide(uint64_t, int64_t, int64_t, double*) {}

#endif

bool wide_vectors = has_wide_vectors();

}  // namespace structdist
