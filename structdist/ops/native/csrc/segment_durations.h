// What is unfinished of semi-Markov chains whose segments have durations alone, as weights.
#pragma once

#include "segments.h"

namespace structdist {

constexpr int64_t kManyLengths = 8;  // from here on scales live long enough to be worth keeping
constexpr double kHeavy = 40;        // exp(kHeavy) times a length is far from overflow

// Let a segment of each label begin, on a scale that gets the emissions of this step: its weight,
// and its log, which is infinite where the scale is -inf. NaN in the scale is left to the ends.
template <class T>
void begin_label(int64_t num_labels, const double* __restrict begins, const T* __restrict emission,
                 double taken, double* __restrict scale, double* __restrict above,
                 T* __restrict weight) {
  for (int64_t k = 0; k < num_labels; ++k) {
    const double begun = begins[k] + bounded(emission[k]);
    scale[k] += bounded(emission[k]) - taken;
    const double over = begun - scale[k];
    above[k] = begun > kMinusInf ? over : kMinusInf;  // else perhaps -inf less -inf
    weight[k] = fast_exp<T>(T(above[k] < kHeavy ? above[k] : kHeavy));
  }
}

// Sums over lengths of weights of leads times those of durations.
template <class T>
void add_products(int64_t num_labels, const T* __restrict lead, const T* __restrict duration,
                  T* __restrict sum) {
  for (int64_t k = 0; k < num_labels; ++k) sum[k] += lead[k] * duration[k];
}

// Durations [L, K] as weights: exp of what each is less than the largest of its label.
template <class T> struct Durations {
  Numbers<T> weight;
  std::vector<double> peak;  // 0 if all are -inf
  int64_t packed = -1;

  void pack(const SegmentChain& s, int64_t n) {
    const int64_t offset = n * s.chain_stride, k = s.chain.num_states;
    if (offset == packed) return;
    const T* scores = static_cast<const T*>(s.segments) + offset;
    peak.assign(k, kMinusInf);
    weight.resize(s.table());
    for (int64_t i = 0; i < s.table(); ++i) peak[i % k] = std::max(peak[i % k], bounded(scores[i]));
    zero_where_empty(peak.data(), k);
    for (int64_t i = 0; i < s.table(); ++i)
      weight[i] = fast_exp<T>(T(bounded(scores[i]) - peak[i % k]));
    packed = offset;
  }
};

// Where segments have durations alone, and many of them, a step adds the same emission to all that
// is unfinished of a label. So their weights U_s(k) = exp(W_t(s, k) - scale_k) stay as they are
// while scale_k grows, and a sum over lengths is one of products U D. A label is *weighed anew*,
// from `begins`, where a new segment is too heavy for its scale, and where a sum is too small to
// trust.
template <class T> class UnfinishedByDuration {
 public:
  UnfinishedByDuration(const SegmentChain& s, const SegmentState& f)
      : s_(s),
        c_(s.chain),
        f_(f),
        k_(c_.num_states),
        kd_(padded<double>(k_)),
        weights_(c_.rows() * s.longest * k_),
        scale_(c_.rows() * kd_, kMinusInf),
        above_(kd_, kMinusInf) {}

  // Adds step t, and writes the log weights of what ends there, less the norm, and the norm.
  double finish(int64_t n, int64_t t, int64_t row, T* sum, T* log_sum, double* ends) {
    durations_.pack(s_, n);
    const double norm = grow(n, t, row);
    std::fill_n(sum, k_, T(0));
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length)
      add_products(k_, at(row, t + 1 - length), &durations_.weight[(length - 1) * k_], sum);
    double *scale = &scale_[row * kd_], *peak = durations_.peak.data();
    for (int64_t k = 0; k < k_; ++k) log_sum[k] = fast_log<T>(sum[k] >= trust<T>() ? sum[k] : T(1));
    for (int64_t k = 0; k < k_; ++k) ends[k] = scale[k] + peak[k] + double(log_sum[k]) - norm;
    if (any_underflow(sum, k_))
      for (int64_t k = 0; k < k_; ++k)
        if (!(sum[k] >= trust<T>()) && scale[k] > kMinusInf)
          ends[k] = look_closer(n, t, row, k) - norm;
    return norm;
  }

 private:
  T* at(int64_t row, int64_t first) {
    return &weights_[(row * s_.longest + first % s_.longest) * k_];
  }
  double emission(int64_t n, int64_t t, int64_t k) const {
    return bounded(static_cast<const T*>(c_.emissions)[c_.at(n, t) + k]);
  }

  double grow(int64_t n, int64_t t, int64_t row) {
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    const double *begins = f_.begins + c_.at(n, t), before = t ? f_.norms[at_step(n, t) - 1] : 0;
    double *scale = &scale_[row * kd_], *above = above_.data();
    if (t == 0) std::fill_n(scale, k_, kMinusInf);
    begin_label(k_, begins, emission, before, scale, above, at(row, t));
    if (max_of(above, kd_) > kHeavy)
      for (int64_t k = 0; k < k_; ++k)
        if (above[k] > kHeavy) weigh_anew(n, t, row, k);
    double norm = max_of(scale, kd_);
    if (norm == kMinusInf) norm = 0;
    f_.norms[at_step(n, t)] = norm;
    return norm;
  }

  int64_t at_step(int64_t n, int64_t t) const { return n * c_.num_steps + t; }

  // Call f(length, log weight) for all unfinished segments of a label; less the norms before t.
  template <class F> void each(int64_t n, int64_t t, int64_t k, F f) const {
    double since = 0;
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const int64_t first = t + 1 - length;
      since += emission(n, first, k) - (first < t ? f_.norms[at_step(n, first)] : 0);
      f(length, f_.begins[c_.at(n, first) + k] + since);
    }
  }

  void weigh_anew(int64_t n, int64_t t, int64_t row, int64_t k) {
    double most = kMinusInf;
    each(n, t, k, [&](int64_t, double w) { most = w > most || w != w ? w : most; });
    scale_[row * kd_ + k] = most;
    each(n, t, k, [&](int64_t length, double w) {
      at(row, t + 1 - length)[k] = w > kMinusInf ? fast_exp<T>(T(w - most)) : T(0);
    });
  }

  // The log weight of what ends with step t, with new weights or, if need be, without any.
  double look_closer(int64_t n, int64_t t, int64_t row, int64_t k) {
    weigh_anew(n, t, row, k);
    double peak = kMinusInf, sum = 0;
    const T* scores = static_cast<const T*>(s_.segments) + s_.segment(n, t, 1) + k;
    each(n, t, k, [&](int64_t length, double w) {
      peak = std::max(peak, w + bounded(scores[(length - 1) * k_]));
    });
    if (peak == kMinusInf) return peak;
    each(n, t, k, [&](int64_t length, double w) {
      sum += std::exp(w + bounded(scores[(length - 1) * k_]) - peak);
    });
    return peak + std::log(sum);
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  int64_t k_, kd_;
  Durations<T> durations_;
  Numbers<T> weights_;         // [rows, L, K]: U
  std::vector<double> scale_;  // [rows, K], less the norms before this step; -inf beyond K
  std::vector<double> above_;  // [K]: of the segments that begin here, above the scale
};

}  // namespace structdist
