// What the caller gives to kernels: pointers to contiguous tensors, which it keeps alive. Each
// struct has its twin in library.py. Any change here asks for another `kVersion`, there too.
//
// Outputs need not be initialised: kernels write all of them, zeros in the padding.
#pragma once

#include <cstdint>

namespace structdist {

constexpr int64_t kVersion = 7;

// N chains. Entry [i, j] of a transition matrix scores moving from i to j; the strides are 0 where
// all chains, or all steps, share one matrix.
struct Chain {
  int64_t num_chains, num_steps, num_states;
  const void* emissions;    // [N, T, K]
  const void* transitions;  // [K, K], [N, K, K] or [N, T-1, K, K]
  const int64_t* lengths;   // [N]; out of range they count as 0 or T
  int64_t chain_stride, step_stride;
  int64_t num_threads;  // at most

  // Numbers of a step in a tensor whose rows are padded to Kp, a multiple of 32 bytes.
  template <class T> int64_t padded_states() const {
    const int64_t lanes = 32 / sizeof(T);
    return (num_states + lanes - 1) / lanes * lanes;
  }
  // Where [n, t] begins in a tensor [N, T, Kp], padded as rows of T are.
  template <class T> int64_t row(int64_t n, int64_t t) const {
    return (n * num_steps + t) * padded_states<T>();
  }
  bool shared() const { return chain_stride == 0 && step_stride == 0; }
  // Chains that share their matrix go through it together.
  int64_t rows() const { return shared() ? 4 : 1; }
  int64_t blocks() const { return (num_chains + rows() - 1) / rows(); }
  int64_t length(int64_t n) const {
    const int64_t given = lengths[n];
    return given < 0 ? 0 : given > num_steps ? num_steps : given;
  }
  // Steps whose outer products are made together: not more than 40, and all chunks alike.
  int64_t chunk_of_edges() const {
    const int64_t edges = num_steps > 1 ? num_steps - 1 : 1, chunks = (edges + 39) / 40;
    return (edges + chunks - 1) / chunks;
  }
  // Where [n, t] begins in a tensor [N, T, K].
  int64_t at(int64_t n, int64_t t) const { return (n * num_steps + t) * num_states; }
  // Where the edges from step t to t+1 begin, in a tensor of the transitions' form.
  int64_t edge(int64_t n, int64_t t) const { return n * chain_stride + t * step_stride; }
};

// What the forward pass leaves with the caller, who knows no more of it than its size, and that log Z
// [N] stands first. A chain in which a sum underflowed, and every chain with transitions of its own,
// is *in log space*: only it has log_alpha.
struct State {
  void* memory;
  double* log_alpha;  // [N, T, K], log weights of prefixes; or none
};

// The same with its parts.
struct Filtered {
  double* log_z;          // [N]
  void* weights;          // [N, T, Kp], in the dtype of the emissions: exp(log_alpha), 0 beyond K
  void* incoming;         // [N, T, Kp], in the dtype of the emissions: see filter.cpp; but step 0
  double* shift;          // [N, T]: what was taken off the log weights of a step
  uint8_t* in_log_space;  // [N]
  double* log_alpha;

  // `_bytes_of_state` in __init__.py adds up the same sizes.
  template <class T> static Filtered of(const Chain& c, const State& s) {
    if (!s.memory) return {};  // relaxed Viterbi needs none
    char* at = static_cast<char*>(s.memory);
    const auto next = [&at](int64_t bytes) { return (at += bytes) - bytes; };
    const int64_t steps = c.num_chains * c.num_steps;
    const int64_t rows = steps * c.padded_states<T>() * int64_t(sizeof(T));
    Filtered f;
    f.log_z = reinterpret_cast<double*>(next((8 * c.num_chains + 63) / 64 * 64));
    f.weights = next(rows);
    f.incoming = next(rows);
    f.shift = reinterpret_cast<double*>(next(8 * steps));
    f.in_log_space = reinterpret_cast<uint8_t*>(next(c.num_chains));
    f.log_alpha = s.log_alpha;
    return f;
  }
};

// Gradients of the forward pass.
struct FilterGrad {
  const void* upstream;    // [N, T, K], gradient of log_alpha, or none
  const void* grad_log_z;  // [N], or none
  void* grad_emissions;    // [N, T, K]
  void* grad_transitions;  // in the form of the transitions; or none
};

// Probabilities of moves, from those of states.
struct EdgeMarginals {
  const void* nodes;  // [N, T, K]
  void* edges;        // [N, T-1, K, K]
};

// The expectation of values on nodes and edges, or the entropy.
struct Expectation {
  const double* node_values;  // [N, T, K], finite; none for the entropy
  const void* edge_values;    // form of the transitions, or none
  void* p_mean;               // [N, T, Kp]: see `weigh` in expect.cpp
  void* ratio;                // [N, T, Kp]: R less pivot and shift; but step 0
  double* mean;               // [N, T, Kp]: F, of chains in log space; none if there is no such
  double* value;              // [N]: the expectation

  bool is_entropy() const { return !node_values; }
  double node_value(int64_t at) const { return node_values ? node_values[at] : 0; }
};

// Its gradients.
struct ExpectGrad {
  const void* grad_value;  // [N]
  void* grad_emissions;    // [N, T, K]
  void* grad_nodes;        // [N, T, K], or none
  void* grad_transitions;  // form of the transitions; or none
  void* grad_edge_values;  // likewise; not without grad_transitions
};

// Paths chosen from their last state to their first.
struct Draws {
  int64_t num_samples;
  const void* noise;  // [S, N, T] uniform double; or [S, N, T, K] Gumbel in the chain's dtype, or
                      // none: then the softmax is of the prefixes themselves (relaxed Viterbi)
  const double* prefix;       // [N, T, K]: the best scores; or none: those of the forward pass
  const double* temperature;  // of the relaxation, with strides over samples and chains, which
  int64_t sample_stride, chain_stride;  // may be 0
  void* soft;                           // [S, N, T, K]; or none
  int64_t* path;                        // [S, N, T]

  double temperature_of(int64_t s, int64_t n) const {
    return temperature[s * sample_stride + n * chain_stride];
  }
};

// Gradients through the softmax of each choice, to its logits.
struct SoftGrad {
  const void* grad;        // [S, N, T, K], of soft
  void* grad_prefix;       // [N, T, K]: the logits', summed over samples
  void* grad_transitions;  // form of the transitions; or none
};

// Paths that are given. States out of range make no path of them, and get no gradient.
struct Paths {
  int64_t num_samples;
  const int64_t* paths;    // [S, N, T]
  double* scores;          // [S, N]
  const void* grad;        // [S, N], of the scores, 0 for what is no path
  void* grad_emissions;    // [N, T, K]; or none
  void* grad_transitions;  // form of the transitions; or none

  int64_t at(const Chain& c, int64_t s, int64_t n) const {
    return (s * c.num_chains + n) * c.num_steps;
  }
};

// The best path.
struct Best {
  int64_t* path;       // [N, T]
  double* score;       // [N]
  double* prefix;      // [N, T, K]: the best score of paths that end in each state
  int32_t* came_from;  // [N, T, K]: the best state before each, from the second step on; or none
};

// Gradients of the best scores.
struct PrefixGrad {
  const int32_t* came_from;  // [N, T, K], as above
  void* grad;                // [N, T, K], in: of the prefixes; out: of the emissions
  void* grad_transitions;    // form of the transitions, added to; or none
};

}  // namespace structdist
