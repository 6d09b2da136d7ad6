// The best segmentation, all in double, and the adjoint of the best scores, which follows the best
// choice before each.
#include "segment_backtrack.h"
#include "segment_lengths.h"

namespace structdist {
namespace {

// Loops over labels [K], of pointers that do not meet: then compilers make vector code of them.

// Keep the better of what was best and another candidate, and which one it is.
inline void keep_better(int64_t num_labels, const double* __restrict candidate, int64_t which,
                        double* __restrict best, int64_t* __restrict from) {
  for (int64_t k = 0; k < num_labels; ++k) {
    const bool better = candidate[k] > best[k];
    best[k] = better ? candidate[k] : best[k];
    from[k] = better ? which : from[k];
  }
}

template <class T>
void add_scores(int64_t num_labels, double* __restrict lead, const T* __restrict emission,
                const T* __restrict score, double* __restrict candidate) {
  for (int64_t k = 0; k < num_labels; ++k) {
    lead[k] += bounded(emission[k]);
    candidate[k] = lead[k] + bounded(score[k]);
  }
}

template <class T>
void add_moves(int64_t num_labels, double before, const T* __restrict score,
               double* __restrict candidate) {
  for (int64_t k = 0; k < num_labels; ++k) candidate[k] = before + bounded(score[k]);
}

template <class T> class SegmentViterbi {
 public:
  SegmentViterbi(const SegmentChain& s, const SegmentState& f, const SegmentBest& out)
      : s_(s),
        c_(s.chain),
        f_(f),
        out_(out),
        backtrack_(s, f),
        k_(c_.num_states),
        lead_(s.longest * k_),
        candidate_(k_),
        from_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      if (out_.score) out_.score[n] = 0;
      if (c_.length(n) > 0) run_chain(n);
    }
  }

 private:
  void run_chain(int64_t n) {
    std::fill_n(f_.begins + c_.at(n, 0), k_, 0.0);
    for (int64_t t = 0; t < c_.length(n); ++t) {
      finish_segments(n, t);
      if (t + 1 < c_.length(n)) begin_segments(n, t);
    }
    if (out_.path) follow(n);
  }

  // Which candidates were best; kept where that is wanted.
  int64_t* from(int64_t kind, int64_t n, int64_t t) {
    const int64_t all = c_.num_chains * c_.num_steps * k_;
    return out_.came_from ? out_.came_from + kind * all + c_.at(n, t) : from_.data();
  }

  void finish_segments(int64_t n, int64_t t) {
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    double* best = f_.ends + c_.at(n, t);
    int64_t* lengths = from(0, n, t);
    std::copy_n(f_.begins + c_.at(n, t), k_, &lead_[t % s_.longest * k_]);
    std::fill_n(best, k_, kMinusInf);
    std::fill_n(lengths, k_, int64_t(1));
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const T* score = static_cast<const T*>(s_.segments) + s_.segment(n, t, length);
      double* lead = &lead_[(t + 1 - length) % s_.longest * k_];
      add_scores(k_, lead, emission, score, candidate_.data());
      keep_better(k_, candidate_.data(), length, best, lengths);
    }
  }

  void begin_segments(int64_t n, int64_t t) {
    const T* scores = static_cast<const T*>(c_.transitions) + c_.edge(n, t);
    const double* ends = f_.ends + c_.at(n, t);
    double* best = f_.begins + c_.at(n, t + 1);
    int64_t* labels = from(1, n, t + 1);
    std::fill_n(best, k_, kMinusInf);
    std::fill_n(labels, k_, int64_t(0));
    for (int64_t i = 0; i < k_; ++i) {
      add_moves(k_, ends[i], scores + i * k_, candidate_.data());
      keep_better(k_, candidate_.data(), i, best, labels);
    }
  }

  void follow(int64_t n) {
    const double* final = f_.ends + c_.at(n, c_.length(n) - 1);
    out_.score[n] = *std::max_element(final, final + k_);
    const auto best = [](const double* logits, int64_t count) {
      return int64_t(std::max_element(logits, logits + count) - logits);
    };
    backtrack_.run(
        n, out_.path + n * c_.num_steps,
        [&](int64_t, double* logits) { return best(logits, k_); },
        [&](int64_t, double* logits, int64_t count) { return best(logits, count); });
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  const SegmentBest& out_;
  SegmentBacktrack<T> backtrack_;
  int64_t k_;
  std::vector<double> lead_, candidate_;  // [L, K], [K]
  std::vector<int64_t> from_;
};

template <class T> class SegmentPrefixAdjoint {
 public:
  SegmentPrefixAdjoint(const SegmentChain& s, const SegmentPrefixGrad& a, T* sums, T* table)
      : s_(s), c_(s.chain), a_(a), sums_(sums), table_(table), k_(c_.num_states) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t t = c_.length(n) - 1; t >= 0; --t) {
        if (t + 1 < c_.length(n)) pull_moves(n, t);
        pull_lengths(n, t);
        pull_single(n, t);
      }
  }

 private:
  T* ends(int64_t n, int64_t t) const { return static_cast<T*>(a_.grad_ends) + c_.at(n, t); }
  T* begins(int64_t n, int64_t t) const { return static_cast<T*>(a_.grad_begins) + c_.at(n, t); }
  const int64_t* from(int64_t kind, int64_t n, int64_t t) const {
    return a_.came_from + kind * c_.num_chains * c_.num_steps * k_ + c_.at(n, t);
  }

  void pull_moves(int64_t n, int64_t t) const {
    const T* after = begins(n, t + 1);
    const int64_t* label = from(1, n, t + 1);
    T* before = ends(n, t);
    for (int64_t j = 0; j < k_; ++j) before[label[j]] += after[j];
    if (!a_.grad_transitions) return;
    T* edges = sums_ ? sums_ : static_cast<T*>(a_.grad_transitions) + c_.edge(n, t);
    const int64_t stride = sums_ ? padded<T>(k_) : k_;
    for (int64_t j = 0; j < k_; ++j) edges[label[j] * stride + j] += after[j];
  }

  void pull_lengths(int64_t n, int64_t t) const {
    const T* grad = ends(n, t);
    const int64_t* length = from(0, n, t);
    for (int64_t k = 0; k < k_; ++k)
      if (grad[k] != 0) {
        add_to_segment(n, t, length[k], k, grad[k]);
        add_to_steps(n, t + 1 - length[k], t + 1, k, grad[k]);
      }
  }

  // What the lengths of the segment that was chosen get besides.
  void pull_single(int64_t n, int64_t t) const {
    const int64_t at = n * c_.num_steps + t, label = a_.labels[at];
    const T* of_lengths = static_cast<const T*>(a_.of_lengths) + at * s_.longest;
    T so_far = 0;
    for (int64_t length = s_.lengths_at(t); length > 0; --length) {
      const T share = of_lengths[length - 1];
      so_far += share;
      const int64_t first = t + 1 - length;
      add_to_segment(n, t, length, label, share);
      add_to_steps(n, first, first + 1, label, so_far);
    }
  }

  void add_to_segment(int64_t n, int64_t t, int64_t length, int64_t k, T grad) const {
    begins(n, t + 1 - length)[k] += grad;
    if (table_) table_[s_.segment(n, t, length) + k] += grad;
  }

  void add_to_steps(int64_t n, int64_t first, int64_t end, int64_t k, T grad) const {
    T* steps = static_cast<T*>(a_.grad_emissions) + c_.at(n, 0) + k;
    for (int64_t t = first; t < end; ++t) steps[t * k_] += grad;
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentPrefixGrad& a_;
  T* sums_;   // [K, Kp], of this group, where transitions are shared; or none
  T* table_;  // [L, K] of this group, or all gradients of segments; or none
  int64_t k_;
};

}  // namespace

template <class T>
int64_t segment_viterbi(const SegmentChain& s, const SegmentState& f, const SegmentBest& out) {
  for_groups(s.chain, 4 * cost_of(s), [&](int64_t) { return SegmentViterbi<T>(s, f, out); });
  return 0;
}

template <class T>
int64_t segment_prefix_adjoint(const SegmentChain& s, const SegmentPrefixGrad& a) {
  GroupSums<T> sums(s.chain, a.grad_transitions);
  GroupTables<T> tables(s, s.places(), a.grad_segments);
  for_groups(s.chain, 0.5, [&](int64_t group) {
    return SegmentPrefixAdjoint<T>(s, a, sums.of(group), tables.of(group));
  });
  sums.add_to(a.grad_transitions);
  tables.write();
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_viterbi,
                         (const SegmentChain& s, const SegmentState& f, const SegmentBest& b),
                         (s, f, b))
STRUCTDIST_EXPORT_KERNEL(segment_prefix_adjoint,
                         (const SegmentChain& s, const SegmentPrefixGrad& a), (s, a))

}  // namespace structdist
