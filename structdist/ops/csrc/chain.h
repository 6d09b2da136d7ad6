// What every kernel is given, and the matrices it works with.
#pragma once

#include <algorithm>
#include <vector>

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

// Mirrors `_Chain` in native.py. Entry [i, j] of a transition matrix scores moving from i to j;
// the strides are 0 where all chains, or all steps, share one matrix.
struct Chain {
  int64_t num_chains, num_steps, num_states;
  const void* emissions;    // [N, T, K]
  const void* transitions;  // [K, K], [N, K, K] or [N, T-1, K, K]
  const int64_t* lengths;   // [N]
  int64_t chain_stride, step_stride;
  int64_t num_threads;

  bool shared() const { return chain_stride == 0 && step_stride == 0; }
  // Chains that share their matrix go through it together.
  int64_t rows() const { return shared() ? 4 : 1; }
  int64_t blocks() const { return (num_chains + rows() - 1) / rows(); }
  // Where [n, t] begins in a tensor [N, T, K].
  int64_t at(int64_t n, int64_t t) const { return (n * num_steps + t) * num_states; }
  // Where the edges from step t to t+1 begin, in a tensor of the transitions' form.
  int64_t edge(int64_t n, int64_t t) const { return n * chain_stride + t * step_stride; }
};

// Mirrors `_Filtered` in native.py: what the forward pass found.
struct Filtered {
  double* log_alpha;  // [N, T, K], the largest of each step 0
  double* log_norm;   // [N, T], what was taken off at each step
  void* weights;      // [N, T, K], in the dtype of the emissions: exp(log_alpha), 0 in the padding
  void* arrival;      // [N, T, K], in the dtype of the emissions: see filter.cpp
  double* log_z;      // [N]
};

// A sum of products P_i E_ij is trusted from here on: what underflowed in it is less than
// K * min / trust of it, far below one rounding error (min = 1.6e-38 and 1e-304, where fast_exp
// gives 0).
template <class T> constexpr T trust() {
  return sizeof(T) == 4 ? T(1e-20) : T(1e-150);
}

template <class T> inline bool any_doubtful(const T* q, int64_t k) {
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
  const T* scores = nullptr;                  // [K, K], as given
  const T* values = nullptr;                  // [K, K], or none
  std::vector<T> weight, weighted_value;      // [K, Kp]
  std::vector<T> weight_t, weighted_value_t;  // [K, Kp], for sweeps back
  std::vector<double> column_peak;            // [K], the largest score, 0 if all are -inf
  std::vector<double>
      value_shift;                // [K], the value beside the largest score; taken off in products
  std::vector<uint64_t> allowed;  // [K, words]: which states may lead to j, as bits; for sweeps
                                  // forward

  void pack(const T* given_scores, const T* given_values, int64_t num_states, Sweep sweep) {
    k = num_states, kp = padded<T>(k), scores = given_scores, values = given_values;
    find_peaks();
    weight.resize(k * kp);
    for (int64_t i = 0; i < k; ++i) {
      T* row = &weight[i * kp];
      for (int64_t j = 0; j < k; ++j) row[j] = fast_exp<T>(scores[i * k + j] - T(column_peak[j]));
      std::fill_n(row + k, kp - k, T(0));
    }
    if (values) weigh_values();
    if (sweep == Sweep::forward) {
      mark_allowed();
    } else {
      transpose(weight, weight_t);
      if (values) transpose(weighted_value, weighted_value_t);
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
      if (peak > -std::numeric_limits<T>::infinity()) column_peak[j] = peak;
      if (values) value_shift[j] = values[at[j] * k + j];
    }
  }

  // In use only where the weight is not 0, hence where the value counts.
  T shifted_value(int64_t i, int64_t j) const {
    return weight[i * kp + j] > 0 ? T(values[i * k + j] - value_shift[j]) : T(0);
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
    double peak = kMinusInf, sum = 0;
    for (int64_t i = 0; i < k; ++i) peak = std::max(peak, log_alpha[i] + scores[i * k + j]);
    if (peak == kMinusInf) return kMinusInf;
    for (int64_t i = 0; i < k; ++i) sum += std::exp(log_alpha[i] + scores[i * k + j] - peak);
    return peak + std::log(sum);
  }

  // The probability of each state before, given j after it. False if j is unreachable.
  bool given_after(const double* log_alpha, int64_t j, double* w) const {
    const double log_sum = log_sum_into(log_alpha, j);
    if (log_sum == kMinusInf) return false;
    for (int64_t i = 0; i < k; ++i) w[i] = std::exp(log_alpha[i] + scores[i * k + j] - log_sum);
    return true;
  }
};

// The edges of one step: packed once where all chains share them, else as each is asked for.
template <class T> class EdgeCache {
 public:
  EdgeCache(const Chain& chain, const T* values, Sweep sweep, const Edges<T>* shared)
      : chain_(chain), values_(values), sweep_(sweep), shared_(shared) {}

  const Edges<T>& at(int64_t n, int64_t t) {
    if (shared_) return *shared_;
    const int64_t offset = chain_.edge(n, t);
    if (offset != packed_) {
      const T* scores = static_cast<const T*>(chain_.transitions) + offset;
      own_.pack(scores, values_ ? values_ + offset : nullptr, chain_.num_states, sweep_);
      packed_ = offset;
    }
    return own_;
  }

 private:
  const Chain& chain_;
  const T* values_;
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
void for_blocks(const Chain& c, const void* values, Sweep direction, MakeSweep make_sweep) {
  const T* edge_values = static_cast<const T*>(values);
  Edges<T> shared;
  if (c.shared())
    shared.pack(static_cast<const T*>(c.transitions), edge_values, c.num_states, direction);
  for_blocks(c, [&](int64_t thread) {
    EdgeCache<T> edges(c, edge_values, direction, c.shared() ? &shared : nullptr);
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
