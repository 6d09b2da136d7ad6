// Conditional expectations of an additive function of the path, entropies, and their adjoint.
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
//
// The entropy is the same with V_ij = -log w_ij and no values on nodes: then F_t(j) is the entropy
// of the path up to step t, given j there (Algorithm 3 of Fu et al.). Since
//     -log w_ij = log q_j - log P_i - log E_ij,
// products see P_i (F_t(i) - log P_i) and E_ij (-log E_ij), all bounded, and log q_j is added in
// the end. Scores enter through w alone: none is so large that anything overflows or cancels.
#include "chain.h"

namespace structdist {
namespace {

// P and P (F - pivot) of one step, [K], for the entropy P (F - log P - pivot); returns the pivot.
template <class T>
double weigh_means(const Filtered& f, const Expectation& v, int64_t at, int64_t k, T* p,
                   T* p_mean) {
  std::copy_n(static_cast<const T*>(f.weights) + at, k, p);
  const double *mean = v.mean + at, *log_p = f.log_alpha + at;
  const double pivot = mean[std::max_element(p, p + k) - p];
  if (v.is_entropy()) {
    for (int64_t i = 0; i < k; ++i)
      p_mean[i] = p[i] > 0 ? p[i] * T(mean[i] - log_p[i] - pivot) : T(0);
  } else {
    for (int64_t i = 0; i < k; ++i)
      p_mean[i] = p[i] > 0 ? p[i] * narrowed<T>(mean[i] - pivot) : T(0);
  }
  return pivot;
}

// What an edge of conditional probability w adds: its value, or its surprisal.
template <class T>
double value_of_edge(const Edges<T>& edges, const Expectation& v, double w, int64_t i, int64_t j) {
  if (v.is_entropy()) return -std::log(w);
  return edges.values ? double(edges.values[i * edges.k + j]) : 0;
}

// What a last state of probability p adds: nothing, or its surprisal.
inline double surprisal_at_end(const Expectation& v, double p) {
  return v.is_entropy() ? -std::log(p) : 0;
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
        log_q_(kp_),
        pivot_(c.rows()),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) v_.value[n] = 0;
    block.each(0, [&](int64_t n, int64_t) {
      for (int64_t at = c_.at(n, 0); at < c_.at(n, 0) + k_; ++at) v_.mean[at] = v_.node_value(at);
    });
    for (int64_t t = 1; t < block.longest; ++t) {
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      block.each(t, [&](int64_t n, int64_t row) {
        pivot_[row] = weigh_means(f_, v_, c_.at(n, t - 1), k_, &p_[row * kp_], &p_mean_[row * kp_]);
      });
      times(c_.rows(), p_mean_.data(), edges.weight, from_means_.data(), k_, kp_);
      if (edges.carried != Carried::nothing)
        times(c_.rows(), p_.data(), edges.weighted_value, from_values_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { arrive(edges, n, t, row); });
    }
    block.each(0, [&](int64_t n, int64_t) { v_.value[n] = overall(n); });
  }

 private:
  void arrive(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T* q = static_cast<const T*>(f_.incoming) + c_.at(n, t);
    const T *a = &from_means_[row * kp_], *b = &from_values_[row * kp_];
    double* mean = v_.mean + c_.at(n, t);
    for (int64_t j = 0; j < k_; ++j)
      mean[j] = double((a[j] + b[j]) / (q[j] >= trust<T>() ? q[j] : T(1))) + pivot_[row];
    if (v_.is_entropy()) {
      for (int64_t j = 0; j < k_; ++j) log_q_[j] = fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1));
      for (int64_t j = 0; j < k_; ++j) mean[j] = std::max(mean[j] + double(log_q_[j]), 0.0);
    } else {
      const double* node_value = v_.node_values + c_.at(n, t);
      for (int64_t j = 0; j < k_; ++j) mean[j] += edges.value_shift[j] + node_value[j];
    }
    if (!any_underflow(q, k_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()))
        mean[j] = arrive_in_log_space(edges, n, t, j) + v_.node_value(c_.at(n, t) + j);
  }

  double arrive_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t j) {
    const double *before = f_.log_alpha + c_.at(n, t - 1), *mean = v_.mean + c_.at(n, t - 1);
    if (f_.log_alpha[c_.at(n, t) + j] == kMinusInf) return 0;
    double sum = 0;
    edges.given_after(before, j, w_.data());
    for (int64_t i = 0; i < k_; ++i) {
      if (w_[i] == 0) continue;
      sum += w_[i] * (mean[i] + value_of_edge(edges, v_, w_[i], i, j));
    }
    return sum;
  }

  double overall(int64_t n) const {
    const int64_t at = c_.at(n, c_.lengths[n] - 1);
    const T* p = static_cast<const T*>(f_.weights) + at;
    const double total = sum_of(p, k_);
    double sum = 0;
    for (int64_t j = 0; j < k_; ++j)
      if (p[j] > 0) sum += p[j] / total * (v_.mean[at + j] + surprisal_at_end(v_, p[j] / total));
    return sum;
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  EdgeCache<T> edges_;
  int64_t k_, kp_;
  std::vector<T> p_, p_mean_, from_means_, from_values_, log_q_;
  std::vector<double> pivot_, w_;
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
        log_q_(k_),
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
      if (edges.carried != Carried::nothing)
        times(c_.rows(), m_.data(), edges.weighted_value_t, evm_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { step_back(edges, n, t, row); });
    }
  }

 private:
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.at(n, t);
  }

  // The mean before step t, R_j, less the pivot (for the entropy: as it was after step t).
  double relative(int64_t n, int64_t t, int64_t row, int64_t j) const {
    const int64_t at = c_.at(n, t) + j;
    return v_.mean[at] - v_.node_value(at) - pivot_[row];
  }

  // At the last step the gradients begin; at each, they are those of emissions and node values.
  void take_in(int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *mass = &mass_[row * kp_];
    const int64_t at = c_.at(n, t);
    if (t == c_.lengths[n] - 1) {
      const T* p = static_cast<const T*>(f_.weights) + at;
      const double total = sum_of(p, k_);  // 0 where no path is allowed
      const T scale = total > 0 ? T(static_cast<const T*>(a_.grad_value)[n] / total) : T(0);
      for (int64_t j = 0; j < k_; ++j) mass[j] = p[j] * scale;
      for (int64_t j = 0; j < k_; ++j) {
        const double end = p[j] > 0 ? surprisal_at_end(v_, p[j] / total) : 0;
        g[j] = p[j] > 0 ? mass[j] * narrowed<T>(v_.mean[at + j] + end - v_.value[n]) : T(0);
      }
    }
    std::copy_n(g, k_, static_cast<T*>(a_.grad_emissions) + at);
    if (a_.grad_nodes) std::copy_n(mass, k_, static_cast<T*>(a_.grad_nodes) + at);
  }

  // u = (G - M R) / q and m = M / q, where q is trusted. R without the shift, as the values are.
  void scale(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const int64_t r = row * kp_;
    pivot_[row] = weigh_means(f_, v_, c_.at(n, t - 1), k_, &p_[r], &p_mean_[r]);
    const T* q = incoming(n, t);
    for (int64_t j = 0; j < k_; ++j)
      log_q_[j] = v_.is_entropy() ? fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1)) : T(0);
    for (int64_t j = 0; j < k_; ++j) {
      const T inverse = q[j] >= trust<T>() ? T(1) / q[j] : T(0);
      m_[r + j] = mass_[r + j] * inverse;
      const double shift = edges.value_shift[j] + double(log_q_[j]);
      const T unshifted = inverse > 0 ? narrowed<T>(relative(n, t, row, j) - shift) : T(0);
      u_[r + j] = (grad_[r + j] - mass_[r + j] * unshifted) * inverse;
    }
  }

  void step_back(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const int64_t r = row * kp_;
    const T* q = incoming(n, t);
    std::copy_n(&grad_[r], k_, grad_after_.data());
    std::copy_n(&mass_[r], k_, mass_after_.data());
    for (int64_t i = 0; i < k_; ++i) {
      mass_[r + i] = p_[r + i] * em_[r + i];
      grad_[r + i] = p_[r + i] * (eu_[r + i] + evm_[r + i]) + p_mean_[r + i] * em_[r + i];
    }
    const int64_t edge = add_trusted_edges(edges, n, t, r);
    if (!any_underflow(q, k_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && (grad_after_[j] != 0 || mass_after_[j] != 0))
        leave_in_log_space(edges, n, t, row, j, edge);
  }

  // Returns where this step's gradients of edges are.
  int64_t add_trusted_edges(const Edges<T>& edges, int64_t n, int64_t t, int64_t r) {
    if (!a_.grad_transitions) return 0;
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
        const T value = edges.carried != Carried::nothing ? edges.shifted_value(i, j) : T(0);
        const T mass = p_[r + i] * weight * m_[r + j];
        if (a_.grad_edge_values) grad_values[i * k_ + j] += mass;
        grad_edges[i * k_ + j] +=
            weight * (p_[r + i] * u_[r + j] + p_mean_[r + i] * m_[r + j]) + mass * value;
      }
    return offset;
  }

  void leave_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t row, int64_t j,
                          int64_t edge) {
    const int64_t before = c_.at(n, t - 1);
    if (!edges.given_after(f_.log_alpha + before, j, w_.data())) return;
    const double r_j = relative(n, t, row, j);
    for (int64_t i = 0; i < k_; ++i) {
      if (w_[i] == 0) continue;
      const double value = value_of_edge(edges, v_, w_[i], i, j);
      const double mean = v_.mean[before + i] - pivot_[row];
      const T mass = T(w_[i] * mass_after_[j]);
      const T grad = T(w_[i] * (grad_after_[j] + mass_after_[j] * (mean + value - r_j)));
      mass_[row * kp_ + i] += mass;
      grad_[row * kp_ + i] += grad;
      if (!a_.grad_transitions) continue;
      static_cast<T*>(a_.grad_transitions)[edge + i * k_ + j] += grad;
      if (a_.grad_edge_values) static_cast<T*>(a_.grad_edge_values)[edge + i * k_ + j] += mass;
    }
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  const ExpectGrad& a_;
  EdgeCache<T> edges_;
  int64_t thread_, k_, kp_;
  std::vector<T> grad_, mass_, u_, m_, p_, p_mean_, eu_, em_, evm_, log_q_;
  std::vector<double> pivot_, w_;
  std::vector<T> grad_after_, mass_after_;
};

}  // namespace

template <class T> void expect(const Chain& c, const Filtered& f, const Expectation& v) {
  for_blocks<T>(c, v.edge_values, v.carried(), Sweep::forward,
                [&](EdgeCache<T> edges, int64_t) { return Expect<T>(c, f, v, std::move(edges)); });
}

template <class T>
void expect_adjoint(const Chain& c, const Filtered& f, const Expectation& v, const ExpectGrad& a) {
  for_blocks<T>(c, v.edge_values, v.carried(), Sweep::backward,
                [&](EdgeCache<T> edges, int64_t thread) {
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
