// What every kernel is given, and the matrices it works with.
#pragma once

#include <algorithm>
#include <vector>

#include "arguments.h"
#include "product.h"
#include "scalar_math.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace structdist {

inline int64_t thread_index() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// A score as it enters sums: finite ones are kept within +-1e300, so that no number of them on a
// path overflows (finfo.min of double is what some write for a mask). -inf and NaN stay.
template <class T> inline double bounded(T score) {
  const double x = double(score);
  if (sizeof(T) == 4) return x;
  const double high = x > 1e300 ? 1e300 : x;
  return high < -1e300 && high != kMinusInf ? -1e300 : high;
}

// A mean as it enters products: rounded to T, and finite (what it weighs may still be 0).
template <class T> inline T narrowed(double x) {
  constexpr double most = double(std::numeric_limits<T>::max()) / 4;
  return T(x > most ? most : x < -most ? -most : x);
}

// A sum of products P_i E_ij is trusted from here on: what underflowed in it is less than
// K * min / trust of it, far below one rounding error (min = 1.6e-38 and 1e-304, where fast_exp
// gives 0).
template <class T> constexpr T trust() {
  return sizeof(T) == 4 ? T(1e-20) : T(1e-150);
}

template <class T> inline bool any_underflow(const T* q, int64_t k) {
  int found = 0;
  for (int64_t j = 0; j < k; ++j) found |= !(q[j] >= trust<T>());
  return found;
}

inline int64_t words(int64_t k) {
  return (k + 63) / 64;
}

// Which states a chain can be in, as bits: tells a sum that is 0 from one that underflowed.
struct Possible {
  std::vector<uint64_t> bits;

  Possible(const double* log_alpha, int64_t k) : bits(words(k), 0) {
    for (int64_t i = 0; i < k; ++i)
      if (log_alpha[i] > kMinusInf) bits[i / 64] |= uint64_t(1) << (i % 64);
  }

  bool any_of(const uint64_t* others) const {
    for (size_t w = 0; w < bits.size(); ++w)
      if (bits[w] & others[w]) return true;
    return false;
  }
};

enum class Sweep { forward, backward };

// exp of a transition matrix, each column scaled to have 1 as its largest entry, and its transpose.
// Optionally also both times elementwise with a matrix of values.
template <class T> struct Edges {
  int64_t k = 0, kp = 0;
  Carried carried = Carried::nothing;
  const T* scores = nullptr;                  // [K, K], as given
  const T* values = nullptr;                  // [K, K], or none
  std::vector<T> weight, weighted_value;      // [K, Kp]
  std::vector<T> weight_t, weighted_value_t;  // [K, Kp], for sweeps back
  std::vector<double> column_peak;            // [K], the largest score, 0 if all are -inf
  std::vector<double>
      value_shift;                // [K], the value beside the largest score; taken off in products
  std::vector<uint64_t> allowed;  // [K, words]: which states may lead to j, as bits; for sweeps
                                  // forward

  void pack(const T* given_scores, const T* given_values, Carried what, int64_t num_states,
            Sweep sweep) {
    k = num_states, kp = padded<T>(k), scores = given_scores, values = given_values;
    carried = what;
    find_peaks();
    weight.resize(k * kp);
    for (int64_t i = 0; i < k; ++i) {
      T* row = &weight[i * kp];
      for (int64_t j = 0; j < k; ++j) row[j] = fast_exp<T>(scores[i * k + j] - T(column_peak[j]));
      std::fill_n(row + k, kp - k, T(0));
    }
    if (carried != Carried::nothing) weigh_values();
    if (sweep == Sweep::forward) {
      mark_allowed();
    } else {
      transpose(weight, weight_t);
      if (carried != Carried::nothing) transpose(weighted_value, weighted_value_t);
    }
  }

  void find_peaks() {
    std::vector<int64_t> at(k, 0);
    for (int64_t i = 1; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        if (scores[i * k + j] > scores[at[j] * k + j]) at[j] = i;
    column_peak.assign(k, 0);
    value_shift.assign(k, 0);
    for (int64_t j = 0; j < k; ++j) {
      const T peak = scores[at[j] * k + j];
      if (peak > -std::numeric_limits<T>::infinity()) column_peak[j] = bounded(peak);
      if (values) value_shift[j] = values[at[j] * k + j];
    }
  }

  // In use only where the weight is not 0, hence where the value counts.
  T shifted_value(int64_t i, int64_t j) const {
    if (!(weight[i * kp + j] > 0)) return T(0);
    const double score = double(scores[i * k + j]);
    return carried == Carried::surprisal ? T(column_peak[j] - score)
                                         : narrowed<T>(double(values[i * k + j]) - value_shift[j]);
  }

  void weigh_values() {
    weighted_value.assign(k * kp, T(0));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        weighted_value[i * kp + j] = weight[i * kp + j] * shifted_value(i, j);
  }

  void transpose(const std::vector<T>& from, std::vector<T>& to) const {
    to.assign(k * kp, T(0));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j) to[j * kp + i] = from[i * kp + j];
  }

  void mark_allowed() {
    allowed.assign(k * words(k), 0);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        if (scores[i * k + j] > -std::numeric_limits<T>::infinity())
          allowed[j * words(k) + i / 64] |= uint64_t(1) << (i % 64);
  }

  const uint64_t* allowed_into(int64_t j) const { return &allowed[j * words(k)]; }

  // The log of the sum over i of exp(log_alpha_i + score_ij), the careful way. -inf where no
  // possible state leads to j.
  double log_sum_into(const double* log_alpha, int64_t j) const {
    const double peak = peak_into(log_alpha, j);
    if (peak == kMinusInf) return kMinusInf;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += std::exp(log_alpha[i] + score(i, j) - peak);
    return peak + std::log(sum);
  }

  // The probability of each state before, given j after it. False if j is unreachable. Divided by
  // their sum rather than by exp(log_sum), whose digits large scores have eaten.
  bool given_after(const double* log_alpha, int64_t j, double* w) const {
    const double peak = peak_into(log_alpha, j);
    if (peak == kMinusInf) return false;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += w[i] = std::exp(log_alpha[i] + score(i, j) - peak);
    for (int64_t i = 0; i < k; ++i) w[i] /= sum;
    return true;
  }

  double score(int64_t i, int64_t j) const { return bounded(scores[i * k + j]); }

  double peak_into(const double* log_alpha, int64_t j) const {
    double peak = kMinusInf;
    for (int64_t i = 0; i < k; ++i) peak = std::max(peak, log_alpha[i] + score(i, j));
    return peak;
  }
};

// The edges of one step: packed once where all chains share them, else as each is asked for.
template <class T> class EdgeCache {
 public:
  EdgeCache(const Chain& chain, const T* values, Carried carried, Sweep sweep,
            const Edges<T>* shared)
      : chain_(chain), values_(values), carried_(carried), sweep_(sweep), shared_(shared) {}

  const Edges<T>& at(int64_t n, int64_t t) {
    if (shared_) return *shared_;
    const int64_t offset = chain_.edge(n, t);
    if (offset != packed_) {
      const T* scores = static_cast<const T*>(chain_.transitions) + offset;
      const T* values = values_ ? values_ + offset : nullptr;
      own_.pack(scores, values, carried_, chain_.num_states, sweep_);
      packed_ = offset;
    }
    return own_;
  }

 private:
  const Chain& chain_;
  const T* values_;
  Carried carried_;
  Sweep sweep_;
  const Edges<T>* shared_;
  Edges<T> own_;
  int64_t packed_ = -1;
};

// A few chains that go through the time steps together, one row of Kp numbers each.
struct Block {
  const Chain& chain;
  int64_t first, end, longest = 0;

  Block(const Chain& c, int64_t index)
      : chain(c), first(index * c.rows()), end(std::min(first + c.rows(), c.num_chains)) {
    for (int64_t n = first; n < end; ++n) longest = std::max(longest, c.lengths[n]);
  }

  // Call f(n, row) for each chain that has a step t.
  template <class F> void each(int64_t t, F f) const {
    for (int64_t n = first; n < end; ++n)
      if (t < chain.lengths[n]) f(n, n - first);
  }
};

template <class T> double sum_of(const T* x, int64_t k) {
  double sum = 0;
  for (int64_t j = 0; j < k; ++j) sum += x[j];
  return sum;
}

// Run a sweep over all blocks, on all threads. make_sweep(thread) gives each thread an object of
// its own, with a method run(block).
template <class MakeSweep> void for_blocks(const Chain& c, MakeSweep make_sweep) {
#pragma omp parallel num_threads(c.num_threads)
  {
    auto sweep = make_sweep(thread_index());
#pragma omp for schedule(dynamic)
    for (int64_t index = 0; index < c.blocks(); ++index) sweep.run(index);
  }
}

// The same for a sweep that needs edges: make_sweep(edges, thread).
template <class T, class MakeSweep>
void for_blocks(const Chain& c, const void* values, Carried carried, Sweep direction,
                MakeSweep make_sweep) {
  const T* edge_values = static_cast<const T*>(values);
  Edges<T> shared;
  if (c.shared())
    shared.pack(static_cast<const T*>(c.transitions), edge_values, carried, c.num_states,
                direction);
  for_blocks(c, [&](int64_t thread) {
    EdgeCache<T> edges(c, edge_values, carried, direction, c.shared() ? &shared : nullptr);
    return make_sweep(std::move(edges), thread);
  });
}

}  // namespace structdist

// Each kernel is a template, and has a C name for float and one for double.
#define STRUCTDIST_EXPORT extern "C" __attribute__((visibility("default")))
#define STRUCTDIST_EXPORT_KERNEL(name, parameters, arguments) \
  STRUCTDIST_EXPORT void name##_float parameters {            \
    structdist::name<float> arguments;                        \
  }                                                           \
  STRUCTDIST_EXPORT void name##_double parameters {           \
    structdist::name<double> arguments;                       \
  }
