// Segments chosen from last to first: exact draws, and relaxed ones (which with the forward pass
// and Gumbel noise are Gumbel-FFBS, and with best scores and no noise relaxed Viterbi).
#include "segment_backtrack.h"

namespace structdist {
namespace {

double peak_of(const double* logits, int64_t count) {
  const double peak = *std::max_element(logits, logits + count);
  return peak == kMinusInf ? 0 : peak;  // no path: all weights 0
}

// The first choice whose cumulative probability exceeds `uniform`, never an impossible one; what is
// left of the uniform number is uniform again.
int64_t invert_cdf(double* logits, int64_t count, double& uniform) {
  const double peak = peak_of(logits, count);
  double total = 0, below = 0;
  for (int64_t i = 0; i < count; ++i) total += logits[i] = std::exp(logits[i] - peak);
  const double target = uniform * total;
  int64_t chosen = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(logits[i] > 0)) continue;
    chosen = i;
    if (below + logits[i] > target) break;
    below += logits[i];
  }
  const double left = logits[chosen] > 0 ? (target - below) / logits[chosen] : 0;
  uniform = std::min(std::max(left, 0.0), 1.0);
  return chosen;
}

template <class T> class SampleSegments {
 public:
  SampleSegments(const SegmentChain& s, const SegmentState& f, const SegmentDraws& d)
      : c_(s.chain), d_(d), backtrack_(s, f) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t s = 0; s < d_.num_samples; ++s) draw(s, n);
  }

 private:
  void draw(int64_t s, int64_t n) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps, k = c_.num_states;
    const double* noise = static_cast<const double*>(d_.noise) + at;
    std::fill_n(d_.path + at, c_.num_steps, int64_t(0));
    double uniform = 0;
    backtrack_.run(
        n, d_.path + at,
        [&](int64_t t, double* logits) {
          uniform = noise[t];
          return invert_cdf(logits, k, uniform);
        },
        [&](int64_t, double* logits, int64_t count) { return invert_cdf(logits, count, uniform); });
  }

  const Chain& c_;
  const SegmentDraws& d_;
  SegmentBacktrack<T> backtrack_;
};

template <class T> class RelaxedSegments {
 public:
  RelaxedSegments(const SegmentChain& s, const SegmentState& f, const SegmentDraws& d)
      : c_(s.chain), d_(d), width_(c_.num_states + s.longest), backtrack_(s, f) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t s = 0; s < d_.num_samples; ++s) draw(s, n);
  }

 private:
  void draw(int64_t s, int64_t n) {
    const int64_t at = (s * c_.num_chains + n) * c_.num_steps, k = c_.num_states;
    const double sharpness = 1 / d_.temperature[s * d_.sample_stride + n * d_.chain_stride];
    const T* noise = static_cast<const T*>(d_.noise);
    std::fill_n(d_.path + at, c_.num_steps, int64_t(0));
    std::fill_n(static_cast<T*>(d_.soft) + at * width_, c_.num_steps * width_, T(0));
    const auto choose = [&](double* logits, int64_t count, int64_t place) {
      place += at * width_;
      return relax(logits, count, noise ? noise + place : nullptr, sharpness,
                   static_cast<T*>(d_.soft) + place);
    };
    backtrack_.run(
        n, d_.path + at,
        [&](int64_t t, double* logits) { return choose(logits, k, t * width_); },
        [&](int64_t t, double* logits, int64_t count) {
          return choose(logits, count, t * width_ + k);
        });
  }

  int64_t relax(double* logits, int64_t count, const T* gumbel, double sharpness, T* soft) {
    for (int64_t i = 0; gumbel && i < count; ++i) logits[i] += double(gumbel[i]);
    const int64_t chosen = std::max_element(logits, logits + count) - logits;
    const double peak = peak_of(logits, count);
    T sum = 0;
    for (int64_t i = 0; i < count; ++i)
      soft[i] = fast_exp<T>(T(std::max((logits[i] - peak) * sharpness, -1e30)));
    for (int64_t i = 0; i < count; ++i) sum += soft[i];
    for (int64_t i = 0; i < count; ++i) soft[i] = sum > 0 ? soft[i] / sum : T(0);
    return chosen;
  }

  const Chain& c_;
  const SegmentDraws& d_;
  int64_t width_;
  SegmentBacktrack<T> backtrack_;
};

// From the gradient of relaxed choices to those of their logits, which are made of prefixes, of
// moves to the label after, and of segments.
template <class T> class RelaxedSegmentsAdjoint {
 public:
  RelaxedSegmentsAdjoint(const SegmentChain& s, const SegmentDraws& d, const SegmentSoftGrad& a,
                         T* columns)
      : c_(s.chain),
        d_(d),
        a_(a),
        columns_(columns),
        k_(c_.num_states),
        longest_(s.longest),
        labels_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      T* ends = static_cast<T*>(a_.grad_ends) + c_.at(n, 0);
      std::fill_n(ends, c_.num_steps * k_, T(0));
      for (int64_t s = 0; s < d_.num_samples; ++s)
        for (int64_t t = 0; t < c_.num_steps; ++t) pull(s, n, t);
    }
  }

 private:
  // A segment ends where the next begins, and with its chain.
  bool ends_at(int64_t n, int64_t t, const int64_t* path) const {
    return t + 1 == c_.length(n) || (t + 1 < c_.length(n) && path[t + 1] < k_);
  }

  void pull(int64_t s, int64_t n, int64_t t) {
    const int64_t first = (s * c_.num_chains + n) * c_.num_steps, at = first + t;
    const int64_t* path = d_.path + first;
    T* lengths = static_cast<T*>(a_.grad_lengths) + at * longest_;
    if (!ends_at(n, t, path)) {
      std::fill_n(lengths, longest_, T(0));
      return;
    }
    const T* soft = static_cast<const T*>(d_.soft) + at * (k_ + longest_);
    const T* grad = static_cast<const T*>(a_.grad) + at * (k_ + longest_);
    const T sharpness = T(1 / d_.temperature[s * d_.sample_stride + n * d_.chain_stride]);
    through_softmax(soft + k_, grad + k_, longest_, sharpness, lengths);
    through_softmax(soft, grad, k_, sharpness, labels_.data());
    T* ends = static_cast<T*>(a_.grad_ends) + c_.at(n, t);
    for (int64_t i = 0; i < k_; ++i) ends[i] += labels_[i];
    if (a_.grad_transitions && t + 1 < c_.length(n)) add_moves(n, t, path[t + 1]);
  }

  static void through_softmax(const T* __restrict soft, const T* __restrict grad, int64_t count,
                              T sharpness, T* __restrict out) {
    const T mean = dot(soft, grad, count);
    for (int64_t i = 0; i < count; ++i) out[i] = soft[i] * (grad[i] - mean) * sharpness;
  }

  void add_moves(int64_t n, int64_t t, int64_t after) {
    T* column = columns_ ? columns_ + after * padded<T>(k_)
                         : static_cast<T*>(a_.grad_transitions) + c_.edge(n, t) + after;
    const int64_t stride = columns_ ? 1 : k_;
    for (int64_t i = 0; i < k_; ++i) column[i * stride] += labels_[i];
  }

  const Chain& c_;
  const SegmentDraws& d_;
  const SegmentSoftGrad& a_;
  T* columns_;  // [K, Kp], of this group, each row a column of shared transitions; or none
  int64_t k_, longest_;
  Numbers<T> labels_;
};

}  // namespace

template <class T>
int64_t sample_segments(const SegmentChain& s, const SegmentState& f, const SegmentDraws& d) {
  for_groups(s.chain, 0.5 * double(d.num_samples),
             [&](int64_t) { return SampleSegments<T>(s, f, d); });
  return 0;
}

template <class T>
int64_t relaxed_segments(const SegmentChain& s, const SegmentState& f, const SegmentDraws& d) {
  for_groups(s.chain, 2 * double(d.num_samples),
             [&](int64_t) { return RelaxedSegments<T>(s, f, d); });
  return 0;
}

template <class T>
int64_t relaxed_segments_adjoint(const SegmentChain& s, const SegmentDraws& d,
                                 const SegmentSoftGrad& a) {
  const Chain& c = s.chain;
  GroupSums<T> columns(c, a.grad_transitions);
  zero_own_edges<T>(c, a.grad_transitions);
  for_groups(c, 0.5 * double(d.num_samples), [&](int64_t group) {
    return RelaxedSegmentsAdjoint<T>(s, d, a, columns.of(group));
  });
  columns.write_columns(a.grad_transitions);
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(sample_segments,
                         (const SegmentChain& s, const SegmentState& f, const SegmentDraws& d),
                         (s, f, d))
STRUCTDIST_EXPORT_KERNEL(relaxed_segments,
                         (const SegmentChain& s, const SegmentState& f, const SegmentDraws& d),
                         (s, f, d))

STRUCTDIST_EXPORT_KERNEL(relaxed_segments_adjoint,
                         (const SegmentChain& s, const SegmentDraws& d, const SegmentSoftGrad& a),
                         (s, d, a))

}  // namespace structdist
