// What kernels of semi-Markov chains are given, beside arguments.h. Twins are in
// ops/semi_markov/native/arguments.py.
#pragma once

#include "chain.h"

namespace structdist {

constexpr int64_t kSegmentVersion = 3;

// Where what belongs to segments stands: by chain, first step and length, then by label. Strides
// are 0 where it is shared.
struct SegmentPlaces {
  int64_t chain_stride, step_stride, length_stride;

  bool shared() const { return chain_stride == 0 && step_stride == 0; }
  // Of segments of `length` that end with step t.
  int64_t at(int64_t n, int64_t t, int64_t length) const {
    return n * chain_stride + (t + 1 - length) * step_stride + (length - 1) * length_stride;
  }
};

// N chains that are tiled by segments of a label and a length in 1..L. The strides of segments are
// 0 where all chains, or all first steps, share them.
struct SegmentChain {
  Chain chain;
  int64_t longest;
  const void* segments;  // [L, K], [N, L, K] or [N, T, L, K]
  int64_t chain_stride, step_stride;

  SegmentPlaces places() const { return {chain_stride, step_stride, chain.num_states}; }
  int64_t table() const { return longest * chain.num_states; }
  // How many lengths a segment may have whose last step is t.
  int64_t lengths_at(int64_t t) const { return std::min(longest, t + 1); }
  // Where the scores of segments of `length` that end with step t begin.
  int64_t segment(int64_t n, int64_t t, int64_t length) const {
    return places().at(n, t, length);
  }
};

// What the forward pass found; see ops/semi_markov/rescaled/__init__.py. All are [N, T, K] but
// where said otherwise, unpadded; 0 beyond the lengths, sums 1.
struct SegmentState {
  double *ends, *begins;
  double* norms;    // [N, T]
  void* weights;    // exp of ends, the largest of each step 1
  void* incoming;   // sums over the labels before, but step 0
  double* log_z;    // [N]
};

// Gradients of the forward pass.
struct SegmentGrad {
  const void* upstream;    // [N, T, K], of ends; or none
  const void* grad_log_z;  // [N]; or none
  int64_t num_samples;     // of what else single segments get
  const void* of_lengths;  // [S, N, T, L], by last step; or none
  const int64_t* labels;   // [S, N, T]: to which label that belongs
  void* grad_emissions;    // [N, T, K]
  void* grad_begins;       // [N, T, K]
  void* grad_transitions;  // in the form of the transitions, zeros; or none
  void* grad_segments;     // in the form of the segments, zeros; or none
};

// Segments chosen from last to first.
struct SegmentDraws {
  int64_t num_samples;
  const void* noise;  // [S, N, T] uniform double; or [S, N, T, K + L] Gumbel in the chain's dtype,
                      // or none
  const double* temperature;            // of the relaxation, with strides over samples and chains,
  int64_t sample_stride, chain_stride;  // which may be 0
  void* soft;                           // [S, N, T, K + L]; or none
  int64_t* path;                        // [S, N, T]
};

// Gradients through the softmax of each choice, to its logits.
struct SegmentSoftGrad {
  const void* grad;        // [S, N, T, K + L], of soft
  void* grad_ends;         // [N, T, K]: of labels, summed over samples
  void* grad_lengths;      // [S, N, T, L]: of lengths, given the label that was chosen
  void* grad_transitions;  // in the form of the transitions, of moves between choices; or none
};

// Relaxed events, from the choices they are made of.
struct SegmentEvents {
  int64_t num_draws, num_steps, longest, num_labels;
  int64_t num_threads;  // at most
  const void* soft;     // [draws, T, K + L]
  void* events;         // [draws, T, L, K]

  int64_t size() const { return num_steps * longest * num_labels; }
  int64_t lengths_at(int64_t t) const { return std::min(longest, t + 1); }
  // Where segments of `length` that end with step t begin, in the event of a draw.
  int64_t at(int64_t t, int64_t length) const {
    return ((t + 1 - length) * longest + length - 1) * num_labels;
  }
  // A thread for each 0.1 ms or so.
  int64_t worthwhile_threads() const {
    return std::max<int64_t>(1, std::min(num_threads, num_draws * size() >> 18));
  }
};

struct SegmentEventGrad {
  const void* grad_events;  // [draws, T, L, K]
  void* grad_soft;          // [draws, T, K + L]
};

// The expectation of values on steps, moves and segments, or the entropy; see segment_expect.cpp.
struct SegmentExpectation {
  int64_t is_entropy;          // then there are no values
  const void* step_values;     // [N, T, K], or none
  const void* move_values;     // in the form of the transitions, or none
  const void* segment_values;  // in any form, or none
  SegmentPlaces segment_places;
  double* ends;    // [N, T, K]: means of what ends with each step
  double* begins;  // [N, T, K]: means of what may stand before a segment from there on
  double* value;   // [N]
};

// Its gradients; zeros, but those of transitions and of values on them.
struct SegmentExpectGrad {
  const void* grad_value;     // [N]
  void* grad_emissions;       // [N, T, K]
  void* grad_transitions;     // in the form of the transitions; or none
  void* grad_segments;        // in the form of the segments; or none
  void* grad_step_values;     // [N, T, K]; or none
  void* grad_move_values;     // in the form of the transitions, not without theirs; or none
  void* grad_segment_values;  // in the form of those values; or none
  SegmentPlaces segment_places;
};

// The best segmentation: its prefixes, as the forward pass has them, with norms that are 0.
struct SegmentBest {
  int64_t* path;       // [N, T], zeros; or none
  double* score;       // [N]; or none
  int64_t* came_from;  // [2, N, T, K]: the best length of what ends with each step, and the best
                       // label before what begins there, but step 0; or none
};

// Gradients of its prefixes.
struct SegmentPrefixGrad {
  const int64_t* came_from;  // as above
  const void* of_lengths;    // [N, T, L], by last step
  const int64_t* labels;     // [N, T]: to which label that belongs
  void* grad_ends;           // [N, T, K]; used up
  void* grad_begins;         // [N, T, K], zeros; used up
  void* grad_emissions;      // [N, T, K], zeros
  void* grad_transitions;    // in the form of the transitions, added to; or none
  void* grad_segments;       // in the form of the segments, zeros; or none
};

// Segmentations that are given. What is none gets no gradient.
struct SegmentPaths {
  int64_t num_samples;
  const int64_t* paths;    // [S, N, T]
  double* scores;          // [S, N]
  const void* grad;        // [S, N], of the scores, 0 for what is no path
  void* grad_emissions;    // [N, T, K], zeros; or none
  void* grad_transitions;  // in the form of the transitions, zeros; or none
  void* grad_segments;     // in the form of the segments, zeros; or none
};

// Nodes of linear chains, and segments of one step. The strides of segments are 0 where chains, or
// steps, share them.
struct SegmentNodes {
  int64_t num_chains, num_steps, num_labels;
  const void* nodes;     // [N, T, K]
  const void* segments;  // [K], [N, K] or [N, T, K]; or none
  int64_t chain_stride, step_stride;
  void* out;  // [N, T, K]; or of the form of segments
};

// 0 in place of the largest of nothing.
inline void zero_where_empty(double* peak, int64_t num_labels) {
  for (int64_t k = 0; k < num_labels; ++k) peak[k] = peak[k] == kMinusInf ? 0 : peak[k];
}

// How much a step costs, in matrix products of K x K.
inline double cost_of(const SegmentChain& s) {
  return 1 + 12 * double(s.longest) / double(s.chain.num_states);
}

}  // namespace structdist
