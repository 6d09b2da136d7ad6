// The best path: a max-plus product a step, all in double, vectorised over the state moved to.
#include "chain.h"

namespace structdist {
namespace {

// Mirrors `_Best` in native.py.
struct Best {
  int64_t* path;  // [N, T], zeroed
  double* score;  // [N]
};

template <class T> class Viterbi {
 public:
  Viterbi(const Chain& c, const Best& out)
      : c_(c), out_(out), k_(c.num_states), score_(k_), next_(k_), from_(c.num_steps * k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) out_.score[n] = 0;
    block.each(0, [&](int64_t n, int64_t) { run_chain(n); });
  }

 private:
  void run_chain(int64_t n) {
    const T* emissions = static_cast<const T*>(c_.emissions) + c_.at(n, 0);
    std::copy_n(emissions, k_, score_.data());
    for (int64_t t = 1; t < c_.lengths[n]; ++t) {
      const T* scores = static_cast<const T*>(c_.transitions) + n * c_.chain_stride +
                        (t - 1) * c_.step_stride;
      step(scores, emissions + t * k_, &from_[t * k_]);
    }
    follow(n);
  }

  void step(const T* scores, const T* emission, int64_t* from) {
    std::fill(next_.begin(), next_.end(), kMinusInf);
    std::fill_n(from, k_, 0);
    for (int64_t i = 0; i < k_; ++i) {
      const T* row = scores + i * k_;
      const double so_far = score_[i];
      double* next = next_.data();
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
    for (int64_t t = last; t > 0; --t) path[t - 1] = from_[t * k_ + path[t]];
  }

  const Chain& c_;
  const Best& out_;
  int64_t k_;
  std::vector<double> score_, next_;
  std::vector<int64_t> from_;  // [T, K]: the best state before each
};

template <class T> void viterbi(const Chain& c, const Best& out) {
  for_blocks<T>(c, nullptr, [&](const Edges<T>*, int64_t) { return Viterbi<T>(c, out); });
}

}  // namespace

STRUCTDIST_EXPORT void viterbi_float(const Chain& c, const Best& b) { viterbi<float>(c, b); }
STRUCTDIST_EXPORT void viterbi_double(const Chain& c, const Best& b) { viterbi<double>(c, b); }

}  // namespace structdist
