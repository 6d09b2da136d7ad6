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

constexpr int64_t kChunk = 32;  // steps whose outer products are made together

Carried carried_by(const Expectation& v) {
  if (v.is_entropy()) return Carried::surprisal;
  return v.edge_values ? Carried::values : Carried::nothing;
}

// P (F - pivot) of the step at a row, [Kp], for the entropy P (F - log P - pivot). Returns the
// pivot, the mean of the likeliest state.
template <class T>
double weigh_means(const Filtered& f, const Expectation& v, int64_t at, int64_t kp) {
  const T* p = static_cast<const T*>(f.weights) + at;
  T* p_mean = static_cast<T*>(v.p_mean) + at;
  const double* mean = v.mean + at;
  const T largest = max_of(p, kp);
  int64_t likeliest = 0;
  while (likeliest + 1 < kp && !(p[likeliest] >= largest)) ++likeliest;
  const double pivot = mean[likeliest];
  if (v.is_entropy()) {
    for (int64_t i = 0; i < kp; ++i)
      p_mean[i] = p[i] * (T(mean[i] - pivot) - fast_log<T>(p[i] > least<T>() ? p[i] : T(1)));
  } else {
    for (int64_t i = 0; i < kp; ++i) p_mean[i] = p[i] * narrowed<T>(mean[i] - pivot);
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
        from_means_(c.rows() * kp_, T(0)),
        from_values_(from_means_),
        log_q_(kp_),
        pivot_(c.rows()),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) v_.value[n] = 0;
    block.each(0, [&](int64_t n, int64_t) {
      double* mean = v_.mean + c_.row<T>(n, 0);
      std::fill_n(mean, kp_, 0.0);
      for (int64_t j = 0; j < k_; ++j) mean[j] = v_.node_value(c_.at(n, 0) + j);
    });
    for (int64_t t = 1; t < block.longest; ++t) {
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      block.each(t, [&](int64_t n, int64_t row) {
        pivot_[row] = weigh_means<T>(f_, v_, c_.row<T>(n, t - 1), kp_);
      });
      times(c_.rows(), rows_of(v_.p_mean, block, t - 1), edges.weight, from_means_.data(), k_, kp_);
      if (edges.carried != Carried::nothing)
        times(c_.rows(), rows_of(f_.weights, block, t - 1), edges.weighted_value,
              from_values_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { arrive(edges, n, t, row); });
    }
    block.each(0, [&](int64_t n, int64_t) { v_.value[n] = overall(n); });
  }

 private:
  // One step of all chains of a block, in a tensor [N, T, Kp].
  Rows<T> rows_of(const void* tensor, const Block& block, int64_t t) const {
    const T* first = static_cast<const T*>(tensor) + c_.row<T>(block.first, t);
    return Rows<T>(first, c_.rows(), c_.num_steps * kp_, block.end - block.first);
  }

  void arrive(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T* q = static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
    const T *a = &from_means_[row * kp_], *b = &from_values_[row * kp_];
    double* mean = v_.mean + c_.row<T>(n, t);
    const double pivot = pivot_[row];
    T* ratio = static_cast<T*>(v_.ratio) + c_.row<T>(n, t);
    for (int64_t j = 0; j < kp_; ++j) ratio[j] = (a[j] + b[j]) / (q[j] >= trust<T>() ? q[j] : T(1));
    for (int64_t j = 0; j < kp_; ++j) mean[j] = double(ratio[j]) + pivot;
    if (v_.is_entropy()) {
      for (int64_t j = 0; j < kp_; ++j) log_q_[j] = fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1));
      for (int64_t j = 0; j < kp_; ++j) {
        const double entropy = mean[j] + double(log_q_[j]);
        mean[j] = entropy < 0 ? 0 : entropy;
      }
    } else {
      const double* node_value = v_.node_values + c_.at(n, t);
      for (int64_t j = 0; j < k_; ++j) mean[j] += edges.value_shift[j] + node_value[j];
    }
    if (!any_underflow(q, kp_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()))
        mean[j] = arrive_in_log_space(edges, n, t, j) + v_.node_value(c_.at(n, t) + j);
  }

  double arrive_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t j) {
    if (!f_.in_log_space[n] || f_.log_alpha[c_.at(n, t) + j] == kMinusInf) return 0;
    const double *before = f_.log_alpha + c_.at(n, t - 1), *mean = v_.mean + c_.row<T>(n, t - 1);
    double sum = 0;
    edges.given_after(before, j, w_.data());
    for (int64_t i = 0; i < k_; ++i) {
      if (w_[i] == 0) continue;
      sum += w_[i] * (mean[i] + value_of_edge(edges, v_, w_[i], i, j));
    }
    return sum;
  }

  double overall(int64_t n) const {
    const int64_t at = c_.row<T>(n, c_.length(n) - 1);
    const T* p = static_cast<const T*>(f_.weights) + at;
    const double total = sum_of(p, kp_);
    double sum = 0;
    for (int64_t j = 0; j < k_; ++j)
      if (p[j] != 0) sum += p[j] / total * (v_.mean[at + j] + surprisal_at_end(v_, p[j] / total));
    return sum;
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  EdgeCache<T> edges_;
  int64_t k_, kp_;
  std::vector<T> from_means_, from_values_, log_q_;
  std::vector<double> pivot_, w_;
};

// What shared transitions get, summed up by one group: products of rows p, p_mean and u, m, and the
// rest from columns that underflowed. With V the shifted edge values,
//     grad transitions = E * (p'u + p_mean'm + V * p'm) + rest,   grad edge values = E * p'm +
//     rest.
template <class T> struct EdgeSums {
  T *pulls, *masses, *rest, *rest_of_values;  // [K, Kp] each, or none
};

template <class T> class ExpectAdjoint {
 public:
  ExpectAdjoint(const Chain& c, const Filtered& f, const Expectation& v, const ExpectGrad& a,
                EdgeCache<T> edges, EdgeSums<T> sums)
      : c_(c),
        f_(f),
        v_(v),
        a_(a),
        edges_(std::move(edges)),
        sums_(sums),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        slot_(2 * c.rows() * kp_ + lanes<T>()),
        grad_(c.rows() * kp_, T(0)),
        mass_(grad_),
        um_(slot_ * (sums.pulls ? kChunk : 1), T(0)),
        eu_(grad_),
        em_(grad_),
        evm_(grad_),
        w_(k_),
        grad_after_(k_),
        mass_after_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      zero_padding<T>(c_, n, a_.grad_emissions);
      if (a_.grad_nodes) zero_padding<T>(c_, n, a_.grad_nodes);
    }
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      block.each(t, [&](int64_t n, int64_t row) { take_in(n, t, row); });
      if (t == 0) break;
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      block.each(t, [&](int64_t n, int64_t row) { scale(n, t, row); });
      times(c_.rows(), u(0, t), edges.weight_t, eu_.data(), k_, kp_);
      times(c_.rows(), m(0, t), edges.weight_t, em_.data(), k_, kp_);
      if (edges.carried != Carried::nothing)
        times(c_.rows(), m(0, t), edges.weighted_value_t, evm_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { step_back(edges, n, t, row); });
      if (sums_.pulls && (t - 1) % kChunk == 0)
        block.each(t, [&](int64_t n, int64_t row) { add_products(n, t - 1, row); });
    }
  }

 private:
  // Rows of step t, which wait there for their outer products.
  T* u(int64_t row, int64_t t) {
    const int64_t slot = sums_.pulls ? (t - 1) % kChunk : 0;
    return &um_[slot * slot_ + row * kp_];
  }
  T* m(int64_t row, int64_t t) { return u(row, t) + c_.rows() * kp_; }

  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.row<T>(n, t);
  }
  const T* p_mean(int64_t n, int64_t t) const {
    return static_cast<const T*>(v_.p_mean) + c_.row<T>(n, t);
  }
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
  }

  // The mean before step t, R_j (for the entropy: as it was after step t).
  double mean_into(int64_t n, int64_t t, int64_t j) const {
    return v_.mean[c_.row<T>(n, t) + j] - v_.node_value(c_.at(n, t) + j);
  }

  // At the last step the gradients begin; at each, they are those of emissions and node values.
  void take_in(int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *mass = &mass_[row * kp_];
    if (t == c_.length(n) - 1) {
      const int64_t at = c_.row<T>(n, t);
      const T* p = static_cast<const T*>(f_.weights) + at;
      const double total = sum_of(p, kp_);  // 0 where no path is allowed
      const T scale = total > 0 ? T(static_cast<const T*>(a_.grad_value)[n] / total) : T(0);
      for (int64_t j = 0; j < k_; ++j) mass[j] = p[j] * scale;
      for (int64_t j = 0; j < k_; ++j) {
        const double end = p[j] > 0 ? surprisal_at_end(v_, p[j] / total) : 0;
        g[j] = p[j] > 0 ? mass[j] * narrowed<T>(v_.mean[at + j] + end - v_.value[n]) : T(0);
      }
    }
    std::copy_n(g, k_, static_cast<T*>(a_.grad_emissions) + c_.at(n, t));
    if (a_.grad_nodes) std::copy_n(mass, k_, static_cast<T*>(a_.grad_nodes) + c_.at(n, t));
  }

  // u = (G - M R) / q and m = M / q, where q is trusted. R without the shift, as the values are.
  void scale(int64_t n, int64_t t, int64_t row) {
    const T *mass = &mass_[row * kp_], *grad = &grad_[row * kp_], *q = incoming(n, t);
    const T* ratio = static_cast<const T*>(v_.ratio) + c_.row<T>(n, t);
    T *u_row = u(row, t), *m_row = m(row, t);
    for (int64_t j = 0; j < kp_; ++j) {
      const T inverse = q[j] >= trust<T>() ? T(1) / q[j] : T(0);
      m_row[j] = mass[j] * inverse;
      u_row[j] = q[j] >= trust<T>() ? (grad[j] - mass[j] * ratio[j]) * inverse : T(0);
    }
  }

  void step_back(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const int64_t r = row * kp_;
    const T* q = incoming(n, t);
    const bool underflow = f_.in_log_space[n] && any_underflow(q, kp_);
    if (underflow) {
      std::copy_n(&grad_[r], k_, grad_after_.data());
      std::copy_n(&mass_[r], k_, mass_after_.data());
    }
    const T *p = weights(n, t - 1), *weighed = p_mean(n, t - 1);
    const T *eu = &eu_[r], *em = &em_[r], *evm = &evm_[r];
    T *mass = &mass_[r], *grad = &grad_[r];
    for (int64_t i = 0; i < kp_; ++i) {
      mass[i] = p[i] * em[i];
      grad[i] = p[i] * (eu[i] + evm[i]) + weighed[i] * em[i];
    }
    if (a_.grad_transitions && !sums_.pulls) add_own_edges(edges, n, t, row);
    if (!underflow) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && (grad_after_[j] != 0 || mass_after_[j] != 0))
        leave_in_log_space(edges, n, t, row, j);
  }

  void add_products(int64_t n, int64_t begin, int64_t row) {
    const int64_t count = std::min(kChunk, c_.length(n) - 1 - begin);
    const T *us = &um_[row * kp_], *ms = us + c_.rows() * kp_, *p = weights(n, begin);
    add_outer(p, kp_, us, slot_, count, sums_.pulls, k_, kp_);
    add_outer(p_mean(n, begin), kp_, ms, slot_, count, sums_.pulls, k_, kp_);
    if (sums_.masses) add_outer(p, kp_, ms, slot_, count, sums_.masses, k_, kp_);
  }

  void add_own_edges(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const int64_t offset = c_.edge(n, t - 1);
    T* grad_edges = static_cast<T*>(a_.grad_transitions) + offset;
    T* grad_values = a_.grad_edge_values ? static_cast<T*>(a_.grad_edge_values) + offset : nullptr;
    const T *p = weights(n, t - 1), *weighed = p_mean(n, t - 1);
    const T *u_row = u(row, t), *m_row = m(row, t);
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j) {
        const T weight = edges.weight[i * kp_ + j];
        const T value = edges.carried != Carried::nothing ? edges.shifted_value(i, j) : T(0);
        const T mass = p[i] * weight * m_row[j];
        if (grad_values) grad_values[i * k_ + j] += mass;
        grad_edges[i * k_ + j] += weight * (p[i] * u_row[j] + weighed[i] * m_row[j]) + mass * value;
      }
  }

  void leave_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t row, int64_t j) {
    const double* before = v_.mean + c_.row<T>(n, t - 1);
    if (!edges.given_after(f_.log_alpha + c_.at(n, t - 1), j, w_.data())) return;
    T *column = sums_.rest, *of_values = sums_.rest_of_values;
    int64_t stride = kp_;
    if (!c_.shared() && a_.grad_transitions) {
      const int64_t offset = c_.edge(n, t - 1);
      column = static_cast<T*>(a_.grad_transitions) + offset, stride = k_;
      if (a_.grad_edge_values) of_values = static_cast<T*>(a_.grad_edge_values) + offset;
    }
    const double r_j = mean_into(n, t, j);
    for (int64_t i = 0; i < k_; ++i) {
      if (w_[i] == 0) continue;
      const double value = value_of_edge(edges, v_, w_[i], i, j);
      const T mass = T(w_[i] * mass_after_[j]);
      const T grad = T(w_[i] * (grad_after_[j] + mass_after_[j] * (before[i] + value - r_j)));
      mass_[row * kp_ + i] += mass;
      grad_[row * kp_ + i] += grad;
      if (column) column[i * stride + j] += grad;
      if (of_values) of_values[i * stride + j] += mass;
    }
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  const ExpectGrad& a_;
  EdgeCache<T> edges_;
  EdgeSums<T> sums_;
  int64_t k_, kp_;
  int64_t slot_;  // room for a step of all rows, and a bit: no power of two, which caches mind
  std::vector<T> grad_, mass_, um_, eu_, em_, evm_;
  std::vector<double> w_;
  std::vector<T> grad_after_, mass_after_;
};

}  // namespace

template <class T> int64_t expect(const Chain& c, const Filtered& f, const Expectation& v) {
  const EdgePack<T> pack(c, Sweep::forward, carried_by(v), v.edge_values);
  for_groups(c, 2, pack,
             [&](EdgeCache<T> edges, int64_t) { return Expect<T>(c, f, v, std::move(edges)); });
  return 0;
}

template <class T>
int64_t expect_adjoint(const Chain& c, const Filtered& f, const Expectation& v,
                       const ExpectGrad& a) {
  const EdgePack<T> pack(c, Sweep::backward, carried_by(v), v.edge_values);
  const bool wanted = a.grad_transitions, of_values = a.grad_edge_values;
  const bool needs_masses = of_values || pack.carried != Carried::nothing;
  GroupSums<T> pulls(c, wanted), masses(c, wanted && needs_masses);
  GroupSums<T> rest(c, wanted && f.log_alpha), rest_of_values(c, of_values && f.log_alpha);
  zero_own_edges<T>(c, a.grad_transitions);
  zero_own_edges<T>(c, a.grad_edge_values);
  for_groups(c, 5, pack, [&](EdgeCache<T> edges, int64_t group) {
    const EdgeSums<T> sums{pulls.of(group), masses.of(group), rest.of(group),
                           rest_of_values.of(group)};
    return ExpectAdjoint<T>(c, f, v, a, std::move(edges), sums);
  });
  if (!wanted || !c.shared()) return 0;
  const T *pull = pulls.total(), *mass = masses.total();
  const T *left = rest.total(), *left_of_values = rest_of_values.total();
  pack.shared.each([&](int64_t i, int64_t j, int64_t at, T weight) {
    const int64_t to = i * c.num_states + j;
    const bool carries = pack.carried != Carried::nothing;
    const T carried = carries ? pack.shared.shifted_value(i, j) * mass[at] : T(0);
    static_cast<T*>(a.grad_transitions)[to] =
        weight * (pull[at] + carried) + (left ? left[at] : T(0));
    if (of_values)
      static_cast<T*>(a.grad_edge_values)[to] =
          weight * mass[at] + (left_of_values ? left_of_values[at] : T(0));
  });
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(expect, (const Chain& c, const Filtered& f, const Expectation& v),
                         (c, f, v))
STRUCTDIST_EXPORT_KERNEL(expect_adjoint,
                         (const Chain& c, const Filtered& f, const Expectation& v,
                          const ExpectGrad& a),
                         (c, f, v, a))

}  // namespace structdist
