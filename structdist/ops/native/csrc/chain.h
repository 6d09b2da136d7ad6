// What every kernel is given, and the matrices it works with.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "arguments.h"
#include "pool.h"
#include "product.h"
#include "scalar_math.h"

namespace structdist {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// A score as it enters sums: finite ones are kept within +-1e300, so that no number of them on a
// path overflows (finfo.min of double is what some write for a mask). -inf and NaN stay.
template <class T> inline double bounded(T score) {
  const double x = double(score);
  if (sizeof(T) == 4) return x;
  const double high = x > 1e300 ? 1e300 : x;
  return high < -1e300 && high != kMinusInf ? -1e300 : high;
}

// A mean as it enters products: rounded to T, and so far from overflow that a sum of a million of
// them is finite too (what it weighs may still be 0).
template <class T> inline T narrowed(double x) {
  constexpr double most = double(std::numeric_limits<T>::max()) / (1 << 20);
  return T(x > most ? most : x < -most ? -most : x);
}

// A sum of products P_i E_ij is trusted from here on: what underflowed in it is less than
// K * min / trust of it, far below one rounding error (min = 1.6e-38 and 1e-304, where fast_exp
// gives 0).
template <class T> constexpr T trust() {
  return sizeof(T) == 4 ? T(1e-20) : T(1e-150);
}

// Weights up to here are 0 to logarithms; p log p of the rest is right to the last digits.
template <class T> constexpr T least() {
  return sizeof(T) == 4 ? T(1.2e-38) : T(1e-300);
}

// Is any of the sums too small to trust, or NaN?
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

  template <class IsPossible> Possible(int64_t k, IsPossible is_possible) : bits(words(k), 0) {
    for (int64_t i = 0; i < k; ++i)
      if (is_possible(i)) bits[i / 64] |= uint64_t(1) << (i % 64);
  }

  bool any_of(const uint64_t* others) const {
    for (size_t w = 0; w < bits.size(); ++w)
      if (bits[w] & others[w]) return true;
    return false;
  }
};

enum class Sweep { forward, backward };

// What a sweep carries along edges: nothing, values as given, or their surprisal -log weight.
enum class Carried { nothing, values, surprisal };

// exp of a transition matrix, each column scaled to have 1 as its largest entry, and its transpose.
// Optionally also both times elementwise with a matrix of values.
template <class T> struct Edges {
  int64_t k = 0, kp = 0;
  Carried carried = Carried::nothing;
  const T* scores = nullptr;              // [K, K], as given
  const T* values = nullptr;              // [K, K], or none
  Numbers<T> weight, weighted_value;      // [K, Kp]
  Numbers<T> weight_t, weighted_value_t;  // [K, Kp], for sweeps back
  Numbers<T> scores_t;                    // [K, Kp], for sweeps back
  std::vector<double> column_peak;        // [K], the largest score, 0 if all are -inf
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
      for (int64_t j = 0; j < k; ++j) row[j] = fast_exp<T>(T(score(i, j) - column_peak[j]));
      std::fill_n(row + k, kp - k, T(1));  // so that no sum beyond K looks as if it underflowed
    }
    if (carried != Carried::nothing) weigh_values();
    if (sweep == Sweep::forward) {
      mark_allowed();
    } else {
      transpose(weight, weight_t);
      scores_t.assign(k * kp, T(0));
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j) scores_t[j * kp + i] = scores[i * k + j];
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
    return carried == Carried::surprisal ? T(column_peak[j] - score(i, j))
                                         : narrowed<T>(double(values[i * k + j]) - value_shift[j]);
  }

  void weigh_values() {
    weighted_value.assign(k * kp, T(0));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        weighted_value[i * kp + j] = weight[i * kp + j] * shifted_value(i, j);
  }

  void transpose(const Numbers<T>& from, Numbers<T>& to) const {
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

  // Call f(i, j, where the entry is in a padded matrix, its weight) for each edge.
  template <class F> void each(F f) const {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j) f(i, j, i * kp + j, weight[i * kp + j]);
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

// How edges are to be packed and, where all chains share them, the packed edges.
template <class T> struct EdgePack {
  const T* values;
  Carried carried;
  Sweep sweep;
  Edges<T> shared;

  EdgePack(const Chain& c, Sweep direction, Carried what = Carried::nothing,
           const void* given_values = nullptr)
      : values(static_cast<const T*>(given_values)), carried(what), sweep(direction) {
    const T* scores = static_cast<const T*>(c.transitions);
    if (c.shared()) shared.pack(scores, values, carried, c.num_states, sweep);
  }
};

// The edges of one step: the shared ones, else packed as each is asked for.
template <class T> class EdgeCache {
 public:
  EdgeCache(const Chain& chain, const EdgePack<T>& pack) : chain_(chain), pack_(pack) {}

  const Edges<T>& at(int64_t n, int64_t t) {
    if (chain_.shared()) return pack_.shared;
    const int64_t offset = chain_.edge(n, t);
    if (offset != packed_) {
      const T* scores = static_cast<const T*>(chain_.transitions) + offset;
      const T* values = pack_.values ? pack_.values + offset : nullptr;
      own_.pack(scores, values, pack_.carried, chain_.num_states, pack_.sweep);
      packed_ = offset;
    }
    return own_;
  }

 private:
  const Chain& chain_;
  const EdgePack<T>& pack_;
  Edges<T> own_;
  int64_t packed_ = -1;
};

// A few chains that go through the time steps together, one row of Kp numbers each.
struct Block {
  const Chain& chain;
  int64_t first, end, longest = 0;

  Block(const Chain& c, int64_t index)
      : chain(c), first(index * c.rows()), end(std::min(first + c.rows(), c.num_chains)) {
    for (int64_t n = first; n < end; ++n) longest = std::max(longest, c.length(n));
  }

  // Call f(n, row) for each chain that has a step t.
  template <class F> void each(int64_t t, F f) const {
    for (int64_t n = first; n < end; ++n)
      if (t < chain.length(n)) f(n, n - first);
  }
};

// Zeros in all entries of a tensor [N, T, K] beyond a chain's length.
template <class T> void zero_padding(const Chain& c, int64_t n, void* x) {
  T* begin = static_cast<T*>(x) + c.at(n, c.length(n));
  std::fill(begin, static_cast<T*>(x) + c.at(n, c.num_steps), T(0));
}

// Blocks are cut into groups of neighbours, by the problem alone and never by the number of
// threads. A group is done in order by one thread; what groups have summed up is added in their
// order. So results are the same, to the bit, on any number of threads.
class Groups {
 public:
  explicit Groups(const Chain& c) : blocks_(c.blocks()) {
    const int64_t room = int64_t(1) << 24;  // numbers that sums of all groups may take
    const int64_t most = std::max<int64_t>(2, room / (c.num_states * padded<float>(c.num_states)));
    count_ = std::min({int64_t(16), most, blocks_});
  }
  int64_t count() const { return count_; }
  int64_t begin(int64_t group) const { return blocks_ * group / count_; }

 private:
  int64_t blocks_, count_;
};

// How many threads are worth their wake-up for a sweep that does `products` matrix products a step.
inline int64_t worthwhile_threads(const Chain& c, double products) {
  const double k = double(c.num_states), steps = double(c.num_chains) * double(c.num_steps);
  const double nanoseconds = steps * (products * k * k / 12 + k * (2 + 2 * products));
  const double half_milliseconds = nanoseconds / 5e5;
  if (half_milliseconds < 2) return 1;
  return std::min<int64_t>(c.num_threads, int64_t(half_milliseconds));
}

// Run a sweep over all blocks. make_sweep(group) gives each group an object of its own, with a
// method run(block).
template <class MakeSweep> void for_groups(const Chain& c, double products, MakeSweep make_sweep) {
  const Groups groups(c);
  for_pieces(groups.count(), worthwhile_threads(c, products), [&](int64_t group) {
    auto sweep = make_sweep(group);
    for (int64_t index = groups.begin(group); index < groups.begin(group + 1); ++index)
      sweep.run(index);
  });
}

// The same for a sweep that needs edges: make_sweep(edges, group).
template <class T, class MakeSweep>
void for_groups(const Chain& c, double products, const EdgePack<T>& pack, MakeSweep make_sweep) {
  for_groups(c, products, [&](int64_t group) { return make_sweep(EdgeCache<T>(c, pack), group); });
}

// What transitions that all chains share sum up to: one matrix [K, Kp] for each group.
template <class T> class GroupSums {
 public:
  GroupSums(const Chain& c, bool wanted)
      : k_(c.num_states),
        size_(k_ * padded<T>(k_)),
        count_(Groups(c).count()),
        sums_(wanted && c.shared() ? size_ * count_ : 0, T(0)) {}
  T* of(int64_t group) { return sums_.empty() ? nullptr : &sums_[size_ * group]; }
  // The sum over groups, in the place of the first.
  const T* total() {
    if (sums_.empty()) return nullptr;
    for (int64_t group = 1; group < count_; ++group)
      for (int64_t i = 0; i < size_; ++i) sums_[i] += sums_[size_ * group + i];
    return sums_.data();
  }
  // The same, added to a matrix [K, K]; if at all.
  void add_to(void* matrix) {
    const T* sum = total();
    for (int64_t i = 0; sum && i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j)
        static_cast<T*>(matrix)[i * k_ + j] += sum[i * padded<T>(k_) + j];
  }
  // The same where each row is a column of the matrix [K, K] that they are written to; if at all.
  void write_columns(void* matrix) {
    const T* columns = total();
    for (int64_t i = 0; columns && i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j)
        static_cast<T*>(matrix)[i * k_ + j] = columns[j * padded<T>(k_) + i];
  }

 private:
  int64_t k_, size_, count_;
  Numbers<T> sums_;
};

// Zeros in the gradients of edges that chains do not share, which are added up in place.
template <class T> void zero_own_edges(const Chain& c, void* grad_edges) {
  if (!grad_edges || c.shared()) return;
  const int64_t matrices = c.num_chains * (c.step_stride ? c.num_steps - 1 : 1);
  std::fill_n(static_cast<T*>(grad_edges), matrices * c.num_states * c.num_states, T(0));
}

}  // namespace structdist

// Each kernel is a template, and has a C name for float and one for double.
#ifdef _WIN32
#define STRUCTDIST_EXPORT extern "C" __declspec(dllexport)
#else
#define STRUCTDIST_EXPORT extern "C" __attribute__((visibility("default")))
#endif
#define STRUCTDIST_EXPORT_KERNEL(name, parameters, arguments) \
  STRUCTDIST_EXPORT int64_t name##_float parameters {         \
    return structdist::name<float> arguments;                 \
  }                                                           \
  STRUCTDIST_EXPORT int64_t name##_double parameters {        \
    return structdist::name<double> arguments;                \
  }
