// Gradients of expectations and entropies of semi-Markov chains: the adjoint of segment_expect.cpp.
//
// It carries M, the gradient of means (marginals), and G, that of log weights. A choice of
// probability w that brings along f gets, from those of the sum that it is part of,
//     M w,   and   w (G + M (f - mean)).
// Over labels these are the matrix products of expect_adjoint.cpp; over lengths they are made as
// they stand. Gradients of what begins at a step wait in a ring of L steps for the sweep.
#include "segment_means.h"

namespace structdist {
namespace {

constexpr int64_t kChunk = 32;  // steps whose outer products are made together

template <class T> void add_to(T* __restrict total, const T* __restrict x, int64_t k) {
  for (int64_t i = 0; i < k; ++i) total[i] += x[i];
}

// Where what segments get goes: of this group, or all gradients where chains do not share them.
template <class T> struct SegmentTables {
  T *scores, *values;  // or none
};

template <class T> class SegmentExpectAdjoint {
 public:
  SegmentExpectAdjoint(const SegmentChain& s, const SegmentState& f, const SegmentExpectation& v,
                       const SegmentExpectGrad& a, EdgeCache<T> edges, EdgeSums<T> sums,
                       SegmentTables<T> tables)
      : s_(s),
        c_(s.chain),
        f_(f),
        v_(v),
        a_(a),
        edges_(std::move(edges)),
        sums_(sums),
        tables_(tables),
        means_(s, f, v),
        k_(c_.num_states),
        kp_(padded<T>(k_)),
        slot_(3 * c_.rows() * kp_ + kLine / sizeof(T)),
        waiting_(slot_ * kChunk, T(0)),
        em_(c_.rows() * kp_),
        pulled_(em_),
        ring_(2 * c_.rows() * s.longest * k_),
        after_(2 * c_.rows() * k_),
        grad_(kp_),
        mass_(kp_),
        shares_(2 * s.longest * k_),
        so_far_(2 * k_),
        inverse_(k_),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    std::fill(ring_.begin(), ring_.end(), T(0));
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      if (t + 1 < block.longest) {
        const Edges<T>& edges = edges_.at(block.first, t);
        block.each(t + 1, [&](int64_t n, int64_t row) { scale(edges, n, t, row); });
        const Factors<T> masses{rows_of(m(0, t)), edges.weight_t.data()};
        const Factors<T> values{masses.rows, edges.weighted_value_t.data()};
        const Factors<T> pulls{rows_of(u(0, t)), edges.weight_t.data()};
        const bool carries = edges.carried != Carried::nothing;
        multiply<T>(c_.rows(), k_, kp_, Product<T>{masses, nullptr, em_.data()},
                    Product<T>{pulls, carries ? &values : nullptr, pulled_.data()});
      }
      block.each(t, [&](int64_t n, int64_t row) { step_back(n, t, row); });
      if (sums_.pulls && t % kChunk == 0 && t + 1 < block.longest)
        block.each(t + 1, [&](int64_t n, int64_t row) { add_products(n, t, row); });
    }
  }

 private:
  // Rows of the move from step t to t+1, which wait there for their outer products.
  T* u(int64_t row, int64_t t) { return &waiting_[t % kChunk * slot_ + row * kp_]; }
  T* m(int64_t row, int64_t t) { return u(row, t) + c_.rows() * kp_; }
  T* p_mean(int64_t row, int64_t t) { return m(row, t) + c_.rows() * kp_; }
  Rows<T> rows_of(const T* first) const { return Rows<T>(first, c_.rows(), kp_, c_.rows()); }

  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.at(n, t);
  }
  // Gradients [2, K] of what begins at a step, of its log weight and of its mean.
  T* begun(int64_t row, int64_t first) {
    return &ring_[2 * (row * s_.longest + first % s_.longest) * k_];
  }
  T* after(int64_t row) { return &after_[2 * row * k_]; }

  // u = (G - M r) / q and m = M / q of step t+1, where q is trusted; and P (F - pivot) of step t.
  void scale(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    T *begins = begun(row, t + 1), *g = after(row), *mass = g + k_;
    std::copy_n(begins, 2 * k_, g);
    std::fill_n(begins, 2 * k_, T(0));
    const double pivot = means_.centre(n, t, p_mean(row, t));
    const T* q = static_cast<const T*>(f_.incoming) + c_.at(n, t + 1);
    const double* mean = means_.begins(n, t + 1);
    T *u_row = u(row, t), *m_row = m(row, t);
    for (int64_t j = 0; j < k_; ++j) {
      if (!(q[j] >= trust<T>())) {
        u_row[j] = m_row[j] = T(0);
        continue;
      }
      const T ratio = narrowed<T>(mean[j] - pivot - means_.offset(edges, j, q[j]));
      m_row[j] = mass[j] / q[j];
      u_row[j] = (g[j] - mass[j] * ratio) / q[j];
    }
  }

  void step_back(int64_t n, int64_t t, int64_t row) {
    if (t + 1 == c_.length(n))
      begin_with(n);
    else
      pull_moves(n, t, row);
    hand_out(n, t, row);
  }

  void begin_with(int64_t n) {
    std::fill(grad_.begin(), grad_.end(), T(0));
    std::fill(mass_.begin(), mass_.end(), T(0));
    if (!means_.find_last(n)) return;
    const double grad = static_cast<const T*>(a_.grad_value)[n];
    for (int64_t k = 0; k < k_; ++k) {
      const double share = means_.last(k) * grad;
      mass_[k] = T(share);
      grad_[k] = share == 0 ? T(0) : T(share * (means_.brought_by_last(n, k) - v_.value[n]));
    }
  }

  // From the gradients of what begins at step t+1 to those of what ends with step t.
  void pull_moves(int64_t n, int64_t t, int64_t row) {
    const Edges<T>& edges = edges_.at(n, t);
    const T *p = weights(n, t), *weighed = p_mean(row, t);
    const T *em = &em_[row * kp_], *pulled = &pulled_[row * kp_];
    for (int64_t i = 0; i < k_; ++i) {
      mass_[i] = p[i] * em[i];
      grad_[i] = p[i] * pulled[i] + weighed[i] * em[i];
    }
    const bool own = a_.grad_transitions && !c_.shared();
    const EdgeGrads<T> to =
        own ? own_edges(n, t) : EdgeGrads<T>{sums_.rest, sums_.rest_of_values, kp_};
    if (own) add_own_edges<T>(edges, {p, weighed, u(row, t), m(row, t)}, to);
    const T *q = static_cast<const T*>(f_.incoming) + c_.at(n, t + 1), *g = after(row);
    if (!any_underflow(q, k_)) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && (g[j] != 0 || g[k_ + j] != 0))
        pull_in_log_space<T>(edges, f_.ends + c_.at(n, t), means_.ends(n, t),
                             {j, means_.begins(n, t + 1)[j], g[j], g[k_ + j]}, w_.data(),
                             grad_.data(), mass_.data(), to);
  }

  EdgeGrads<T> own_edges(int64_t n, int64_t t) const {
    const int64_t offset = c_.edge(n, t);
    T* of_values = static_cast<T*>(a_.grad_move_values);
    return {static_cast<T*>(a_.grad_transitions) + offset, of_values ? of_values + offset : nullptr,
            k_};
  }

  void add_products(int64_t n, int64_t begin, int64_t row) {
    const int64_t count = std::min(kChunk, c_.length(n) - 1 - begin);
    sums_.add({weights(n, begin), u(row, begin), k_, slot_, count},
              {p_mean(row, begin), m(row, begin), slot_, slot_, count}, k_, kp_);
  }

  // To what stands before each segment that ends with step t, to its steps and to itself.
  void hand_out(int64_t n, int64_t t, int64_t row) {
    divide_among_lengths(n, t);
    std::fill(so_far_.begin(), so_far_.end(), T(0));
    for (int64_t length = s_.lengths_at(t); length > 0; --length) {
      const int64_t first = t + 1 - length;
      const T* share = &shares_[2 * (length - 1) * k_];
      add_to(begun(row, first), share, 2 * k_);
      add_to(so_far_.data(), share, 2 * k_);
      add_to(static_cast<T*>(a_.grad_emissions) + c_.at(n, first), so_far_.data(), k_);
      if (a_.grad_step_values)
        add_to(static_cast<T*>(a_.grad_step_values) + c_.at(n, first), &so_far_[k_], k_);
      if (tables_.scores) add_to(tables_.scores + s_.segment(n, t, length), share, k_);
      if (tables_.values)
        add_to(tables_.values + a_.segment_places.at(n, t, length), share + k_, k_);
    }
  }

  // Gradients [2, K] of the log weight and the mean of each length.
  void divide_among_lengths(int64_t n, int64_t t) {
    means_.find_lengths(n, t);
    const double *total = means_.total(), *mean = means_.ends(n, t);
    for (int64_t k = 0; k < k_; ++k) inverse_[k] = total[k] > 0 ? 1 / total[k] : 0;
    means_.each_length(n, t, [&](int64_t length, const T* weight, const double* brought) {
      T *grads = &shares_[2 * (length - 1) * k_], *masses = grads + k_;
      for (int64_t k = 0; k < k_; ++k) {
        const double w = double(weight[k]) * inverse_[k], mass = w * double(mass_[k]);
        const double surplus = w > 0 ? brought[k] - mean[k] : 0;
        masses[k] = T(mass);
        grads[k] = T(w * double(grad_[k]) + mass * surplus);
      }
    });
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  const SegmentExpectation& v_;
  const SegmentExpectGrad& a_;
  EdgeCache<T> edges_;
  EdgeSums<T> sums_;
  SegmentTables<T> tables_;
  SegmentMeans<T> means_;
  int64_t k_, kp_;
  int64_t slot_;  // room for a step of all rows, and a bit: no power of two, which caches mind
  Numbers<T> waiting_, em_, pulled_;
  Numbers<T> ring_;             // [rows, L, 2, K]
  Numbers<T> after_;            // [rows, 2, K]: of the step after
  Numbers<T> grad_, mass_;      // [K]: of what ends with a step
  Numbers<T> shares_, so_far_;  // [L, 2, K], [2, K]: of its segments, and summed over them
  std::vector<double> inverse_, w_;
};

}  // namespace

template <class T>
int64_t segment_expect_adjoint(const SegmentChain& s, const SegmentState& f,
                               const SegmentExpectation& v, const SegmentExpectGrad& a) {
  const Chain& c = s.chain;
  const EdgePack<T> pack(c, Sweep::backward, carried_by(v.is_entropy, v.move_values),
                         v.move_values);
  EdgeTotals<T> totals(c, pack, a.grad_transitions, a.grad_move_values, true);
  GroupTables<T> scores(s, s.places(), a.grad_segments);
  GroupTables<T> values(s, a.segment_places, a.grad_segment_values);
  for_groups(c, 4 * cost_of(s), pack, [&](EdgeCache<T> edges, int64_t group) {
    const SegmentTables<T> tables{scores.of(group), values.of(group)};
    return SegmentExpectAdjoint<T>(s, f, v, a, std::move(edges), totals.of(group), tables);
  });
  totals.write();
  scores.write();
  values.write();
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_expect_adjoint,
                         (const SegmentChain& s, const SegmentState& f, const SegmentExpectation& v,
                          const SegmentExpectGrad& a),
                         (s, f, v, a))

}  // namespace structdist
