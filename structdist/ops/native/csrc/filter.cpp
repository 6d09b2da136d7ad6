// The forward pass, and its adjoint.
//
// With P_t = exp(log_alpha_t) (largest entry 1) and E the scaled exp of the transitions, the mass
// that arrives in state j at step t+1 is q_j = sum_i P_i E_ij: a matrix product. Then
//     log_alpha_{t+1}(j) = log q_j + column_peak_j + emission_{t+1}(j) - log_norm_{t+1}.
// Log weights are kept in double, products are made in the dtype of the input. A column whose q_j
// is below `trust` is redone in log space, so that the result is as good as log-sum-exp always.
//
// The adjoint follows w_ij = P_i E_ij / q_j, the probability of i given j after it:
//     d log_alpha_t(i) = upstream_t(i) + P_i sum_j E_ij (d log_alpha_{t+1}(j) / q_j).
#include "chain.h"

namespace structdist {
namespace {

// Returns what was taken off: the peak, or NaN if there is one among the weights.
double shift_to_zero_peak(double* log_alpha, int64_t k) {
  double peak = kMinusInf;
  int broken = 0;
  for (int64_t j = 0; j < k; ++j) peak = std::max(peak, log_alpha[j]);
  for (int64_t j = 0; j < k; ++j) broken |= log_alpha[j] != log_alpha[j];
  if (broken) return std::numeric_limits<double>::quiet_NaN();
  if (peak > kMinusInf)
    for (int64_t j = 0; j < k; ++j) log_alpha[j] -= peak;
  return peak;
}

template <class T> class Filter {
 public:
  Filter(const Chain& c, const Filtered& f, EdgeCache<T> edges)
      : c_(c),
        f_(f),
        edges_(std::move(edges)),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        p_(c.rows() * kp_, T(0)),
        q_(c.rows() * kp_),
        log_q_(kp_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) f_.log_z[n] = 0;
    block.each(0, [&](int64_t n, int64_t row) {
      const T* emission = emissions() + c_.at(n, 0);
      double* log_alpha = f_.log_alpha + c_.at(n, 0);
      for (int64_t j = 0; j < k_; ++j) log_alpha[j] = bounded(emission[j]);
      normalize(n, 0, row);
    });
    for (int64_t t = 1; t < block.longest; ++t) {
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      times(c_.rows(), p_.data(), edges.weight, q_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) {
        arrive(edges, n, t, &q_[row * kp_]);
        normalize(n, t, row);
      });
    }
    block.each(0, [&](int64_t n, int64_t) {
      const T* last = static_cast<const T*>(f_.weights) + c_.at(n, c_.lengths[n] - 1);
      f_.log_z[n] += std::log(sum_of(last, k_));
    });
  }

 private:
  const T* emissions() const { return static_cast<const T*>(c_.emissions); }

  void normalize(int64_t n, int64_t t, int64_t row) {
    double* log_alpha = f_.log_alpha + c_.at(n, t);
    const double norm = shift_to_zero_peak(log_alpha, k_);
    f_.log_z[n] += norm;
    for (int64_t j = 0; j < k_; ++j) p_[row * kp_ + j] = fast_exp<T>(T(log_alpha[j]));
    std::copy_n(&p_[row * kp_], k_, static_cast<T*>(f_.weights) + c_.at(n, t));
  }

  void arrive(const Edges<T>& edges, int64_t n, int64_t t, const T* q) {
    const T* emission = emissions() + c_.at(n, t);
    double* here = f_.log_alpha + c_.at(n, t);
    std::copy_n(q, k_, static_cast<T*>(f_.incoming) + c_.at(n, t));
    for (int64_t j = 0; j < k_; ++j) log_q_[j] = fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1));
    for (int64_t j = 0; j < k_; ++j)
      here[j] = double(log_q_[j]) + edges.column_peak[j] + bounded(emission[j]);
    if (!any_underflow(q, k_)) return;
    const double* before = f_.log_alpha + c_.at(n, t - 1);
    const Possible possible(before, k_);
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>())) {
        const bool reached = possible.any_of(edges.allowed_into(j));
        here[j] = reached ? edges.log_sum_into(before, j) + bounded(emission[j]) : kMinusInf;
      }
  }

  const Chain& c_;
  const Filtered& f_;
  EdgeCache<T> edges_;
  int64_t k_, kp_;
  std::vector<T> p_, q_, log_q_;
};

template <class T> class FilterAdjoint {
 public:
  FilterAdjoint(const Chain& c, const Filtered& f, const FilterGrad& a, EdgeCache<T> edges,
                int64_t thread)
      : c_(c),
        f_(f),
        a_(a),
        edges_(std::move(edges)),
        thread_(thread),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        grad_(c.rows() * kp_, T(0)),
        scaled_(grad_),
        pulled_(grad_),
        grad_after_(kp_),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    std::fill(grad_.begin(), grad_.end(), T(0));
    std::fill(scaled_.begin(), scaled_.end(), T(0));
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      block.each(t, [&](int64_t n, int64_t row) { take_in(n, t, row); });
      if (t == 0) break;
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      times(c_.rows(), scaled_.data(), edges.weight_t, pulled_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { step_back(edges, n, t, row); });
    }
  }

 private:
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.at(n, t);
  }
  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.at(n, t);
  }

  // Add what comes from outside to the gradient of log_alpha_t: then it is that of the emissions.
  void take_in(int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *s = &scaled_[row * kp_];
    if (a_.grad_log_z && t == c_.lengths[n] - 1) {
      const T* p = weights(n, t);
      const double total = sum_of(p, k_);  // 0 where no path is allowed
      const T scale = total > 0 ? T(static_cast<const T*>(a_.grad_log_z)[n] / total) : T(0);
      for (int64_t j = 0; j < k_; ++j) g[j] = p[j] * scale;
    }
    if (a_.upstream) {
      const T* upstream = static_cast<const T*>(a_.upstream) + c_.at(n, t);
      for (int64_t j = 0; j < k_; ++j) g[j] += upstream[j];
    }
    std::copy_n(g, k_, static_cast<T*>(a_.grad_emissions) + c_.at(n, t));
    if (t == 0) return;
    const T* q = incoming(n, t);
    for (int64_t j = 0; j < k_; ++j) s[j] = q[j] >= trust<T>() ? g[j] / q[j] : T(0);
  }

  void step_back(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *s = &scaled_[row * kp_];
    const T *y = &pulled_[row * kp_], *q = incoming(n, t), *p = weights(n, t - 1);
    const double* before = f_.log_alpha + c_.at(n, t - 1);
    std::copy_n(g, k_, grad_after_.data());
    for (int64_t i = 0; i < k_; ++i) g[i] = p[i] * y[i];
    T* grad_edges = add_trusted_edges(edges, n, t, s);
    if (!any_underflow(q, k_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && grad_after_[j] != 0)
        leave_in_log_space(edges, before, j, grad_after_[j], g, grad_edges);
  }

  T* add_trusted_edges(const Edges<T>& edges, int64_t n, int64_t t, const T* s) {
    T* grad_edges = static_cast<T*>(a_.grad_transitions);
    if (!grad_edges) return nullptr;
    if (c_.shared()) {
      std::copy_n(s, k_, static_cast<T*>(a_.after) + c_.at(n, t - 1));
      return grad_edges + thread_ * k_ * k_;
    }
    const T* p = weights(n, t - 1);
    grad_edges += c_.edge(n, t - 1);
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j)
        grad_edges[i * k_ + j] += p[i] * edges.weight[i * kp_ + j] * s[j];
    return grad_edges;
  }

  // Log space: hands g to the states before j, and to the edges that lead there.
  void leave_in_log_space(const Edges<T>& edges, const double* before, int64_t j, T g,
                          T* grad_before, T* grad_edges) {
    if (!edges.given_after(before, j, w_.data())) return;
    for (int64_t i = 0; i < k_; ++i) {
      const T share = T(w_[i] * g);
      grad_before[i] += share;
      if (grad_edges) grad_edges[i * k_ + j] += share;
    }
  }

  const Chain& c_;
  const Filtered& f_;
  const FilterGrad& a_;
  EdgeCache<T> edges_;
  int64_t thread_, k_, kp_;
  std::vector<T> grad_, scaled_, pulled_, grad_after_;
  std::vector<double> w_;
};

}  // namespace

template <class T> void filter(const Chain& c, const Filtered& f) {
  for_blocks<T>(c, nullptr, Carried::nothing, Sweep::forward,
                [&](EdgeCache<T> edges, int64_t) { return Filter<T>(c, f, std::move(edges)); });
}

template <class T> void filter_adjoint(const Chain& c, const Filtered& f, const FilterGrad& a) {
  for_blocks<T>(c, nullptr, Carried::nothing, Sweep::backward,
                [&](EdgeCache<T> edges, int64_t thread) {
                  return FilterAdjoint<T>(c, f, a, std::move(edges), thread);
                });
}

STRUCTDIST_EXPORT_KERNEL(filter, (const Chain& c, const Filtered& f), (c, f))
STRUCTDIST_EXPORT_KERNEL(filter_adjoint, (const Chain& c, const Filtered& f, const FilterGrad& a),
                         (c, f, a))

}  // namespace structdist
