// Choosing segments from last to first.
//
// Where the segment after it begins, a segment ends. Its label is chosen given the label after it,
// by ends_t(k) + score of moving there; then its length given its label, by begins_s(k) + the
// scores of its steps and of the segment. O(K + L) a segment.
#pragma once

#include "segments.h"

namespace structdist {

// Calls choose_label(t, logits) and choose_length(t, logits, count) for each segment of one draw.
template <class T> class SegmentBacktrack {
 public:
  SegmentBacktrack(const SegmentChain& s, const SegmentState& f)
      : s_(s),
        c_(s.chain),
        f_(f),
        k_(c_.num_states),
        logits_(std::max(k_, s.longest)) {}

  template <class ChooseLabel, class ChooseLength>
  void run(int64_t n, int64_t* path, ChooseLabel choose_label, ChooseLength choose_length) {
    int64_t label = -1;
    for (int64_t t = c_.length(n) - 1; t >= 0;) {
      weigh_labels(n, t, label);
      label = choose_label(t, logits_.data());
      const int64_t count = s_.lengths_at(t);
      weigh_lengths(n, t, label, count);
      const int64_t first = t - choose_length(t, logits_.data(), count);
      std::fill(path + first + 1, path + t + 1, label + k_);
      path[first] = label;
      t = first - 1;
    }
  }

 private:
  void weigh_labels(int64_t n, int64_t t, int64_t after) {
    std::copy_n(f_.ends + c_.at(n, t), k_, logits_.data());
    if (after < 0) return;
    const T* into = static_cast<const T*>(c_.transitions) + c_.edge(n, t) + after;
    for (int64_t i = 0; i < k_; ++i) logits_[i] += bounded(into[i * k_]);
  }

  void weigh_lengths(int64_t n, int64_t t, int64_t label, int64_t count) {
    double since = 0;
    for (int64_t length = 1; length <= count; ++length) {
      const int64_t first = t + 1 - length, at = c_.at(n, first) + label;
      const double emission = bounded(static_cast<const T*>(c_.emissions)[at]);
      const T* score = static_cast<const T*>(s_.segments) + s_.segment(n, t, length);
      since += emission - f_.norms[n * c_.num_steps + first];
      logits_[length - 1] = f_.begins[at] + since + bounded(score[label]);
    }
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  int64_t k_;
  std::vector<double> logits_;
};

}  // namespace structdist
