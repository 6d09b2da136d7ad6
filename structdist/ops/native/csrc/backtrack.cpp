// Choosing a path from its last state to its first: exact draws, and relaxed back-tracking (which
// with log_alpha and Gumbel noise is Gumbel-FFBS, and with best scores and no noise relaxed
// Viterbi).
//
// Given the state j after it, step t is in state i with probability proportional to
// exp(log_alpha_t(i) + score_ij). Only column j of the transitions is needed: O(K) a step.
#include "chain.h"

namespace structdist {
namespace {

// The first index at which the running sum of weights [K] exceeds uniform * total; never one of
// weight 0. Sums of 16 weights each are made first, to skip ahead by.
template <class T> int64_t invert_cdf(const T* weights, int64_t k, double uniform, T* sums) {
  constexpr int64_t group = 16;
  const int64_t groups = (k + group - 1) / group;
  double total = 0, below = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t end = std::min(k, (g + 1) * group);
    sums[g] = 0;
    for (int64_t i = g * group; i < end; ++i) sums[g] += weights[i];
    total += sums[g];
  }
  const double target = uniform * total;
  int64_t g = 0, chosen = 0;
  while (g + 1 < groups && below + sums[g] <= target) below += sums[g++];
  for (int64_t i = g * group; i < k; ++i) {
    below += weights[i];
    if (weights[i] > 0 && below > target) return i;
  }
  for (int64_t i = 0; i < k; ++i)  // rounding left the target unreached: the last that can be
    if (weights[i] > 0) chosen = i;
  return chosen;
}

template <class T> class SamplePaths {
 public:
  SamplePaths(const Chain& c, const Filtered& f, const Draws& d, EdgeCache<T> edges)
      : c_(c),
        f_(f),
        d_(d),
        edges_(std::move(edges)),
        k_(c.num_states),
        product_(k_),
        sums_(k_),
        logits_(k_) {}

  // Steps go before samples, which share the weights of a step while they are in cache.
  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t t = c_.lengths[n] - 1; t >= 0; --t) {
        for (int64_t s = 0; s < d_.num_samples; ++s) choose(s, n, t);
      }
  }

 private:
  void choose(int64_t s, int64_t n, int64_t t) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
    const double uniform = static_cast<const double*>(d_.noise)[at];
    const bool last = t == c_.lengths[n] - 1;
    if (!last) weigh_moves_into(d_.path[at + 1], n, t);
    const T* weights = last ? weights_at(n, t) : product_.data();
    d_.path[at] = invert_cdf(weights, k_, uniform, sums_.data());
  }

  const T* weights_at(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.at(n, t);
  }

  void weigh_moves_into(int64_t j, int64_t n, int64_t t) {
    const T incoming = static_cast<const T*>(f_.incoming)[c_.at(n, t + 1) + j];
    if (c_.shared() && incoming >= trust<T>()) {
      const Edges<T>& edges = edges_.at(n, t);
      const T *column = &edges.weight_t[j * edges.kp], *weights = weights_at(n, t);
      for (int64_t i = 0; i < k_; ++i) product_[i] = weights[i] * column[i];
      return;
    }
    const T* scores = static_cast<const T*>(c_.transitions) + c_.edge(n, t);
    const double* log_alpha = f_.log_alpha + c_.at(n, t);
    double peak = kMinusInf;
    for (int64_t i = 0; i < k_; ++i) logits_[i] = log_alpha[i] + bounded(scores[i * k_ + j]);
    for (int64_t i = 0; i < k_; ++i) peak = std::max(peak, logits_[i]);
    if (peak == kMinusInf) peak = 0;  // no path: all weights 0
    for (int64_t i = 0; i < k_; ++i) product_[i] = fast_exp<T>(T(logits_[i] - peak));
  }

  const Chain& c_;
  const Filtered& f_;
  const Draws& d_;
  EdgeCache<T> edges_;  // in use only where chains share them
  int64_t k_;
  std::vector<T> product_, sums_;
  std::vector<double> logits_;
};

template <class T> class RelaxedBacktrack {
 public:
  RelaxedBacktrack(const Chain& c, const Draws& d) : c_(c), d_(d), k_(c.num_states), logits_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t s = 0; s < d_.num_samples; ++s)
        for (int64_t t = c_.lengths[n] - 1; t >= 0; --t) choose(s, n, t);
  }

 private:
  void choose(int64_t s, int64_t n, int64_t t) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
    std::copy_n(d_.prefix + c_.at(n, t), k_, logits_.data());
    if (d_.noise) {
      const T* gumbel = static_cast<const T*>(d_.noise) + at * k_;
      for (int64_t i = 0; i < k_; ++i) logits_[i] += double(gumbel[i]);
    }
    if (t + 1 < c_.lengths[n]) {
      const T* into = static_cast<const T*>(c_.transitions) + c_.edge(n, t) + d_.path[at + 1];
      for (int64_t i = 0; i < k_; ++i) logits_[i] += bounded(into[i * k_]);
    }
    const int64_t chosen = std::max_element(logits_.begin(), logits_.end()) - logits_.begin();
    d_.path[at] = chosen;
    if (logits_[chosen] > kMinusInf)  // else there is no path, and nothing to relax
      relax(logits_[chosen], d_.temperature_of(s, n), static_cast<T*>(d_.soft) + at * k_);
  }

  void relax(double peak, double temperature, T* soft) const {
    T total = 0;
    for (int64_t i = 0; i < k_; ++i) soft[i] = fast_exp<T>(T((logits_[i] - peak) / temperature));
    for (int64_t i = 0; i < k_; ++i) total += soft[i];
    for (int64_t i = 0; i < k_; ++i) soft[i] /= total;
  }

  const Chain& c_;
  const Draws& d_;
  int64_t k_;
  std::vector<double> logits_;
};

template <class T> class RelaxedBacktrackAdjoint {
 public:
  RelaxedBacktrackAdjoint(const Chain& c, const Draws& d, const SoftGrad& a, int64_t thread)
      : c_(c), d_(d), a_(a), thread_(thread), k_(c.num_states), logit_grad_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t s = 0; s < d_.num_samples; ++s)
        for (int64_t t = 0; t < c_.lengths[n]; ++t) pull(s, n, t);
  }

 private:
  void pull(int64_t s, int64_t n, int64_t t) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
    const T* soft = static_cast<const T*>(d_.soft) + at * k_;
    const T* grad = static_cast<const T*>(a_.grad) + at * k_;
    T mean = 0;
    for (int64_t i = 0; i < k_; ++i) mean += soft[i] * grad[i];
    const T sharpness = T(1 / d_.temperature_of(s, n));
    for (int64_t i = 0; i < k_; ++i) logit_grad_[i] = soft[i] * (grad[i] - mean) * sharpness;
    add_to(static_cast<T*>(a_.grad_prefix) + c_.at(n, t));
    if (t + 1 == c_.lengths[n] || !a_.grad_transitions) return;
    const int64_t matrix = c_.shared() ? thread_ * k_ * k_ : c_.edge(n, t);
    add_to(static_cast<T*>(a_.grad_transitions) + matrix + d_.path[at + 1] * k_);
  }

  void add_to(T* sum) const {
    for (int64_t i = 0; i < k_; ++i) sum[i] += logit_grad_[i];
  }

  const Chain& c_;
  const Draws& d_;
  const SoftGrad& a_;
  int64_t thread_, k_;
  std::vector<T> logit_grad_;
};

}  // namespace

template <class T> void sample_paths(const Chain& c, const Filtered& f, const Draws& d) {
  for_blocks<T>(c, nullptr, Carried::nothing, Sweep::backward, [&](EdgeCache<T> edges, int64_t) {
    return SamplePaths<T>(c, f, d, std::move(edges));
  });
}

template <class T> void relaxed_backtrack(const Chain& c, const Draws& d) {
  for_blocks(c, [&](int64_t) { return RelaxedBacktrack<T>(c, d); });
}

template <class T>
void relaxed_backtrack_adjoint(const Chain& c, const Draws& d, const SoftGrad& a) {
  for_blocks(c, [&](int64_t thread) { return RelaxedBacktrackAdjoint<T>(c, d, a, thread); });
}

STRUCTDIST_EXPORT_KERNEL(sample_paths, (const Chain& c, const Filtered& f, const Draws& d),
                         (c, f, d))
STRUCTDIST_EXPORT_KERNEL(relaxed_backtrack, (const Chain& c, const Draws& d), (c, d))
STRUCTDIST_EXPORT_KERNEL(relaxed_backtrack_adjoint,
                         (const Chain& c, const Draws& d, const SoftGrad& a), (c, d, a))

}  // namespace structdist
