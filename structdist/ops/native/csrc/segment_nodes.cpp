// Semi-Markov chains with L = 1 as linear chains: scores of nodes, and what segments get of their
// gradient. A pass over memory each, for which a call of torch would wake threads.
#include "segments.h"

namespace structdist {
namespace {

// The sum of scores, and the largest number where it would overflow: only -inf forbids.
template <class T>
void add_finite(int64_t count, const T* __restrict left, const T* __restrict right,
                T* __restrict out) {
  constexpr T most = std::numeric_limits<T>::max();
  for (int64_t k = 0; k < count; ++k) {
    const T sum = left[k] + right[k];
    const bool finite = std::abs(left[k]) <= most && std::abs(right[k]) <= most;
    const T within = sum > most ? most : sum < -most ? -most : sum;
    out[k] = finite ? within : sum;
  }
}

}  // namespace

template <class T> int64_t scores_of_nodes(const SegmentNodes& x) {
  const int64_t k = x.num_labels;
  for (int64_t n = 0; n < x.num_chains; ++n)
    for (int64_t t = 0; t < x.num_steps; ++t) {
      const int64_t at = (n * x.num_steps + t) * k;
      const T* own = static_cast<const T*>(x.segments) + n * x.chain_stride + t * x.step_stride;
      add_finite(k, static_cast<const T*>(x.nodes) + at, own, static_cast<T*>(x.out) + at);
    }
  return 0;
}

// In double; of each chain, or of all where they share their segments.
template <class T> int64_t sum_over_steps(const SegmentNodes& x) {
  const int64_t k = x.num_labels;
  std::vector<double> sum(k, 0.0);
  double* __restrict total = sum.data();
  for (int64_t n = 0; n < x.num_chains; ++n) {
    if (x.chain_stride) std::fill_n(total, k, 0.0);
    for (int64_t t = 0; t < x.num_steps; ++t) {
      const T* __restrict node = static_cast<const T*>(x.nodes) + (n * x.num_steps + t) * k;
      for (int64_t i = 0; i < k; ++i) total[i] += double(node[i]);
    }
    std::copy_n(total, k, static_cast<T*>(x.out) + n * x.chain_stride);
  }
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(scores_of_nodes, (const SegmentNodes& x), (x))
STRUCTDIST_EXPORT_KERNEL(sum_over_steps, (const SegmentNodes& x), (x))

}  // namespace structdist
