// Scores of given paths, and their adjoint: each step of a path gets the gradient of its path.
#include "chain.h"

namespace structdist {
namespace {

template <class T> class ScorePaths {
 public:
  ScorePaths(const Chain& c, const Paths& p) : c_(c), p_(p), k_(c.num_states) {}

  void run(int64_t index) const {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t s = 0; s < p_.num_samples; ++s)
        p_.scores[s * c_.num_chains + n] = score(n, p_.paths + p_.at(c_, s, n));
  }

 private:
  double score(int64_t n, const int64_t* path) const {
    double sum = 0;
    for (int64_t t = 0; t < c_.length(n); ++t) {
      if (path[t] < 0 || path[t] >= k_) return kMinusInf;  // no path of this chain
      sum += bounded(static_cast<const T*>(c_.emissions)[c_.at(n, t) + path[t]]);
      if (t > 0) {
        const T* edges = static_cast<const T*>(c_.transitions) + c_.edge(n, t - 1);
        sum += bounded(edges[path[t - 1] * k_ + path[t]]);
      }
    }
    return sum;
  }

  const Chain& c_;
  const Paths& p_;
  int64_t k_;
};

template <class T> class SpreadGradients {
 public:
  SpreadGradients(const Chain& c, const Paths& p, T* sums)
      : c_(c), p_(p), sums_(sums), k_(c.num_states) {}

  void run(int64_t index) const {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      T* emissions = static_cast<T*>(p_.grad_emissions);
      if (emissions) std::fill(emissions + c_.at(n, 0), emissions + c_.at(n, c_.num_steps), T(0));
      for (int64_t s = 0; s < p_.num_samples; ++s) {
        const T grad = static_cast<const T*>(p_.grad)[s * c_.num_chains + n];
        if (grad != 0) spread(n, p_.paths + p_.at(c_, s, n), grad);
      }
    }
  }

 private:
  void spread(int64_t n, const int64_t* path, T grad) const {
    for (int64_t t = 0; t < c_.length(n); ++t) {
      if (p_.grad_emissions) static_cast<T*>(p_.grad_emissions)[c_.at(n, t) + path[t]] += grad;
      if (t == 0 || !p_.grad_transitions) continue;
      T* edges = sums_ ? sums_ : static_cast<T*>(p_.grad_transitions) + c_.edge(n, t - 1);
      edges[path[t - 1] * (sums_ ? padded<T>(k_) : k_) + path[t]] += grad;
    }
  }

  const Chain& c_;
  const Paths& p_;
  T* sums_;  // [K, Kp], of this group, where edges are shared; or none
  int64_t k_;
};

}  // namespace

template <class T> int64_t path_scores(const Chain& c, const Paths& p) {
  for_groups(c, 0.01 * double(p.num_samples), [&](int64_t) { return ScorePaths<T>(c, p); });
  return 0;
}

template <class T> int64_t path_scores_adjoint(const Chain& c, const Paths& p) {
  GroupSums<T> sums(c, p.grad_transitions);
  zero_own_edges<T>(c, p.grad_transitions);
  for_groups(c, 0.01 * double(p.num_samples),
             [&](int64_t group) { return SpreadGradients<T>(c, p, sums.of(group)); });
  const T* total = sums.total();
  const int64_t k = c.num_states;
  for (int64_t i = 0; total && i < k; ++i)
    std::copy_n(total + i * padded<T>(k), k, static_cast<T*>(p.grad_transitions) + i * k);
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(path_scores, (const Chain& c, const Paths& p), (c, p))
STRUCTDIST_EXPORT_KERNEL(path_scores_adjoint, (const Chain& c, const Paths& p), (c, p))

}  // namespace structdist
