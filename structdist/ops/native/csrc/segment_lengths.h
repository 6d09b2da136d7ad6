// How what ends with a step divides among the lengths that its segment may have.
#pragma once

#include "segments.h"

namespace structdist {

// Loops over labels [K], of pointers that do not meet: then compilers make vector code of them.

// Logits of segments with one more step before them, and the largest so far.
template <class T>
void add_step(int64_t num_labels, const T* __restrict emission, double norm,
              const T* __restrict score, const double* __restrict before,
              double* __restrict since, double* __restrict logits, double* __restrict peak) {
  for (int64_t k = 0; k < num_labels; ++k) {
    since[k] += bounded(emission[k]) - norm;
    logits[k] = before[k] + since[k] + bounded(score[k]);
    peak[k] = logits[k] > peak[k] ? logits[k] : peak[k];
  }
}

template <class T>
void weigh(int64_t num_labels, const double* __restrict logits, const double* __restrict peak,
           T* __restrict weight, T* __restrict sum) {
  for (int64_t k = 0; k < num_labels; ++k) {
    weight[k] = fast_exp<T>(T(logits[k] - peak[k]));
    sum[k] += weight[k];
  }
}

// Weights of lengths, each label for itself: exp of logits, less the largest. Of the rows [K] for
// the lengths 1..count, the first is that of length 1.
template <class T> class LengthWeights {
 public:
  LengthWeights(const SegmentChain& s, const SegmentState& f)
      : s_(s),
        c_(s.chain),
        f_(f),
        k_(c_.num_states),
        logits_(s.longest * k_),
        peak_(k_),
        since_(k_),
        weights_(s.longest * k_),
        sum_(k_) {}

  // For segments with last step t.
  void find(int64_t n, int64_t t) {
    std::fill_n(since_.data(), k_, 0.0);
    std::fill_n(peak_.data(), k_, kMinusInf);
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const int64_t first = t + 1 - length;
      const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, first);
      const T* score = static_cast<const T*>(s_.segments) + s_.segment(n, t, length);
      add_step(k_, emission, f_.norms[n * c_.num_steps + first], score,
               f_.begins + c_.at(n, first), since_.data(), &logits_[(length - 1) * k_],
               peak_.data());
    }
    zero_where_empty(peak_.data(), k_);
    std::fill_n(sum_.data(), k_, T(0));
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length)
      weigh(k_, logits(length), peak_.data(), weight(length), sum_.data());
  }

  const double* logits(int64_t length) const { return &logits_[(length - 1) * k_]; }
  const double* peak() const { return peak_.data(); }
  T* weight(int64_t length) { return &weights_[(length - 1) * k_]; }
  const T* sum() const { return sum_.data(); }

 private:
  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  int64_t k_;
  std::vector<double> logits_, peak_, since_;
  Numbers<T> weights_, sum_;
};

// Gradients [L, K] by group where all chains share them, else those of all chains in place.
template <class T> class GroupTables {
 public:
  GroupTables(const SegmentChain& s, const SegmentPlaces& places, void* grad)
      : grad_(static_cast<T*>(grad)),
        size_(s.table()),
        sums_(grad && places.shared() ? size_ * Groups(s.chain).count() : 0, T(0)) {}

  // Where a group adds to; or none.
  T* of(int64_t group) { return sums_.empty() ? grad_ : &sums_[size_ * group]; }
  // Adds up what groups have found.
  void write() const {
    for (size_t i = 0; i < sums_.size(); ++i) grad_[int64_t(i) % size_] += sums_[i];
  }

 private:
  T* grad_;
  int64_t size_;
  Numbers<T> sums_;
};

}  // namespace structdist
