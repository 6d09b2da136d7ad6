// Small jobs over plain arrays, for which a call of torch would cost more than the work.
#include <limits>

#include "chain.h"

namespace structdist {

// 1 if all numbers are below +inf, and none is NaN.
template <class T> int64_t all_below_inf(const T* x, int64_t count) {
  int bad = 0;
  for (int64_t i = 0; i < count; ++i) bad |= !(x[i] < std::numeric_limits<T>::infinity());
  return !bad;
}

// Rounded to T, and finite where they were.
template <class T> int64_t round_finite(const double* x, T* out, int64_t count) {
  constexpr double most = double(std::numeric_limits<T>::max());
  for (int64_t i = 0; i < count; ++i) {
    const double finite = x[i] > most ? most : x[i] < -most ? -most : x[i];
    out[i] = std::isinf(x[i]) ? T(x[i]) : T(finite);
  }
  return 0;
}

}  // namespace structdist

STRUCTDIST_EXPORT int64_t all_below_inf_float(const float* x, int64_t count) {
  return structdist::all_below_inf(x, count);
}
STRUCTDIST_EXPORT int64_t all_below_inf_double(const double* x, int64_t count) {
  return structdist::all_below_inf(x, count);
}
STRUCTDIST_EXPORT int64_t round_finite_double(const double* x, double* out, int64_t count) {
  std::copy_n(x, count, out);
  return 0;
}
STRUCTDIST_EXPORT int64_t round_finite_float(const double* x, float* out, int64_t count) {
  return structdist::round_finite(x, out, count);
}
