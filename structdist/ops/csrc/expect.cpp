// Conditional expectations of an additive function of the path, and their adjoint.
//
// F_t(j) is the mean of all values up to step t, given that the path is in j at step t:
//     F_{t+1}(j) = R_j + value_{t+1}(j),   R_j = sum_i w_ij (F_t(i) + V_ij),
// with w_ij = P_i E_ij / q_j as in filter.cpp. Means are kept in double. Products see them relative
// to that of the most likely state (`pivot`), and edge values relative to that of the best edge
// into j (`value_shift`), so that they stay small however long the chain and large the scores.
//
// The adjoint carries M, the gradient of F (the marginals), and G, that of log_alpha:
//     M_t(i) = sum_j w_ij M_{t+1}(j)
//     G_t(i) = sum_j w_ij (G_{t+1}(j) + M_{t+1}(j) (F_t(i) + V_ij - R_j)).
#include "chain.h"

namespace structdist {
namespace {

// Mirrors `_Expectation` in native.py.
struct Expectation {
  const double* node_values;  // [N, T, K], finite
  const void* edge_values;    // form of the transitions, or none
  double* mean;               // [N, T, K]: F
  double* value;              // [N]: the expectation
};

// P and P (F - pivot) of one step, [K]; returns the pivot.
template <class T>
double weigh_means(const Filtered& f, int64_t at, const double* mean, int64_t k, T* p, T* p_mean) {
  std::copy_n(static_cast<const T*>(f.weights) + at, k, p);
  const double pivot = mean[at + (std::max_element(p, p + k) - p)];
  for (int64_t i = 0; i < k; ++i) p_mean[i] = p[i] * T(mean[at + i] - pivot);
  return pivot;
}

template <class T> class Expect {
 public:
  Expect(const Chain& c, const Filtered& f, const Expectation& v, EdgeCache<T> edges)
      : c_(c),
        f_(f),
        v_(v),
        edges_(std::move(edges)),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        p_(c.rows() * kp_, T(0)),
        p_mean_(p_),
        from_means_(p_),
        from_values_(p_),
        pivot_(c.rows()),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) v_.value[n] = 0;
    block.each(0, [&](int64_t n, int64_t) {
      std::copy_n(v_.node_values + c_.at(n, 0), k_, v_.mean + c_.at(n, 0));
    });
    for (int64_t t = 1; t < block.longest; ++t) {
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      block.each(t, [&](int64_t n, int64_t row) {
        pivot_[row] =
            weigh_means(f_, c_.at(n, t - 1), v_.mean, k_, &p_[row * kp_], &p_mean_[row * kp_]);
      });
      times(c_.rows(), p_mean_.data(), edges.weight, from_means_.data(), k_, kp_);
      if (edges.values)
        times(c_.rows(), p_.data(), edges.weighted_value, from_values_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { arrive(edges, n, t, row); });
    }
    block.each(0, [&](int64_t n, int64_t) { v_.value[n] = overall(n); });
  }

 private:
  void arrive(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T* q = static_cast<const T*>(f_.arrival) + c_.at(n, t);
    const T *a = &from_means_[row * kp_], *b = &from_values_[row * kp_];
    const double* node_value = v_.node_values + c_.at(n, t);
    double* mean = v_.mean + c_.at(n, t);
    for (int64_t j = 0; j < k_; ++j)
      mean[j] = double((a[j] + b[j]) / (q[j] >= trust<T>() ? q[j] : T(1))) + pivot_[row] +
                edges.value_shift[j] + node_value[j];
    if (!any_doubtful(q, k_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>())) mean[j] = arrive_carefully(edges, n, t, j) + node_value[j];
  }

  double arrive_carefully(const Edges<T>& edges, int64_t n, int64_t t, int64_t j) {
    const double *before = f_.log_alpha + c_.at(n, t - 1), *mean = v_.mean + c_.at(n, t - 1);
    if (f_.log_alpha[c_.at(n, t) + j] == kMinusInf) return 0;
    double sum = 0;
    edges.given_after(before, j, w_.data());
    for (int64_t i = 0; i < k_; ++i) {
      if (w_[i] == 0) continue;
      sum += w_[i] * (mean[i] + (edges.values ? double(edges.values[i * k_ + j]) : 0));
    }
    return sum;
  }

  double overall(int64_t n) const {
    const int64_t at = c_.at(n, c_.lengths[n] - 1);
    const T* p = static_cast<const T*>(f_.weights) + at;
    const double total = sum_of(p, k_);
    double sum = 0;
    for (int64_t j = 0; j < k_; ++j) sum += p[j] * v_.mean[at + j];
    return total > 0 ? sum / total : 0;
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  EdgeCache<T> edges_;
  int64_t k_, kp_;
  std::vector<T> p_, p_mean_, from_means_, from_values_;
  std::vector<double> pivot_, w_;
};

// Mirrors `_ExpectGrad` in native.py. As in filter.cpp, what shared transitions get are products
// of [N, T, K] factors (zeroed by the caller) and the weights p, but for doubtful columns:
// grad transitions = E * (p' u + p_mean' m + V * p' m), grad edge values = E * p' m, V shifted.
struct ExpectGrad {
  const void* grad_value;  // [N]
  void* grad_emissions;    // [N, T, K], zeroed
  void* grad_nodes;        // [N, T, K], zeroed
  void *p_mean, *u, *m;
  void* grad_transitions;  // zeroed; one matrix a thread if shared, as in filter.cpp
  void* grad_edge_values;  // likewise
};

template <class T> class ExpectAdjoint {
 public:
  ExpectAdjoint(const Chain& c, const Filtered& f, const Expectation& v, const ExpectGrad& a,
                EdgeCache<T> edges, int64_t thread)
      : c_(c),
        f_(f),
        v_(v),
        a_(a),
        edges_(std::move(edges)),
        thread_(thread),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        grad_(c.rows() * kp_, T(0)),
        mass_(grad_),
        u_(grad_),
        m_(grad_),
        p_(grad_),
        p_mean_(grad_),
        eu_(grad_),
        em_(grad_),
        evm_(grad_),
        pivot_(c.rows()),
        w_(k_),
        grad_after_(k_),
        mass_after_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    std::fill(u_.begin(), u_.end(), T(0));
    std::fill(m_.begin(), m_.end(), T(0));
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      block.each(t, [&](int64_t n, int64_t row) { take_in(n, t, row); });
      if (t == 0) break;
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      block.each(t, [&](int64_t n, int64_t row) { scale(edges, n, t, row); });
      times(c_.rows(), u_.data(), edges.weight_t, eu_.data(), k_, kp_);
      times(c_.rows(), m_.data(), edges.weight_t, em_.data(), k_, kp_);
      if (edges.values) times(c_.rows(), m_.data(), edges.weighted_value_t, evm_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { step_back(edges, n, t, row); });
    }
  }

 private:
  const T* arrival(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.arrival) + c_.at(n, t);
  }

  // The mean before step t, R_j, less the pivot.
  double relative(int64_t n, int64_t t, int64_t row, int64_t j) const {
    const int64_t at = c_.at(n, t) + j;
    return v_.mean[at] - v_.node_values[at] - pivot_[row];
  }

  // At the last step the gradients begin; at each, they are those of emissions and node values.
  void take_in(int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *mass = &mass_[row * kp_];
    const int64_t at = c_.at(n, t);
    if (t == c_.lengths[n] - 1) {
      const T* p = static_cast<const T*>(f_.weights) + at;
      const T scale = T(static_cast<const T*>(a_.grad_value)[n] / sum_of(p, k_));
      for (int64_t j = 0; j < k_; ++j) mass[j] = p[j] * scale;
      for (int64_t j = 0; j < k_; ++j) g[j] = mass[j] * T(v_.mean[at + j] - v_.value[n]);
    }
    std::copy_n(g, k_, static_cast<T*>(a_.grad_emissions) + at);
    std::copy_n(mass, k_, static_cast<T*>(a_.grad_nodes) + at);
  }

  // u = (G - M R) / q and m = M / q, where q is trusted. R without the shift, as the values are.
  void scale(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const int64_t r = row * kp_;
    pivot_[row] = weigh_means(f_, c_.at(n, t - 1), v_.mean, k_, &p_[r], &p_mean_[r]);
    const T* q = arrival(n, t);
    for (int64_t j = 0; j < k_; ++j) {
      const T inverse = q[j] >= trust<T>() ? T(1) / q[j] : T(0);
      m_[r + j] = mass_[r + j] * inverse;
      const T unshifted = T(relative(n, t, row, j) - edges.value_shift[j]);
      u_[r + j] = (grad_[r + j] - mass_[r + j] * unshifted) * inverse;
    }
  }

  void step_back(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const int64_t r = row * kp_;
    const T* q = arrival(n, t);
    std::copy_n(&grad_[r], k_, grad_after_.data());
    std::copy_n(&mass_[r], k_, mass_after_.data());
    for (int64_t i = 0; i < k_; ++i) {
      mass_[r + i] = p_[r + i] * em_[r + i];
      grad_[r + i] = p_[r + i] * (eu_[r + i] + evm_[r + i]) + p_mean_[r + i] * em_[r + i];
    }
    const int64_t edge = add_trusted_edges(edges, n, t, r);
    if (!any_doubtful(q, k_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && (grad_after_[j] != 0 || mass_after_[j] != 0))
        leave_carefully(edges, n, t, row, j, edge);
  }

  // Returns where this step's gradients of edges are.
  int64_t add_trusted_edges(const Edges<T>& edges, int64_t n, int64_t t, int64_t r) {
    if (c_.shared()) {
      const int64_t at = c_.at(n, t - 1);
      std::copy_n(&p_mean_[r], k_, static_cast<T*>(a_.p_mean) + at);
      std::copy_n(&u_[r], k_, static_cast<T*>(a_.u) + at);
      std::copy_n(&m_[r], k_, static_cast<T*>(a_.m) + at);
      return thread_ * k_ * k_;
    }
    const int64_t offset = c_.edge(n, t - 1);
    T* grad_edges = static_cast<T*>(a_.grad_transitions) + offset;
    T* grad_values = static_cast<T*>(a_.grad_edge_values) + offset;
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j) {
        const T weight = edges.weight[i * kp_ + j];
        const T value = edges.values ? edges.shifted_value(i, j) : T(0);
        const T mass = p_[r + i] * weight * m_[r + j];
        grad_values[i * k_ + j] += mass;
        grad_edges[i * k_ + j] +=
            weight * (p_[r + i] * u_[r + j] + p_mean_[r + i] * m_[r + j]) + mass * value;
      }
    return offset;
  }

  void leave_carefully(const Edges<T>& edges, int64_t n, int64_t t, int64_t row, int64_t j,
                       int64_t edge) {
    const int64_t before = c_.at(n, t - 1);
    if (!edges.given_after(f_.log_alpha + before, j, w_.data())) return;
    const double r_j = relative(n, t, row, j);
    for (int64_t i = 0; i < k_; ++i) {
      if (w_[i] == 0) continue;
      const double value = edges.values ? double(edges.values[i * k_ + j]) : 0;
      const double mean = v_.mean[before + i] - pivot_[row];
      const T mass = T(w_[i] * mass_after_[j]);
      const T grad = T(w_[i] * (grad_after_[j] + mass_after_[j] * (mean + value - r_j)));
      mass_[row * kp_ + i] += mass;
      grad_[row * kp_ + i] += grad;
      static_cast<T*>(a_.grad_transitions)[edge + i * k_ + j] += grad;
      static_cast<T*>(a_.grad_edge_values)[edge + i * k_ + j] += mass;
    }
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  const ExpectGrad& a_;
  EdgeCache<T> edges_;
  int64_t thread_, k_, kp_;
  std::vector<T> grad_, mass_, u_, m_, p_, p_mean_, eu_, em_, evm_;
  std::vector<double> pivot_, w_;
  std::vector<T> grad_after_, mass_after_;
};

}  // namespace

template <class T> void expect(const Chain& c, const Filtered& f, const Expectation& v) {
  for_blocks<T>(c, v.edge_values, Sweep::forward,
                [&](EdgeCache<T> edges, int64_t) { return Expect<T>(c, f, v, std::move(edges)); });
}

template <class T>
void expect_adjoint(const Chain& c, const Filtered& f, const Expectation& v, const ExpectGrad& a) {
  for_blocks<T>(c, v.edge_values, Sweep::backward, [&](EdgeCache<T> edges, int64_t thread) {
    return ExpectAdjoint<T>(c, f, v, a, std::move(edges), thread);
  });
}

STRUCTDIST_EXPORT_KERNEL(expect, (const Chain& c, const Filtered& f, const Expectation& v),
                         (c, f, v))
STRUCTDIST_EXPORT_KERNEL(expect_adjoint,
                         (const Chain& c, const Filtered& f, const Expectation& v,
                          const ExpectGrad& a),
                         (c, f, v, a))

}  // namespace structdist
