// What the caller gives to kernels: pointers to contiguous tensors, which it keeps alive. Each
// struct has its twin in library.py. Any change here asks for another `kVersion`, there too.
#pragma once

#include <cstdint>

namespace structdist {

constexpr int64_t kVersion = 2;

// What a sweep carries along edges: nothing, values as given, or their surprisal -log weight.
enum class Carried { nothing, values, surprisal };

// N chains. Entry [i, j] of a transition matrix scores moving from i to j; the strides are 0 where
// all chains, or all steps, share one matrix.
struct Chain {
  int64_t num_chains, num_steps, num_states;
  const void* emissions;    // [N, T, K]
  const void* transitions;  // [K, K], [N, K, K] or [N, T-1, K, K]
  const int64_t* lengths;   // [N]
  int64_t chain_stride, step_stride;
  int64_t num_threads;

  bool shared() const { return chain_stride == 0 && step_stride == 0; }
  // Chains that share their matrix go through it together.
  int64_t rows() const { return shared() ? 4 : 1; }
  int64_t blocks() const { return (num_chains + rows() - 1) / rows(); }
  // Where [n, t] begins in a tensor [N, T, K].
  int64_t at(int64_t n, int64_t t) const { return (n * num_steps + t) * num_states; }
  // Where the edges from step t to t+1 begin, in a tensor of the transitions' form.
  int64_t edge(int64_t n, int64_t t) const { return n * chain_stride + t * step_stride; }
};

// What the forward pass found.
struct Filtered {
  double* log_alpha;  // [N, T, K], the largest of each step 0
  void* weights;      // [N, T, K], in the dtype of the emissions: exp(log_alpha), 0 in the padding
  void* incoming;      // [N, T, K], in the dtype of the emissions: see filter.cpp
  double* log_z;      // [N]
};

// Gradients of the forward pass.
struct FilterGrad {
  const void* upstream;    // [N, T, K], gradient of log_alpha, or none
  const void* grad_log_z;  // [N], or none
  void* grad_emissions;    // [N, T, K], zeroed
  void* after;             // [N, T, K], zeroed: d log_alpha_{t+1} / q_{t+1}. Its product with the
                           // weights gives shared transitions, but for underflowing columns
  void* grad_transitions;  // zeroed. In the form of the transitions; if they are shared, one
                           // matrix a thread, for underflowing columns alone. None of the last
                           // two where that gradient is not wanted
};

// The expectation of values on nodes and edges, or the entropy.
struct Expectation {
  const double* node_values;  // [N, T, K], finite; none for the entropy
  const void* edge_values;    // form of the transitions, or none
  double* mean;               // [N, T, K]: F
  double* value;              // [N]: the expectation

  bool is_entropy() const { return !node_values; }
  double node_value(int64_t at) const { return node_values ? node_values[at] : 0; }
  Carried carried() const {
    if (is_entropy()) return Carried::surprisal;
    return edge_values ? Carried::values : Carried::nothing;
  }
};

// Its gradients. What shared transitions get are products of [N, T, K] factors (zeroed by the
// caller) and the weights p, but for underflowing columns:
// grad transitions = E * (p' u + p_mean' m + V * p' m), grad edge values = E * p' m, V shifted.
struct ExpectGrad {
  const void* grad_value;  // [N]
  void* grad_emissions;    // [N, T, K], zeroed
  void* grad_nodes;        // [N, T, K], zeroed; or none
  void *p_mean, *u, *m;    // none where edges get no gradient
  void* grad_transitions;  // zeroed; one matrix a thread if shared, as in filter.cpp; or none
  void* grad_edge_values;  // likewise
};

// Paths chosen from their last state to their first.
struct Draws {
  int64_t num_samples;
  const void* noise;  // [S, N, T] uniform double; or [S, N, T, K] Gumbel in the chain's dtype, or
                      // none: then the softmax is of the prefixes themselves (relaxed Viterbi)
  const double* prefix;       // [N, T, K]: log_alpha, or the best scores; for relaxed draws
  const double* temperature;  // of the relaxation, with strides over samples and chains, which
  int64_t sample_stride, chain_stride;  // may be 0
  void* soft;                           // [S, N, T, K], zeroed; or none
  int64_t* path;                        // [S, N, T], zeroed

  double temperature_of(int64_t s, int64_t n) const {
    return temperature[s * sample_stride + n * chain_stride];
  }
};

// Gradients through the softmax of each choice, to its logits.
struct SoftGrad {
  const void* grad;        // [S, N, T, K], of soft
  void* grad_prefix;       // [N, T, K], zeroed: the logits', summed over samples
  void* grad_transitions;  // zeroed; form of the transitions, but each matrix transposed; if they
                           // are shared, one matrix a thread; none if not wanted
};

// The best path.
struct Best {
  int64_t* path;       // [N, T], zeroed
  double* score;       // [N]
  double* prefix;      // [N, T, K]: the best score of paths that end in each state
  int32_t* came_from;  // [N, T, K]: the best state before each, from the second step on; or none
};

// Gradients of the best scores.
struct PrefixGrad {
  const int32_t* came_from;  // [N, T, K], as above
  void* grad;                // [N, T, K], in: of the prefixes; out: of the emissions
  void* grad_transitions;    // zeroed; form of the transitions; one matrix a thread if shared;
                             // none if not wanted
};

}  // namespace structdist
