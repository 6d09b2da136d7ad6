// Scores of given segmentations, and their adjoint: each part of a path gets the gradient of its
// path. A path says k where a segment of label k begins, and K + k where it goes on.
#include "segment_lengths.h"

namespace structdist {
namespace {

// Calls step(t, label) for each step, move(t, from, to) for each pair of neighbours, the latter of
// which begins at t, and segment(t, length, label) for each segment with last step t. False, with
// some calls made or none, if this is no segmentation.
template <class Step, class Move, class Segment>
bool read_path(const SegmentChain& s, int64_t length, const int64_t* path, Step step, Move move,
               Segment segment) {
  const int64_t k = s.chain.num_states;
  int64_t label = -1, size = 0;
  for (int64_t t = 0; t < length; ++t) {
    if (path[t] < 0 || path[t] >= 2 * k) return false;
    const int64_t here = path[t] % k;
    if (path[t] >= k) {
      if (here != label || ++size > s.longest) return false;
    } else {
      if (t > 0) segment(t - 1, size, label), move(t, label, here);
      label = here, size = 1;
    }
    step(t, here);
  }
  if (length > 0) segment(length - 1, size, label);
  return true;
}

template <class T> class ScoreSegments {
 public:
  ScoreSegments(const SegmentChain& s, const SegmentPaths& p) : s_(s), c_(s.chain), p_(p) {}

  void run(int64_t index) const {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t sample = 0; sample < p_.num_samples; ++sample) {
        const int64_t at = sample * c_.num_chains + n;
        p_.scores[at] = score(n, p_.paths + at * c_.num_steps);
      }
  }

 private:
  double score(int64_t n, const int64_t* path) const {
    const T* emissions = static_cast<const T*>(c_.emissions);
    const T* transitions = static_cast<const T*>(c_.transitions);
    const T* segments = static_cast<const T*>(s_.segments);
    const int64_t k = c_.num_states;
    double sum = 0;
    const bool is_path = read_path(
        s_, c_.length(n), path,
        [&](int64_t t, int64_t label) { sum += bounded(emissions[c_.at(n, t) + label]); },
        [&](int64_t t, int64_t from, int64_t to) {
          sum += bounded(transitions[c_.edge(n, t - 1) + from * k + to]);
        },
        [&](int64_t t, int64_t length, int64_t label) {
          sum += bounded(segments[s_.segment(n, t, length) + label]);
        });
    return is_path ? sum : kMinusInf;
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentPaths& p_;
};

template <class T> class SpreadOverSegments {
 public:
  SpreadOverSegments(const SegmentChain& s, const SegmentPaths& p, T* sums, T* table)
      : s_(s), c_(s.chain), p_(p), sums_(sums), table_(table) {}

  void run(int64_t index) const {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t sample = 0; sample < p_.num_samples; ++sample) {
        const int64_t at = sample * c_.num_chains + n;
        const T grad = static_cast<const T*>(p_.grad)[at];
        if (grad != 0) spread(n, p_.paths + at * c_.num_steps, grad);
      }
  }

 private:
  void spread(int64_t n, const int64_t* path, T grad) const {
    T* emissions = static_cast<T*>(p_.grad_emissions);
    T* own = static_cast<T*>(p_.grad_transitions);
    const int64_t k = c_.num_states;
    read_path(
        s_, c_.length(n), path,
        [&](int64_t t, int64_t label) {
          if (emissions) emissions[c_.at(n, t) + label] += grad;
        },
        [&](int64_t t, int64_t from, int64_t to) {
          if (sums_)
            sums_[from * padded<T>(k) + to] += grad;
          else if (own)
            own[c_.edge(n, t - 1) + from * k + to] += grad;
        },
        [&](int64_t t, int64_t length, int64_t label) {
          if (table_) table_[s_.segment(n, t, length) + label] += grad;
        });
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentPaths& p_;
  T* sums_;   // [K, Kp], of this group, where transitions are shared; or none
  T* table_;  // [L, K] of this group, or all gradients of segments; or none
};

}  // namespace

template <class T> int64_t segment_scores(const SegmentChain& s, const SegmentPaths& p) {
  for_groups(s.chain, 0.01 * double(p.num_samples),
             [&](int64_t) { return ScoreSegments<T>(s, p); });
  return 0;
}

template <class T> int64_t segment_scores_adjoint(const SegmentChain& s, const SegmentPaths& p) {
  GroupSums<T> sums(s.chain, p.grad_transitions);
  GroupTables<T> tables(s, s.places(), p.grad_segments);
  for_groups(s.chain, 0.01 * double(p.num_samples), [&](int64_t group) {
    return SpreadOverSegments<T>(s, p, sums.of(group), tables.of(group));
  });
  sums.add_to(p.grad_transitions);
  tables.write();
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_scores, (const SegmentChain& s, const SegmentPaths& p), (s, p))
STRUCTDIST_EXPORT_KERNEL(segment_scores_adjoint, (const SegmentChain& s, const SegmentPaths& p),
                         (s, p))

}  // namespace structdist
