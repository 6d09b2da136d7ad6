// Conditional expectations along semi-Markov chains, and entropies.
//
// Given what ends with a step, its segment has each length with probability w; given what begins at
// a step, the label before it is each with another. With f what a choice brings along (the mean of
// what stands before it and its own value, or in an entropy -log w),
//     mean = sum of w f.
// Sums over lengths are made as they stand, in double. Those over labels are the linear chain's:
// matrix products of P (F - pivot), and column by column in log space where sums underflowed; see
// expect.cpp.
#include "segment_means.h"

namespace structdist {
namespace {

template <class T> class SegmentExpect {
 public:
  SegmentExpect(const SegmentChain& s, const SegmentState& f, const SegmentExpectation& v,
                EdgeCache<T> edges)
      : c_(s.chain),
        f_(f),
        v_(v),
        edges_(std::move(edges)),
        means_(s, f, v),
        k_(c_.num_states),
        kp_(padded<T>(k_)),
        p_(c_.rows() * kp_, T(0)),
        p_mean_(p_),
        sums_(p_),
        pivot_(c_.rows()),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      v_.value[n] = 0;
      zero_padding<double>(c_, n, v_.ends);
      zero_padding<double>(c_, n, v_.begins);
    }
    block.each(0, [&](int64_t n, int64_t) { std::fill_n(v_.begins + c_.at(n, 0), k_, 0.0); });
    for (int64_t t = 0; t < block.longest; ++t) {
      block.each(t, [&](int64_t n, int64_t row) { finish_segments(n, t, row); });
      if (t + 1 == block.longest) break;
      const Edges<T>& edges = edges_.at(block.first, t);
      const Factors<T> means{rows_of(p_mean_), edges.weight.data()};
      const Factors<T> values{rows_of(p_), edges.weighted_value.data()};
      const bool carries = edges.carried != Carried::nothing;
      times<T>(c_.rows(), means, carries ? &values : nullptr, sums_.data(), k_, kp_);
      block.each(t + 1, [&](int64_t n, int64_t row) { begin_segments(edges, n, t, row); });
    }
    block.each(0, [&](int64_t n, int64_t) { close(n); });
  }

 private:
  Rows<T> rows_of(const Numbers<T>& rows) const {
    return Rows<T>(rows.data(), c_.rows(), kp_, c_.rows());
  }

  // Means of what ends with step t, and the rows for its product.
  void finish_segments(int64_t n, int64_t t, int64_t row) {
    double* mean = v_.ends + c_.at(n, t);
    std::fill_n(mean, k_, 0.0);
    means_.find_lengths(n, t);
    means_.each_length(n, t, [&](int64_t, const T* weight, const double* brought) {
      for (int64_t k = 0; k < k_; ++k)
        mean[k] += weight[k] > 0 ? double(weight[k]) * brought[k] : 0;
    });
    const double* total = means_.total();
    for (int64_t k = 0; k < k_; ++k) mean[k] = total[k] > 0 ? mean[k] / total[k] : 0;
    std::copy_n(static_cast<const T*>(f_.weights) + c_.at(n, t), k_, &p_[row * kp_]);
    pivot_[row] = means_.centre(n, t, &p_mean_[row * kp_]);
  }

  // Means of what may stand before the segments of step t+1.
  void begin_segments(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T *q = static_cast<const T*>(f_.incoming) + c_.at(n, t + 1), *sum = &sums_[row * kp_];
    double* mean = v_.begins + c_.at(n, t + 1);
    for (int64_t j = 0; j < k_; ++j) {
      if (q[j] >= trust<T>())
        mean[j] = pivot_[row] + double(sum[j] / q[j]) + means_.offset(edges, j, q[j]);
      else
        mean[j] = mean_in_log_space(edges, f_.ends + c_.at(n, t), means_.ends(n, t), j, w_.data());
      if (v_.is_entropy && mean[j] < 0) mean[j] = 0;
    }
  }

  void close(int64_t n) {
    if (!means_.find_last(n)) return;
    double value = 0;
    for (int64_t k = 0; k < k_; ++k) value += means_.last(k) * means_.brought_by_last(n, k);
    v_.value[n] = v_.is_entropy && value < 0 ? 0 : value;
  }

  const Chain& c_;
  const SegmentState& f_;
  const SegmentExpectation& v_;
  EdgeCache<T> edges_;
  SegmentMeans<T> means_;
  int64_t k_, kp_;
  Numbers<T> p_, p_mean_, sums_;
  std::vector<double> pivot_, w_;
};

}  // namespace

template <class T>
int64_t segment_expect(const SegmentChain& s, const SegmentState& f, const SegmentExpectation& v) {
  const Carried carried = carried_by(v.is_entropy, v.move_values);
  const EdgePack<T> pack(s.chain, Sweep::forward, carried, v.move_values);
  for_groups(s.chain, 2 * cost_of(s), pack, [&](EdgeCache<T> edges, int64_t) {
    return SegmentExpect<T>(s, f, v, std::move(edges));
  });
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_expect,
                         (const SegmentChain& s, const SegmentState& f,
                          const SegmentExpectation& v),
                         (s, f, v))

}  // namespace structdist
