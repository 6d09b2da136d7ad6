// exp and log as straight-line code on one number, so that compilers turn loops over them into
// vector code. Both are series after the usual range reduction; relative error about one unit in
// the last place of T. Arguments: exp wants x <= 88 (float) or 700 (double), log wants normal x >
// 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace structdist {

template <class T> struct Format;

template <> struct Format<float> {
  using Bits = uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits bias = 127;
  static constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float least_exp = -87.0f;
  static constexpr int exp_terms = 7, log_terms = 5;
};

template <> struct Format<double> {
  using Bits = uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits bias = 1023;
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double ln2_high = 6.93147180369123816490e-01;
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr double least_exp = -700.0;
  static constexpr int exp_terms = 13, log_terms = 11;
};

template <class To, class From> inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

// Coefficients of the series of exp.
constexpr double kInverseFactorials[] = {1,
                                         1,
                                         1.0 / 2,
                                         1.0 / 6,
                                         1.0 / 24,
                                         1.0 / 120,
                                         1.0 / 720,
                                         1.0 / 5040,
                                         1.0 / 40320,
                                         1.0 / 362880,
                                         1.0 / 3628800,
                                         1.0 / 39916800,
                                         1.0 / 479001600,
                                         1.0 / 6227020800};

// exp(x), and 0 below `least_exp` (-inf included). NaN stays.
template <class T> inline T fast_exp(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  const T clamped = x < F::least_exp ? F::least_exp : x;
  const T shifted = clamped * T(1.4426950408889634) + F::round_magic;
  const T n = shifted - F::round_magic;
  const T r = (clamped - n * F::ln2_high) - n * F::ln2_low;  // |r| <= log(2) / 2
  T series = T(kInverseFactorials[F::exp_terms]);
#pragma GCC unroll 16
  for (int k = F::exp_terms - 1; k >= 0; --k) series = series * r + T(kInverseFactorials[k]);
  const T power = bit_cast<T>(Bits((bit_cast<Bits>(shifted) + F::bias) << F::mantissa_bits));
  return x <= F::least_exp ? T(0) : series * power;
}

// log(x): x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1)).
template <class T> inline T fast_log(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  const Bits sqrt_half = bit_cast<Bits>(T(0.70710678118654752));
  const Bits one = F::bias << F::mantissa_bits;
  const Bits moved = bit_cast<Bits>(x) + (one - sqrt_half);
  const Bits fraction = moved & ((Bits(1) << F::mantissa_bits) - 1);
  const T m = bit_cast<T>(Bits(fraction + sqrt_half));
  const Bits magic = bit_cast<Bits>(F::round_magic);
  const T k = bit_cast<T>(Bits((moved >> F::mantissa_bits) + magic)) - F::round_magic - T(F::bias);
  const T s = (m - T(1)) / (m + T(1));
  const T square = s * s;
  T series = T(1) / T(2 * F::log_terms + 1);
#pragma GCC unroll 16
  for (int i = F::log_terms - 1; i >= 0; --i) series = series * square + T(1) / T(2 * i + 1);
  return k * F::ln2_high + (k * F::ln2_low + T(2) * s * series);
}

// The exponent e of a normal x > 0 with x = 2^e m, m in [1, 2).
template <class T> inline int64_t exponent_of(T x) {
  using F = Format<T>;
  return int64_t(bit_cast<typename F::Bits>(x) >> F::mantissa_bits) - int64_t(F::bias);
}

// 2^e, for an e that a normal number can have.
template <class T> inline T power_of_two(int64_t e) {
  using F = Format<T>;
  return bit_cast<T>(typename F::Bits(typename F::Bits(e + int64_t(F::bias)) << F::mantissa_bits));
}

}  // namespace structdist
