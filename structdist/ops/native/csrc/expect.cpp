// Conditional expectations of an additive function of the path, and entropies.
//
// F_t(j) is the mean of all values up to step t, given that the path is in j at step t:
//     F_{t+1}(j) = R_j + value_{t+1}(j),   R_j = sum_i w_ij (F_t(i) + V_ij),
// with w_ij = P_i E_ij / q_j as in filter.cpp. Means are kept in double. Products see them relative
// to that of the most likely state (`pivot`), and edge values relative to that of the best edge
// into j (`value_shift`), so that they stay small however long the chain and large the scores:
//     r_j = R_j - pivot - value_shift_j
//         = (sum_i P_i (F_t(i) - pivot) E_ij + sum_i P_i (EV)_ij) / q_j.
//
// The entropy is the same with V_ij = -log w_ij and no values on nodes: then F_t(j) is the entropy
// of the path up to step t, given j there (Algorithm 3 of Fu et al.). Since
//     -log w_ij = log q_j - log P_i - log E_ij,
// products see F_t(i) - log P_i in the place of F_t(i), and E_ij (-log E_ij), all bounded; then
//     F_{t+1}(j) - log P_{t+1}(j) = pivot + r_j - log (P_{t+1}(j) / q_j).
// The entropy of all paths is the average of F - log P over the last weights, plus the log of their
// sum. Scores enter through w alone: none is so large that anything overflows or cancels.
//
// Both products of a step add up in the same registers. Beside them what else is done for a state
// counts: for the entropy one logarithm and one reciprocal, and only the pivot is in double. F
// itself, pivot + r_j + log q_j, is made for chains in log space alone.
#include "expectation.h"

namespace structdist {
namespace {

template <class T> class Expect {
 public:
  Expect(const Chain& c, const Filtered& f, const Expectation& v, EdgeCache<T> edges)
      : c_(c),
        f_(f),
        v_(v),
        edges_(std::move(edges)),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        sums_(c.rows() * kp_, T(0)),
        means_(c.rows() * kp_, 0.0),
        pivot_(c.rows()),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) v_.value[n] = 0;
    block.each(0, [&](int64_t n, int64_t row) { begin_with(n, row); });
    for (int64_t t = 1; t < block.longest; ++t) {
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      const Factors<T> means{rows_of(v_.p_mean, block, t - 1), edges.weight.data()};
      const Factors<T> values{rows_of(f_.weights, block, t - 1), edges.weighted_value.data()};
      const bool carries = edges.carried != Carried::nothing;
      times<T>(c_.rows(), means, carries ? &values : nullptr, sums_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { arrive(edges, n, t, row); });
    }
  }

 private:
  // One step of all chains of a block, in a tensor [N, T, Kp].
  Rows<T> rows_of(const void* tensor, const Block& block, int64_t t) const {
    const T* first = static_cast<const T*>(tensor) + c_.row<T>(block.first, t);
    return Rows<T>(first, c_.rows(), c_.num_steps * kp_, block.end - block.first);
  }
  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.row<T>(n, t);
  }
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
  }
  T* p_mean(int64_t n, int64_t t) const { return static_cast<T*>(v_.p_mean) + c_.row<T>(n, t); }
  T* ratio(int64_t n, int64_t t) const { return static_cast<T*>(v_.ratio) + c_.row<T>(n, t); }
  // Means of all steps are kept where log space may ask for them again, else those of one step.
  double* mean(int64_t n, int64_t t) {
    return v_.mean ? v_.mean + c_.row<T>(n, t) : &means_[n % c_.rows() * kp_];
  }

  void begin_with(int64_t n, int64_t row) {
    pivot_[row] = 0;
    std::fill_n(mean(n, 0), kp_, 0.0);
    for (int64_t j = 0; j < k_; ++j) mean(n, 0)[j] = v_.node_value(c_.at(n, 0) + j);
    const T* p = weights(n, 0);
    T* centred = p_mean(n, 0);
    if (v_.is_entropy())
      for (int64_t j = 0; j < kp_; ++j) centred[j] = -fast_log<T>(p[j] > least<T>() ? p[j] : T(1));
    weigh(n, 0, row);
  }

  void arrive(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    if (v_.is_entropy()) {
      add_surprisals(n, t, row);
      if (f_.in_log_space[n]) find_entropies(edges, n, t, row);
    } else {
      add_values(edges, n, t, row);
    }
    weigh(n, t, row);
  }

  // Where p_mean will be: F - log P, less the pivot of the step before.
  void add_surprisals(int64_t n, int64_t t, int64_t row) {
    const T *sum = &sums_[row * kp_], *q = incoming(n, t), *p = weights(n, t);
    T *r = ratio(n, t), *centred = p_mean(n, t);
#pragma GCC ivdep
    for (int64_t j = 0; j < kp_; ++j) {
      const T inverse = q[j] >= trust<T>() ? T(1) / q[j] : T(0);
      const T boost = p[j] * inverse;
      r[j] = sum[j] * inverse;
      centred[j] = sum[j] * inverse - fast_log<T>(boost > least<T>() ? boost : T(1));
    }
  }

  // F itself, and all of that in log space where sums underflowed.
  void find_entropies(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T *q = incoming(n, t), *p = weights(n, t), *r = ratio(n, t);
    double* entropy = mean(n, t);
    for (int64_t j = 0; j < kp_; ++j) {
      const T log_q = fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1));
      const double found = pivot_[row] + (double(r[j]) + double(log_q));
      entropy[j] = found < 0 ? 0 : found;
    }
    const double* log_p = f_.log_alpha + c_.at(n, t);
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>())) {
        entropy[j] = arrive_in_log_space(edges, n, t, j);
        p_mean(n, t)[j] = p[j] > least<T>() ? T(entropy[j] - pivot_[row] - log_p[j]) : T(0);
      }
  }

  void add_values(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T *sum = &sums_[row * kp_], *q = incoming(n, t);
    const double* node_value = v_.node_values + c_.at(n, t);
    double* means = mean(n, t);
    T* r = ratio(n, t);
    for (int64_t j = 0; j < kp_; ++j) r[j] = sum[j] / (q[j] >= trust<T>() ? q[j] : T(1));
    for (int64_t j = 0; j < kp_; ++j) means[j] = double(r[j]) + pivot_[row];
    for (int64_t j = 0; j < k_; ++j) means[j] += edges.value_shift[j] + node_value[j];
    if (!any_underflow(q, kp_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>())) means[j] = arrive_in_log_space(edges, n, t, j) + node_value[j];
  }

  // P times means (for the entropy: F - log P) relative to a pivot: that of the likeliest state,
  // and at the last step their average, the expectation itself.
  void weigh(int64_t n, int64_t t, int64_t row) {
    const T* p = weights(n, t);
    T* weighed = p_mean(n, t);
    const bool last = t == c_.length(n) - 1;
    if (v_.is_entropy()) {
      const double centre = last ? average_of(weighed, p) : double(weighed[place_of_max(p, kp_)]);
      pivot_[row] += centre;
#pragma GCC ivdep
      for (int64_t i = 0; i < kp_; ++i) weighed[i] = p[i] * (weighed[i] - T(centre));
    } else {
      const double* means = mean(n, t);
      const double pivot = pivot_[row] = last ? average_of(means, p) : means[place_of_max(p, kp_)];
      for (int64_t i = 0; i < kp_; ++i) weighed[i] = p[i] * narrowed<T>(means[i] - pivot);
    }
    if (last) v_.value[n] = v_.is_entropy() ? overall_entropy(p, pivot_[row]) : pivot_[row];
  }

  // The average of numbers [K] under weights; 0 where all of those are 0.
  template <class X> double average_of(const X* x, const T* p) const {
    const double total = sum_of(p, kp_);
    double sum = 0;
    for (int64_t j = 0; j < k_; ++j)
      if (p[j] != 0) sum += p[j] / total * x[j];
    return sum;
  }

  // From the average of F - log P: the weights add up to more than 1.
  double overall_entropy(const T* p, double average) const {
    const double total = sum_of(p, kp_), entropy = average + std::log(total);
    return total == 0 || entropy < 0 ? 0 : entropy;
  }

  double arrive_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t j) {
    if (!f_.in_log_space[n] || f_.log_alpha[c_.at(n, t) + j] == kMinusInf) return 0;
    return mean_in_log_space(edges, f_.log_alpha + c_.at(n, t - 1), mean(n, t - 1), j, w_.data());
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  EdgeCache<T> edges_;
  int64_t k_, kp_;
  Numbers<T> sums_;
  std::vector<double> means_, pivot_, w_;
};

}  // namespace

template <class T> int64_t expect(const Chain& c, const State& s, const Expectation& v) {
  const Filtered f = Filtered::of<T>(c, s);
  const Carried carried = carried_by(v.is_entropy(), v.edge_values);
  const EdgePack<T> pack(c, Sweep::forward, carried, v.edge_values);
  for_groups(c, 2, pack,
             [&](EdgeCache<T> edges, int64_t) { return Expect<T>(c, f, v, std::move(edges)); });
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(expect, (const Chain& c, const State& s, const Expectation& v),
                         (c, s, v))

}  // namespace structdist
