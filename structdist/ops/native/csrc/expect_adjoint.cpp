// Gradients of expectations and entropies: the adjoint of expect.cpp.
//
// It carries M, the gradient of F (the marginals), and G, that of log_alpha:
//     M_t(i) = sum_j w_ij M_{t+1}(j)
//     G_t(i) = sum_j w_ij (G_{t+1}(j) + M_{t+1}(j) (F_t(i) + V_ij - R_j)).
// With m = M / q and u = (G - M r) / q of the step after, and p_mean = P (F - pivot), these are
// matrix products:
//     M_t = P (m E'),   G_t = P (u E' + m (EV)') + p_mean (m E').
// At the last step, where the pivot is the expectation itself, M and G are P and p_mean, divided by
// the sum of P.
//
// What shared transitions get are sums of outer products over steps, made for a chunk of steps at a
// time so that sums stay in registers meanwhile; u and m wait for them. Steps are read backwards
// from four tensors, so each step asks memory for the one that comes next.
#include "expectation.h"

namespace structdist {
namespace {

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
        chunk_(sums.pulls ? c.chunk_of_edges() : 1),
        slot_(2 * c.rows() * kp_ + kLine / sizeof(T)),
        grad_(c.rows() * kp_, T(0)),
        mass_(grad_),
        um_(slot_ * chunk_, T(0)),
        em_(grad_),
        pulled_(grad_),
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
      const Factors<T> masses{rows_of(m(0, t)), edges.weight_t.data()};
      const Factors<T> values{masses.rows, edges.weighted_value_t.data()};
      const Factors<T> pulls{rows_of(u(0, t)), edges.weight_t.data()};
      const bool carries = edges.carried != Carried::nothing;
      multiply<T>(c_.rows(), k_, kp_, Product<T>{masses, nullptr, em_.data()},
                  Product<T>{pulls, carries ? &values : nullptr, pulled_.data()});
      block.each(t, [&](int64_t n, int64_t row) { step_back(edges, n, t, row); });
      if (sums_.pulls && (t - 1) % chunk_ == 0)
        block.each(t, [&](int64_t n, int64_t row) { add_products(n, t - 1, row); });
    }
  }

 private:
  // Rows of step t, which wait there for their outer products.
  T* u(int64_t row, int64_t t) { return &um_[(t - 1) % chunk_ * slot_ + row * kp_]; }
  T* m(int64_t row, int64_t t) { return u(row, t) + c_.rows() * kp_; }
  Rows<T> rows_of(const T* first) const { return Rows<T>(first, c_.rows(), kp_, c_.rows()); }

  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.row<T>(n, t);
  }
  const T* p_mean(int64_t n, int64_t t) const {
    return static_cast<const T*>(v_.p_mean) + c_.row<T>(n, t);
  }
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
  }
  const T* ratio(int64_t n, int64_t t) const {
    return static_cast<const T*>(v_.ratio) + c_.row<T>(n, t);
  }

  // The mean before step t, R_j (for the entropy: as it was after step t).
  double mean_into(int64_t n, int64_t t, int64_t j) const {
    return v_.mean[c_.row<T>(n, t) + j] - v_.node_value(c_.at(n, t) + j);
  }

  // At the last step the gradients begin; at each, they are those of emissions and node values.
  void take_in(int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *mass = &mass_[row * kp_];
    if (t == c_.length(n) - 1) {
      const T *p = weights(n, t), *relative = p_mean(n, t);
      const double total = sum_of(p, kp_);  // 0 where no path is allowed
      const T scale = total > 0 ? T(static_cast<const T*>(a_.grad_value)[n] / total) : T(0);
      for (int64_t j = 0; j < kp_; ++j) mass[j] = p[j] * scale;
      for (int64_t j = 0; j < kp_; ++j) g[j] = relative[j] * scale;
    }
    copy_row(g, static_cast<T*>(a_.grad_emissions) + c_.at(n, t), k_);
    if (a_.grad_nodes) copy_row(mass, static_cast<T*>(a_.grad_nodes) + c_.at(n, t), k_);
  }

  // u = (G - M r) / q and m = M / q, where q is trusted.
  void scale(int64_t n, int64_t t, int64_t row) {
    const T *mass = &mass_[row * kp_], *grad = &grad_[row * kp_], *q = incoming(n, t);
    const T* r = ratio(n, t);
    fetch(incoming(n, t - 1), kp_), fetch(ratio(n, t - 1), kp_);
    T *u_row = u(row, t), *m_row = m(row, t);
#pragma GCC ivdep
    for (int64_t j = 0; j < kp_; ++j) {
      const T inverse = q[j] >= trust<T>() ? T(1) / q[j] : T(0);
      m_row[j] = mass[j] * inverse;
      u_row[j] = q[j] >= trust<T>() ? (grad[j] - mass[j] * r[j]) * inverse : T(0);
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
    if (t > 1) fetch(weights(n, t - 2), kp_), fetch(p_mean(n, t - 2), kp_);
    const T *em = &em_[r], *pulled = &pulled_[r];
    T *mass = &mass_[r], *grad = &grad_[r];
#pragma GCC ivdep
    for (int64_t i = 0; i < kp_; ++i) {
      mass[i] = p[i] * em[i];
      grad[i] = p[i] * pulled[i] + weighed[i] * em[i];
    }
    if (a_.grad_transitions && !sums_.pulls)
      add_own_edges<T>(edges, {p, weighed, u(row, t), m(row, t)}, own_edges(n, t));
    if (!underflow) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && (grad_after_[j] != 0 || mass_after_[j] != 0))
        leave_in_log_space(edges, n, t, row, j);
  }

  void add_products(int64_t n, int64_t begin, int64_t row) {
    const int64_t count = std::min(chunk_, c_.length(n) - 1 - begin);
    const T *us = &um_[row * kp_], *ms = us + c_.rows() * kp_;
    sums_.add({weights(n, begin), us, kp_, slot_, count}, {p_mean(n, begin), ms, kp_, slot_, count},
              k_, kp_);
  }

  EdgeGrads<T> own_edges(int64_t n, int64_t t) const {
    const int64_t offset = c_.edge(n, t - 1);
    T* of_values = static_cast<T*>(a_.grad_edge_values);
    return {static_cast<T*>(a_.grad_transitions) + offset, of_values ? of_values + offset : nullptr,
            k_};
  }

  void leave_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t row, int64_t j) {
    const bool own = !c_.shared() && a_.grad_transitions;
    const EdgeGrads<T> to =
        own ? own_edges(n, t) : EdgeGrads<T>{sums_.rest, sums_.rest_of_values, kp_};
    pull_in_log_space(edges, f_.log_alpha + c_.at(n, t - 1), v_.mean + c_.row<T>(n, t - 1),
                      {j, mean_into(n, t, j), grad_after_[j], mass_after_[j]}, w_.data(),
                      &grad_[row * kp_], &mass_[row * kp_], to);
  }

  const Chain& c_;
  const Filtered& f_;
  const Expectation& v_;
  const ExpectGrad& a_;
  EdgeCache<T> edges_;
  EdgeSums<T> sums_;
  int64_t k_, kp_;
  int64_t chunk_;  // steps whose outer products are made together
  int64_t slot_;   // room for a step of all rows, and a bit: no power of two, which caches mind
  Numbers<T> grad_, mass_, um_, em_, pulled_;
  std::vector<double> w_;
  Numbers<T> grad_after_, mass_after_;
};

}  // namespace

template <class T>
int64_t expect_adjoint(const Chain& c, const State& s, const Expectation& v,
                       const ExpectGrad& a) {
  const Filtered f = Filtered::of<T>(c, s);
  const Carried carried = carried_by(v.is_entropy(), v.edge_values);
  const EdgePack<T> pack(c, Sweep::backward, carried, v.edge_values);
  EdgeTotals<T> totals(c, pack, a.grad_transitions, a.grad_edge_values, f.log_alpha);
  for_groups(c, 5, pack, [&](EdgeCache<T> edges, int64_t group) {
    return ExpectAdjoint<T>(c, f, v, a, std::move(edges), totals.of(group));
  });
  totals.write();
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(expect_adjoint,
                         (const Chain& c, const State& s, const Expectation& v,
                          const ExpectGrad& a),
                         (c, s, v, a))

}  // namespace structdist
