// The best path: a max-plus product a step, all in double, vectorised over the state moved to.
// And the adjoint of the best scores, which follows the best state before each.
#include "chain.h"

namespace structdist {
namespace {

template <class T> class Viterbi {
 public:
  Viterbi(const Chain& c, const Best& out) : c_(c), out_(out), k_(c.num_states) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      out_.score[n] = 0;
      std::fill_n(out_.path + n * c_.num_steps, c_.num_steps, 0);
    }
    block.each(0, [&](int64_t n, int64_t) { run_chain(n); });
  }

 private:
  void run_chain(int64_t n) const {
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, 0);
    double* first = out_.prefix + c_.at(n, 0);
    for (int64_t j = 0; j < k_; ++j) first[j] = bounded(emission[j]);
    for (int64_t t = 1; t < c_.length(n); ++t) {
      arrive(n, t);
      if (out_.came_from)
        for (int64_t j = 0; j < k_; ++j) out_.came_from[c_.at(n, t) + j] = best_before(n, t, j);
    }
    follow(n);
  }

  const T* scores_into(int64_t n, int64_t t) const {
    return static_cast<const T*>(c_.transitions) + c_.edge(n, t - 1);
  }

  // The best score into each state; four states before at a time, to save memory traffic.
  void arrive(int64_t n, int64_t t) const {
    const T *scores = scores_into(n, t),
            *emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    const double* before = out_.prefix + c_.at(n, t - 1);
    double* here = out_.prefix + c_.at(n, t);
    std::fill_n(here, k_, kMinusInf);
    int64_t i = 0;
    for (; i + 4 <= k_; i += 4) {
      const T *r0 = scores + i * k_, *r1 = r0 + k_, *r2 = r1 + k_, *r3 = r2 + k_;
      const double s0 = before[i], s1 = before[i + 1], s2 = before[i + 2], s3 = before[i + 3];
      for (int64_t j = 0; j < k_; ++j) {
        const double a = larger(s0 + bounded(r0[j]), s1 + bounded(r1[j]));
        const double b = larger(s2 + bounded(r2[j]), s3 + bounded(r3[j]));
        here[j] = larger(here[j], larger(a, b));
      }
    }
    for (; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j)
        here[j] = larger(here[j], before[i] + bounded(scores[i * k_ + j]));
    for (int64_t j = 0; j < k_; ++j) here[j] += bounded(emission[j]);
  }

  static double larger(double a, double b) { return a > b ? a : b; }

  // The state that the best score into j comes from: only asked for along a path, mostly.
  int32_t best_before(int64_t n, int64_t t, int64_t j) const {
    const T* scores = scores_into(n, t);
    const double* before = out_.prefix + c_.at(n, t - 1);
    int64_t best = 0;
    double highest = kMinusInf;
    for (int64_t i = 0; i < k_; ++i) {
      const double candidate = before[i] + bounded(scores[i * k_ + j]);
      if (candidate > highest) highest = candidate, best = i;
    }
    return int32_t(best);
  }

  void follow(int64_t n) const {
    const int64_t last = c_.length(n) - 1;
    int64_t* path = out_.path + n * c_.num_steps;
    const double* final = out_.prefix + c_.at(n, last);
    path[last] = std::max_element(final, final + k_) - final;
    out_.score[n] = final[path[last]];
    for (int64_t t = last; t > 0; --t) path[t - 1] = best_before(n, t, path[t]);
  }

  const Chain& c_;
  const Best& out_;
  int64_t k_;
};

template <class T> class PrefixAdjoint {
 public:
  PrefixAdjoint(const Chain& c, const PrefixGrad& a, T* sums)
      : c_(c), a_(a), sums_(sums), k_(c.num_states) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t t = block.longest - 1; t > 0; --t)
      block.each(t, [&](int64_t n, int64_t) { step_back(n, t); });
  }

 private:
  void step_back(int64_t n, int64_t t) const {
    T* grad = static_cast<T*>(a_.grad);
    const T* here = grad + c_.at(n, t);
    T* before = grad + c_.at(n, t - 1);
    const int32_t* from = a_.came_from + c_.at(n, t);
    for (int64_t j = 0; j < k_; ++j) before[from[j]] += here[j];
    if (!a_.grad_transitions) return;
    T* edges = sums_ ? sums_ : static_cast<T*>(a_.grad_transitions) + c_.edge(n, t - 1);
    const int64_t stride = sums_ ? padded<T>(k_) : k_;
    for (int64_t j = 0; j < k_; ++j) edges[from[j] * stride + j] += here[j];
  }

  const Chain& c_;
  const PrefixGrad& a_;
  T* sums_;  // [K, Kp], of this group, where edges are shared; or none
  int64_t k_;
};

}  // namespace

template <class T> int64_t viterbi(const Chain& c, const Best& out) {
  for_groups(c, 4, [&](int64_t) { return Viterbi<T>(c, out); });
  return 0;
}

template <class T> int64_t prefix_adjoint(const Chain& c, const PrefixGrad& a) {
  GroupSums<T> sums(c, a.grad_transitions);
  for_groups(c, 0.1, [&](int64_t group) { return PrefixAdjoint<T>(c, a, sums.of(group)); });
  sums.add_to(a.grad_transitions);
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(viterbi, (const Chain& c, const Best& b), (c, b))
STRUCTDIST_EXPORT_KERNEL(prefix_adjoint, (const Chain& c, const PrefixGrad& a), (c, a))

}  // namespace structdist
