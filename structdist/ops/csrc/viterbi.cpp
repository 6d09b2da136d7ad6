// The best path: a max-plus product a step, all in double, vectorised over the state moved to.
// And the adjoint of the best scores, which follows the best state before each.
#include "chain.h"

namespace structdist {
namespace {

// Mirrors `_Best` in native.py.
struct Best {
  int64_t* path;       // [N, T], zeroed
  double* score;       // [N]
  int32_t* came_from;  // [N, T, K]: the best state before each, from the second step on
  double* prefix;      // [N, T, K]: the best score of paths that end in each state; or none
};

template <class T> class Viterbi {
 public:
  Viterbi(const Chain& c, const Best& out)
      : c_(c), out_(out), k_(c.num_states), score_(k_), next_(k_), from_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) out_.score[n] = 0;
    block.each(0, [&](int64_t n, int64_t) { run_chain(n); });
  }

 private:
  void run_chain(int64_t n) {
    const T* emissions = static_cast<const T*>(c_.emissions) + c_.at(n, 0);
    const T* transitions = static_cast<const T*>(c_.transitions);
    std::copy_n(emissions, k_, score_.data());
    keep_prefix(n, 0);
    for (int64_t t = 1; t < c_.lengths[n]; ++t) {
      step(transitions + c_.edge(n, t - 1), emissions + t * k_);
      std::copy_n(from_.data(), k_, out_.came_from + c_.at(n, t));
      keep_prefix(n, t);
    }
    follow(n);
  }

  void keep_prefix(int64_t n, int64_t t) const {
    if (out_.prefix) std::copy_n(score_.data(), k_, out_.prefix + c_.at(n, t));
  }

  void step(const T* scores, const T* emission) {
    std::fill(next_.begin(), next_.end(), kMinusInf);
    std::fill(from_.begin(), from_.end(), 0);
    for (int64_t i = 0; i < k_; ++i) {
      const T* row = scores + i * k_;
      const double so_far = score_[i];
      double* next = next_.data();
      int64_t* from = from_.data();
      for (int64_t j = 0; j < k_; ++j) {
        const double candidate = so_far + double(row[j]);
        const bool better = candidate > next[j];
        next[j] = better ? candidate : next[j];
        from[j] = better ? i : from[j];
      }
    }
    for (int64_t j = 0; j < k_; ++j) score_[j] = next_[j] + double(emission[j]);
  }

  void follow(int64_t n) {
    const int64_t last = c_.lengths[n] - 1;
    int64_t* path = out_.path + n * c_.num_steps;
    path[last] = std::max_element(score_.begin(), score_.end()) - score_.begin();
    out_.score[n] = score_[path[last]];
    for (int64_t t = last; t > 0; --t) path[t - 1] = out_.came_from[c_.at(n, t) + path[t]];
  }

  const Chain& c_;
  const Best& out_;
  int64_t k_;
  std::vector<double> score_, next_;
  std::vector<int64_t> from_;
};

// Mirrors `_PrefixGrad` in native.py.
struct PrefixGrad {
  const int32_t* came_from;  // [N, T, K], as above
  void* grad;              // [N, T, K], in: of the prefixes; out: of the emissions
  void* grad_transitions;  // zeroed; form of the transitions; one matrix a thread if shared
};

template <class T> class PrefixAdjoint {
 public:
  PrefixAdjoint(const Chain& c, const PrefixGrad& a, int64_t thread)
      : c_(c), a_(a), thread_(thread), k_(c.num_states) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t t = block.longest - 1; t > 0; --t)
      block.each(t, [&](int64_t n, int64_t) { step_back(n, t); });
  }

 private:
  void step_back(int64_t n, int64_t t) const {
    T* grad = static_cast<T*>(a_.grad);
    const T* here = grad + c_.at(n, t);
    T* before = grad + c_.at(n, t - 1);
    const int32_t* from = a_.came_from + c_.at(n, t);
    const int64_t matrix = c_.shared() ? thread_ * k_ * k_ : c_.edge(n, t - 1);
    T* edges = static_cast<T*>(a_.grad_transitions) + matrix;
    for (int64_t j = 0; j < k_; ++j) {
      before[from[j]] += here[j];
      edges[from[j] * k_ + j] += here[j];
    }
  }

  const Chain& c_;
  const PrefixGrad& a_;
  int64_t thread_, k_;
};

}  // namespace

template <class T> void viterbi(const Chain& c, const Best& out) {
  for_blocks(c, [&](int64_t) { return Viterbi<T>(c, out); });
}

template <class T> void prefix_adjoint(const Chain& c, const PrefixGrad& a) {
  for_blocks(c, [&](int64_t thread) { return PrefixAdjoint<T>(c, a, thread); });
}

STRUCTDIST_EXPORT_KERNEL(viterbi, (const Chain& c, const Best& b), (c, b))
STRUCTDIST_EXPORT_KERNEL(prefix_adjoint, (const Chain& c, const PrefixGrad& a), (c, a))

}  // namespace structdist
