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

// Zeros in the paths of a chain beyond its length.
inline void zero_path_padding(const Chain& c, const Draws& d, int64_t n) {
  for (int64_t s = 0; s < d.num_samples; ++s) {
    int64_t* path = d.path + (s * c.num_chains + n) * c.num_steps;
    std::fill(path + c.length(n), path + c.num_steps, 0);
  }
}

// Log weights of prefixes by their last state, as the forward pass has them.
template <class T> class LogWeights {
 public:
  LogWeights(const Chain& c, const Filtered& f, const std::vector<double>& column_peak)
      : c_(c), f_(f), column_peak_(column_peak), log_q_(padded<T>(c.num_states)) {}

  void at(int64_t n, int64_t t, double* out) {
    const int64_t k = c_.num_states;
    if (f_.in_log_space[n]) {
      std::copy_n(f_.log_alpha + c_.at(n, t), k, out);
      return;
    }
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    const double shift = f_.shift[n * c_.num_steps + t];
    if (t == 0) {
      for (int64_t j = 0; j < k; ++j) out[j] = bounded(emission[j]) - shift;
      return;
    }
    const T* q = static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
    const double* peak = column_peak_.data();
    for (size_t j = 0; j < log_q_.size(); ++j)
      log_q_[j] = q[j] >= trust<T>() ? fast_log<T>(q[j]) : -std::numeric_limits<T>::infinity();
    for (int64_t j = 0; j < k; ++j)
      out[j] = (bounded(emission[j]) - shift) + peak[j] + double(log_q_[j]);
  }

 private:
  const Chain& c_;
  const Filtered& f_;
  const std::vector<double>& column_peak_;  // of shared transitions
  Numbers<T> log_q_;
};

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
    for (int64_t n = block.first; n < block.end; ++n) {
      zero_path_padding(c_, d_, n);
      for (int64_t t = c_.length(n) - 1; t >= 0; --t)
        for (int64_t s = 0; s < d_.num_samples; ++s) choose(s, n, t);
    }
  }

 private:
  void choose(int64_t s, int64_t n, int64_t t) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
    const double uniform = static_cast<const double*>(d_.noise)[at];
    const bool last = t == c_.length(n) - 1;
    if (!last) weigh_moves_into(d_.path[at + 1], n, t);
    const T* weights = last ? weights_at(n, t) : product_.data();
    d_.path[at] = invert_cdf(weights, k_, uniform, sums_.data());
  }

  const T* weights_at(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.row<T>(n, t);
  }

  void weigh_moves_into(int64_t j, int64_t n, int64_t t) {
    const T incoming = static_cast<const T*>(f_.incoming)[c_.row<T>(n, t + 1) + j];
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
  Numbers<T> product_, sums_;
  std::vector<double> logits_;
};

// The chains of a block take their steps side by side: each choice waits for the one before it, and
// the others fill the gap.
template <class T> class RelaxedBacktrack {
 public:
  RelaxedBacktrack(const Chain& c, const Filtered& f, const Draws& d, const EdgePack<T>& pack)
      : c_(c),
        d_(d),
        pack_(pack),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        log_weights_(c, f, pack.shared.column_peak),
        prefixes_(c.rows() * k_),
        logits_(c.rows() * kp_, kMinusInf),
        soft_(kp_),
        column_(k_),
        zeros_(k_, T(0)) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      zero_path_padding(c_, d_, n);
      for (int64_t s = 0; s < d_.num_samples; ++s) zero_row_padding(n, s);
    }
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      if (!d_.prefix)
        block.each(t, [&](int64_t n, int64_t r) { log_weights_.at(n, t, &prefixes_[r * k_]); });
      for (int64_t s = 0; s < d_.num_samples; ++s) {
        block.each(t, [&](int64_t n, int64_t r) { choose(s, n, t, r); });
        block.each(t, [&](int64_t n, int64_t r) { relax(s, n, t, r); });
      }
    }
  }

 private:
  void zero_row_padding(int64_t n, int64_t s) const {
    const int64_t sample = s * c_.num_chains * c_.num_steps * k_;
    zero_padding<T>(c_, n, static_cast<T*>(d_.soft) + sample);
  }

  int64_t at(int64_t s, int64_t n, int64_t t) const {
    return (s * c_.num_chains + n) * c_.num_steps + t;
  }

  void choose(int64_t s, int64_t n, int64_t t, int64_t row) {
    const int64_t here = at(s, n, t);
    const bool last = t + 1 == c_.length(n);
    const double* prefix = d_.prefix ? d_.prefix + c_.at(n, t) : &prefixes_[row * k_];
    const T* gumbel = d_.noise ? static_cast<const T*>(d_.noise) + here * k_ : zeros_.data();
    const T* moves = last ? zeros_.data() : scores_into(d_.path[here + 1], n, t);
    double* logits = &logits_[row * kp_];
    for (int64_t i = 0; i < k_; ++i) logits[i] = prefix[i] + double(gumbel[i]) + bounded(moves[i]);
    d_.path[here] = place_of_max(logits, kp_);
  }

  // Of the moves from each state at step t into state j [K].
  const T* scores_into(int64_t j, int64_t n, int64_t t) {
    if (c_.shared()) return &pack_.shared.scores_t[j * kp_];
    const T* into = static_cast<const T*>(c_.transitions) + c_.edge(n, t) + j;
    for (int64_t i = 0; i < k_; ++i) column_[i] = into[i * k_];
    return column_.data();
  }

  // Zeros where there is no path, hence nothing to relax.
  void relax(int64_t s, int64_t n, int64_t t, int64_t row) {
    const int64_t here = at(s, n, t);
    const double *logits = &logits_[row * kp_], peak = logits[d_.path[here]];
    T* soft = static_cast<T*>(d_.soft) + here * k_;
    if (peak == kMinusInf) {
      std::fill_n(soft, k_, T(0));
      return;
    }
    const double sharpness = 1 / d_.temperature_of(s, n);
    for (int64_t i = 0; i < kp_; ++i) soft_[i] = fast_exp<T>(T((logits[i] - peak) * sharpness));
    const T inverse = 1 / sum_of(soft_.data(), kp_);
    for (int64_t i = 0; i < k_; ++i) soft[i] = soft_[i] * inverse;
  }

  const Chain& c_;
  const Draws& d_;
  const EdgePack<T>& pack_;
  int64_t k_, kp_;
  LogWeights<T> log_weights_;
  std::vector<double> prefixes_, logits_;  // a row for each chain of a block
  Numbers<T> soft_, column_;
  const Numbers<T> zeros_;
};

template <class T> class RelaxedBacktrackAdjoint {
 public:
  RelaxedBacktrackAdjoint(const Chain& c, const Draws& d, const SoftGrad& a, T* columns)
      : c_(c),
        d_(d),
        a_(a),
        columns_(columns),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        logit_grad_(kp_, T(0)) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      T* grad_prefix = static_cast<T*>(a_.grad_prefix);
      std::fill(grad_prefix + c_.at(n, 0), grad_prefix + c_.at(n, c_.num_steps), T(0));
      for (int64_t s = 0; s < d_.num_samples; ++s)
        for (int64_t t = 0; t < c_.length(n); ++t) pull(s, n, t);
    }
  }

 private:
  void pull(int64_t s, int64_t n, int64_t t) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
    const T* soft = static_cast<const T*>(d_.soft) + at * k_;
    const T* grad = static_cast<const T*>(a_.grad) + at * k_;
    for (int64_t i = 0; i < k_; ++i) logit_grad_[i] = soft[i] * grad[i];
    const T mean = sum_of(logit_grad_.data(), kp_);
    const T sharpness = T(1 / d_.temperature_of(s, n));
    for (int64_t i = 0; i < k_; ++i) logit_grad_[i] = soft[i] * (grad[i] - mean) * sharpness;
    T* prefix = static_cast<T*>(a_.grad_prefix) + c_.at(n, t);
    for (int64_t i = 0; i < k_; ++i) prefix[i] += logit_grad_[i];
    if (t + 1 == c_.length(n) || !a_.grad_transitions) return;
    const int64_t j = d_.path[at + 1];
    if (columns_) {
      T* column = columns_ + j * kp_;
      for (int64_t i = 0; i < k_; ++i) column[i] += logit_grad_[i];
    } else {
      T* into = static_cast<T*>(a_.grad_transitions) + c_.edge(n, t) + j;
      for (int64_t i = 0; i < k_; ++i) into[i * k_] += logit_grad_[i];
    }
  }

  const Chain& c_;
  const Draws& d_;
  const SoftGrad& a_;
  T* columns_;  // [K, Kp], of this group, each row a column of shared transitions; or none
  int64_t k_, kp_;
  Numbers<T> logit_grad_;
};

}  // namespace

template <class T> int64_t sample_paths(const Chain& c, const State& s, const Draws& d) {
  const Filtered f = Filtered::of<T>(c, s);
  const EdgePack<T> pack(c, Sweep::backward);
  for_groups(c, 0.2 * double(d.num_samples), pack, [&](EdgeCache<T> edges, int64_t) {
    return SamplePaths<T>(c, f, d, std::move(edges));
  });
  return 0;
}

template <class T> int64_t relaxed_backtrack(const Chain& c, const State& s, const Draws& d) {
  const Filtered f = Filtered::of<T>(c, s);
  const EdgePack<T> pack(c, Sweep::backward);
  for_groups(c, 0.5 * double(d.num_samples),
             [&](int64_t) { return RelaxedBacktrack<T>(c, f, d, pack); });
  return 0;
}

template <class T>
int64_t relaxed_backtrack_adjoint(const Chain& c, const Draws& d, const SoftGrad& a) {
  GroupSums<T> columns(c, a.grad_transitions);
  zero_own_edges<T>(c, a.grad_transitions);
  for_groups(c, 0.2 * double(d.num_samples),
             [&](int64_t group) { return RelaxedBacktrackAdjoint<T>(c, d, a, columns.of(group)); });
  columns.write_columns(a.grad_transitions);
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(sample_paths, (const Chain& c, const State& s, const Draws& d),
                         (c, s, d))
STRUCTDIST_EXPORT_KERNEL(relaxed_backtrack, (const Chain& c, const State& s, const Draws& d),
                         (c, s, d))
STRUCTDIST_EXPORT_KERNEL(relaxed_backtrack_adjoint,
                         (const Chain& c, const Draws& d, const SoftGrad& a), (c, d, a))

}  // namespace structdist
