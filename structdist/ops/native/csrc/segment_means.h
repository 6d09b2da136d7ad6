// Conditional means along semi-Markov chains: what both passes of segment_expect*.cpp look at.
#pragma once

#include "expectation.h"
#include "segment_lengths.h"

namespace structdist {

template <class T> class SegmentMeans {
 public:
  SegmentMeans(const SegmentChain& s, const SegmentState& f, const SegmentExpectation& v)
      : s_(s),
        c_(s.chain),
        f_(f),
        v_(v),
        k_(c_.num_states),
        lengths_(s, f),
        since_(k_),
        total_(k_),
        log_total_(k_),
        brought_(k_),
        last_(k_) {}

  const double* ends(int64_t n, int64_t t) const { return v_.ends + c_.at(n, t); }
  const double* begins(int64_t n, int64_t t) const { return v_.begins + c_.at(n, t); }

  // Weights of the lengths of segments with last step t, and their sums in double.
  void find_lengths(int64_t n, int64_t t) {
    lengths_.find(n, t);
    std::fill_n(total_.data(), k_, 0.0);
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const T* weight = lengths_.weight(length);
      for (int64_t k = 0; k < k_; ++k) total_[k] += double(weight[k]);
    }
    if (!v_.is_entropy) return;
    for (int64_t k = 0; k < k_; ++k)
      log_total_[k] = fast_log<double>(total_[k] > 0 ? total_[k] : 1.0);
  }

  // Calls f(length, weights [K], what each label brings along [K]) for the lengths 1, 2, ...
  template <class F> void each_length(int64_t n, int64_t t, F f) {
    std::fill_n(since_.data(), k_, 0.0);
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const int64_t first = t + 1 - length;
      const double* before = begins(n, first);
      if (v_.is_entropy)
        surprisals(length, before);
      else
        values(n, t, length, before);
      f(length, lengths_.weight(length), brought_.data());
    }
  }

  const double* total() const { return total_.data(); }

  // The log of what was taken off the ends of a step to make weights of them.
  double largest_end(int64_t n, int64_t t) const {
    const double* log_weight = f_.ends + c_.at(n, t);
    const double largest = *std::max_element(log_weight, log_weight + k_);
    return largest == kMinusInf ? 0 : largest;
  }

  // Products see means relative to that of the likeliest label. Writes P (F - pivot), for an
  // entropy P (F - log P - pivot), and returns the pivot.
  double centre(int64_t n, int64_t t, T* p_mean) const {
    const double *log_weight = f_.ends + c_.at(n, t), *mean = ends(n, t);
    const double pivot = mean[std::max_element(log_weight, log_weight + k_) - log_weight];
    const double largest = largest_end(n, t);
    const T* p = static_cast<const T*>(f_.weights) + c_.at(n, t);
    for (int64_t k = 0; k < k_; ++k) {
      const double surprisal = v_.is_entropy ? largest - log_weight[k] : 0;
      p_mean[k] = p[k] > 0 ? p[k] * narrowed<T>(mean[k] - pivot + surprisal) : T(0);
    }
    return pivot;
  }

  // What is between the mean into j, whose mass q is trusted, and pivot + ratio: log q, or the value
  // of the best edge.
  double offset(const Edges<T>& edges, int64_t j, T q) const {
    return v_.is_entropy ? fast_log<double>(double(q)) : edges.value_shift[j];
  }

  // Probabilities of labels of the last segment, in `last`; false if there is none.
  bool find_last(int64_t n) {
    const double* log_weight = f_.ends + c_.at(n, c_.length(n) - 1);
    const double peak = *std::max_element(log_weight, log_weight + k_);
    if (peak == kMinusInf) return false;
    double sum = 0;
    for (int64_t k = 0; k < k_; ++k) sum += last_[k] = std::exp(log_weight[k] - peak);
    for (int64_t k = 0; k < k_; ++k) last_[k] /= sum;
    return true;
  }
  double last(int64_t k) const { return last_[k]; }
  // What a label of the last segment brings along, if it is possible.
  double brought_by_last(int64_t n, int64_t k) const {
    if (last_[k] == 0) return 0;
    return ends(n, c_.length(n) - 1)[k] - (v_.is_entropy ? std::log(last_[k]) : 0);
  }

 private:
  void surprisals(int64_t length, const double* __restrict before) {
    const double *__restrict logits = lengths_.logits(length), *__restrict peak = lengths_.peak();
    double* __restrict brought = brought_.data();
    for (int64_t k = 0; k < k_; ++k) {
      const double surprisal = log_total_[k] - (logits[k] - peak[k]);
      brought[k] = before[k] + (surprisal < 1e30 ? surprisal : 1e30);  // infinite, of weight 0
    }
  }

  void values(int64_t n, int64_t t, int64_t length, const double* before) {
    const int64_t first = t + 1 - length;
    if (v_.step_values) {
      const T* step = static_cast<const T*>(v_.step_values) + c_.at(n, first);
      for (int64_t k = 0; k < k_; ++k) since_[k] += bounded(step[k]);
    }
    for (int64_t k = 0; k < k_; ++k) brought_[k] = before[k] + since_[k];
    if (!v_.segment_values) return;
    const T* own = static_cast<const T*>(v_.segment_values) +
                   v_.segment_places.at(n, t, length);
    for (int64_t k = 0; k < k_; ++k) brought_[k] += bounded(own[k]);
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  const SegmentExpectation& v_;
  int64_t k_;
  LengthWeights<T> lengths_;
  std::vector<double> since_, total_, log_total_, brought_, last_;
};

}  // namespace structdist
