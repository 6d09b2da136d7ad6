// The adjoint of the forward pass of semi-Markov chains, from last step to first.
//
// What ends with a step gets its gradient from outside and from what begins after it, through the
// matrix product; and hands it to the segments that end there, by the probability of each length:
// to what stands before each, to all its steps, and to the segment itself.
#include "segment_lengths.h"

namespace structdist {
namespace {

constexpr int64_t kChunk = 32;  // steps whose outer products are made together

// Loops over labels [K], of pointers that do not meet: then compilers make vector code of them.

// Hand the share of a segment to what stands before it and, with those of all that began earlier,
// to its first step.
template <class T>
void hand_share(int64_t num_labels, const T* __restrict share, T* __restrict run,
                T* __restrict before, T* __restrict step) {
  for (int64_t k = 0; k < num_labels; ++k) {
    before[k] += share[k];
    run[k] += share[k];
    step[k] += run[k];
  }
}

template <class T> class SegmentFilterAdjoint {
 public:
  SegmentFilterAdjoint(const SegmentChain& s, const SegmentState& f, const SegmentGrad& a,
                       EdgeCache<T> edges, T* products, T* in_log_space, T* table)
      : s_(s),
        c_(s.chain),
        f_(f),
        a_(a),
        edges_(std::move(edges)),
        products_(products),
        in_log_space_(in_log_space),
        table_(table),
        k_(c_.num_states),
        kp_(padded<T>(k_)),
        slot_(c_.rows() * kp_ + kLine / sizeof(T)),
        scaled_(slot_ * kChunk, T(0)),
        pulled_(c_.rows() * kp_),
        grad_(kp_),
        lengths_(s, f),
        given_(k_),
        scale_(k_),
        run_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      std::fill_n(begins(n, 0), c_.num_steps * k_, T(0));
      std::fill_n(static_cast<T*>(a_.grad_emissions) + c_.at(n, 0), c_.num_steps * k_, T(0));
    }
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      if (t + 1 < block.longest) {
        block.each(t + 1, [&](int64_t n, int64_t row) { divide(n, t, row); });
        times(c_.rows(), scaled(0, t), edges_.at(block.first, t).weight_t, pulled_.data(), k_, kp_);
      }
      block.each(t, [&](int64_t n, int64_t row) { step_back(n, t, row); });
      if (products_ && t % kChunk == 0 && t + 1 < block.longest)
        block.each(t + 1, [&](int64_t n, int64_t row) { add_products(n, t, row); });
    }
  }

 private:
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.at(n, t);
  }
  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.at(n, t);
  }
  T* begins(int64_t n, int64_t t) const { return static_cast<T*>(a_.grad_begins) + c_.at(n, t); }

  // Gradients of the begins of step t+1 over q; they wait there for their outer products.
  T* scaled(int64_t row, int64_t t) { return &scaled_[t % kChunk * slot_ + row * kp_]; }

  void divide(int64_t n, int64_t t, int64_t row) {
    const T *g = begins(n, t + 1), *q = incoming(n, t + 1);
    T* s = scaled(row, t);
    for (int64_t j = 0; j < k_; ++j) s[j] = q[j] >= trust<T>() ? g[j] / q[j] : T(0);
  }

  void step_back(int64_t n, int64_t t, int64_t row) {
    take_in(n, t);
    if (t + 1 < c_.length(n)) {
      const T *p = weights(n, t), *y = &pulled_[row * kp_];
      for (int64_t i = 0; i < k_; ++i) grad_[i] += p[i] * y[i];
      pull_in_log_space(n, t);
      if (a_.grad_transitions && !products_) add_own_edges(n, t, scaled(row, t));
    }
    divide_among_lengths(n, t);
    if (a_.of_lengths) add_single_segments(n, t);
    hand_out(n, t);
  }

  // The gradient of the ends of step t that comes from outside.
  void take_in(int64_t n, int64_t t) {
    if (a_.upstream)
      std::copy_n(static_cast<const T*>(a_.upstream) + c_.at(n, t), k_, grad_.data());
    else
      std::fill_n(grad_.data(), k_, T(0));
    if (!a_.grad_log_z || t + 1 < c_.length(n)) return;
    const T* p = weights(n, t);
    double total = 0;  // 0 where no path is allowed
    for (int64_t k = 0; k < k_; ++k) total += double(p[k]);
    const T scale = total > 0 ? T(static_cast<const T*>(a_.grad_log_z)[n] / total) : T(0);
    for (int64_t k = 0; k < k_; ++k) grad_[k] += p[k] * scale;
  }

  // Probabilities of lengths, times the gradient of the ends of step t.
  void divide_among_lengths(int64_t n, int64_t t) {
    lengths_.find(n, t);
    const T* sum = lengths_.sum();
    for (int64_t k = 0; k < k_; ++k) scale_[k] = sum[k] > 0 ? grad_[k] / sum[k] : T(0);
    const T* __restrict scale = scale_.data();
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      T* __restrict share = lengths_.weight(length);
      for (int64_t k = 0; k < k_; ++k) share[k] *= scale[k];
    }
  }

  void add_single_segments(int64_t n, int64_t t) {
    const int64_t count = s_.lengths_at(t);
    for (int64_t s = 0; s < a_.num_samples; ++s) {
      const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
      const T* of_lengths = static_cast<const T*>(a_.of_lengths) + at * s_.longest;
      T* share = lengths_.weight(1) + a_.labels[at];
      for (int64_t length = 0; length < count; ++length) share[length * k_] += of_lengths[length];
    }
  }

  // To what stands before each segment, to its steps and to the segment itself.
  void hand_out(int64_t n, int64_t t) {
    T* run = run_.data();
    std::fill_n(run, k_, T(0));
    for (int64_t length = s_.lengths_at(t); length > 0; --length) {
      const int64_t first = t + 1 - length;
      const T* share = lengths_.weight(length);
      T* step = static_cast<T*>(a_.grad_emissions) + c_.at(n, first);
      hand_share(k_, share, run, begins(n, first), step);
      if (!table_) continue;
      T* own = table_ + s_.segment(n, t, length);
      for (int64_t k = 0; k < k_; ++k) own[k] += share[k];
    }
  }

  void add_products(int64_t n, int64_t begin, int64_t row) {
    const int64_t count = std::min(kChunk, c_.length(n) - 1 - begin);
    add_outer<T>({weights(n, begin), &scaled_[row * kp_], k_, slot_, count}, products_, k_, kp_);
  }

  void add_own_edges(int64_t n, int64_t t, const T* s) {
    const Edges<T>& edges = edges_.at(n, t);
    const T* p = weights(n, t);
    T* grad = static_cast<T*>(a_.grad_transitions) + c_.edge(n, t);
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j) grad[i * k_ + j] += p[i] * edges.weight[i * kp_ + j] * s[j];
  }

  // The share of sums that underflowed, column by column.
  void pull_in_log_space(int64_t n, int64_t t) {
    const T *q = incoming(n, t + 1), *g = begins(n, t + 1);
    if (!any_underflow(q, k_)) return;
    const Edges<T>& edges = edges_.at(n, t);
    for (int64_t j = 0; j < k_; ++j) {
      if (q[j] >= trust<T>() || g[j] == 0) continue;
      if (!edges.given_after(f_.ends + c_.at(n, t), j, given_.data())) continue;
      T* column = in_log_space_ ? in_log_space_ + j : nullptr;
      int64_t stride = kp_;
      if (a_.grad_transitions && !c_.shared())
        column = static_cast<T*>(a_.grad_transitions) + c_.edge(n, t) + j, stride = k_;
      for (int64_t i = 0; i < k_; ++i) {
        const T share = T(given_[i] * g[j]);
        grad_[i] += share;
        if (column) column[i * stride] += share;
      }
    }
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  const SegmentGrad& a_;
  EdgeCache<T> edges_;
  T *products_, *in_log_space_;  // [K, Kp], of this group, for transitions that chains share
  T* table_;                     // [L, K] of this group, or all gradients of segments; or none
  int64_t k_, kp_, slot_;
  Numbers<T> scaled_, pulled_, grad_;
  LengthWeights<T> lengths_;
  std::vector<double> given_;
  Numbers<T> scale_, run_;
};

}  // namespace

template <class T>
int64_t segment_filter_adjoint(const SegmentChain& s, const SegmentState& f, const SegmentGrad& a) {
  const Chain& c = s.chain;
  const EdgePack<T> pack(c, Sweep::backward);
  GroupSums<T> products(c, a.grad_transitions), in_log_space(c, a.grad_transitions);
  GroupTables<T> tables(s, s.places(), a.grad_segments);
  for_groups(c, 2 * cost_of(s), pack, [&](EdgeCache<T> edges, int64_t group) {
    return SegmentFilterAdjoint<T>(s, f, a, std::move(edges), products.of(group),
                                   in_log_space.of(group), tables.of(group));
  });
  tables.write();
  if (const T* total = products.total()) {
    const T* more = in_log_space.total();
    const int64_t k = c.num_states;
    pack.shared.each([&](int64_t i, int64_t j, int64_t at, T weight) {
      static_cast<T*>(a.grad_transitions)[i * k + j] = weight * total[at] + more[at];
    });
  }
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_filter_adjoint,
                         (const SegmentChain& s, const SegmentState& f, const SegmentGrad& a),
                         (s, f, a))

}  // namespace structdist
