// The forward pass, and its adjoint.
//
// With P_t the weights of prefixes by their last state and E the scaled exp of the transitions, the
// mass that comes into state j at step t+1 is q_j = sum_i P_i E_ij: a matrix product. Then
//     P_{t+1}(j) = q_j exp(emission_{t+1}(j) + column_peak_j - shift_{t+1}),
// where the shift makes the largest weight a number in [1, 2): the largest of what stands in the
// exponent, and a power of two, which costs no digit. log Z is the sum of shifts and of the log of
// the last weights' sum. No other logarithm is taken.
//
// Weights below 1e-38 (in float) become 0, and matter only where a later sum consists of them
// alone. Such a sum is below `trust`. A chain in which that happens is done again *in log space*:
// log_alpha = log P in double, and every column whose q_j is below `trust` as a log-sum-exp. So the
// result is as good as log-sum-exp always.
//
// The adjoint follows w_ij = P_i E_ij / q_j, the probability of i given j after it:
//     d log P_t(i) = upstream_t(i) + P_i sum_j E_ij (d log P_{t+1}(j) / q_j),
// and transitions that all chains share get E * sum_t P_t' (d log P_{t+1} / q_{t+1}).
#include "chain.h"

namespace structdist {
namespace {

constexpr double kLog2 = 0.693147180559945309417;
constexpr int64_t kChunk = 32;  // steps whose exponentials are made together

// What is found wrong with chains: how many want log space, and how many have no allowed path.
struct Findings {
  std::atomic<int64_t> underflowed{0}, impossible{0};
  int64_t packed() const { return underflowed + (impossible << 32); }
};

template <class T> class Filter {
 public:
  Filter(const Chain& c, const Filtered& f, const Edges<T>& edges, Findings& findings)
      : c_(c),
        f_(f),
        edges_(edges),
        findings_(findings),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        p_(c.rows() * kp_, T(0)),
        q_(c.rows() * kp_),
        boost_(c.rows() * kChunk * kp_),
        shift_(c.rows() * kChunk),
        sums_(kp_, kMinusInf) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) {
      f_.log_z[n] = 0;
      f_.in_log_space[n] = 0;
    }
    for (int64_t begin = 0; begin < block.longest; begin += kChunk) {
      const int64_t end = std::min(begin + kChunk, block.longest);
      block.each(begin, [&](int64_t n, int64_t row) { prepare(n, begin, row); });
      for (int64_t t = begin; t < end; ++t) {
        if (t == 0) {
          block.each(0, [&](int64_t n, int64_t row) { begin_with(n, row); });
          continue;
        }
        times(c_.rows(), p_.data(), edges_.weight, q_.data(), k_, kp_);
        block.each(t, [&](int64_t n, int64_t row) { step(n, t, row); });
      }
    }
    block.each(0, [&](int64_t n, int64_t) { finish(n); });
  }

 private:
  // For a chunk of steps: exp(emission + column_peak - m), m the largest exponent of each step.
  void prepare(int64_t n, int64_t begin, int64_t row) {
    const int64_t end = std::min(begin + kChunk, c_.length(n));
    for (int64_t t = begin; t < end; ++t) {
      const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
      const double* peak = edges_.column_peak.data();
      double* sums = sums_.data();
      if (t == 0)
        for (int64_t j = 0; j < k_; ++j) sums[j] = bounded(emission[j]);
      else
        for (int64_t j = 0; j < k_; ++j) sums[j] = bounded(emission[j]) + peak[j];
      const double largest = max_of(sums, kp_);
      const double m = largest > kMinusInf ? largest : 0;
      T* boost = &boost_[(row * kChunk + t - begin) * kp_];
      for (int64_t j = 0; j < kp_; ++j) boost[j] = T(sums[j] - m);
      shift_[row * kChunk + t - begin] = m;
    }
    T* boost = &boost_[row * kChunk * kp_];  // one long loop: short ones wait for their last vector
    for (int64_t j = 0; j < (end - begin) * kp_; ++j) boost[j] = fast_exp<T>(boost[j]);
  }

  void begin_with(int64_t n, int64_t row) {
    copy_row(&boost_[row * kChunk * kp_], &p_[row * kp_], kp_);
    copy_row(&p_[row * kp_], static_cast<T*>(f_.weights) + c_.row<T>(n, 0), kp_);
    f_.log_z[n] = f_.shift[n * c_.num_steps] = shift_[row * kChunk];
  }

  void step(int64_t n, int64_t t, int64_t row) {
    const T *boost = &boost_[(row * kChunk + t % kChunk) * kp_], *q = &q_[row * kp_];
    T *p = &p_[row * kp_], *weights = static_cast<T*>(f_.weights) + c_.row<T>(n, t);
    T* incoming = static_cast<T*>(f_.incoming) + c_.row<T>(n, t);
    if (t + 1 < c_.num_steps)
      fetch_to_write(weights + kp_, kp_), fetch_to_write(incoming + kp_, kp_);
    copy_row(q, incoming, kp_);
    if (any_underflow(q, kp_) && !f_.in_log_space[n]) look_closer(n, t, row);
    for (int64_t j = 0; j < kp_; ++j) p[j] = q[j] * boost[j];
    const T largest = max_of(p, kp_);
    int64_t exponent = 0;
    if (largest >= trust<T>())
      exponent = exponent_of(largest);
    else if (any_possible(n, t, q))
      f_.in_log_space[n] = 1;
    const T scale = power_of_two<T>(-exponent);
#pragma GCC ivdep
    for (int64_t j = 0; j < kp_; ++j) weights[j] = p[j] *= scale;
    const double shift = shift_[row * kChunk + t % kChunk] + double(exponent) * kLog2;
    f_.shift[n * c_.num_steps + t] = shift;
    f_.log_z[n] += shift;
  }

  // Sums that are small without being empty send the chain to log space.
  void look_closer(int64_t n, int64_t t, int64_t row) {
    const T* before = static_cast<const T*>(c_.emissions) + c_.at(n, t - 1);
    const T* q_before = static_cast<const T*>(f_.incoming) + c_.row<T>(n, t - 1);
    const Possible possible(k_, [&](int64_t i) {
      return before[i] > -std::numeric_limits<T>::infinity() &&
             (t == 1 || q_before[i] >= trust<T>());
    });
    for (int64_t j = 0; j < k_; ++j) {
      const T q = q_[row * kp_ + j];
      if (!(q >= trust<T>()) && (q != q || possible.any_of(edges_.allowed_into(j)))) {
        f_.in_log_space[n] = 1;
        return;
      }
    }
  }

  bool any_possible(int64_t n, int64_t t, const T* q) const {
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] < trust<T>() || emission[j] == -std::numeric_limits<T>::infinity())) return true;
    return false;
  }

  void finish(int64_t n) {
    if (f_.in_log_space[n]) {
      ++findings_.underflowed;
      return;
    }
    const T* last = static_cast<const T*>(f_.weights) + c_.row<T>(n, c_.length(n) - 1);
    const double total = sum_of(last, kp_);
    f_.log_z[n] += std::log(total);
    if (total == 0) ++findings_.impossible;
  }

  const Chain& c_;
  const Filtered& f_;
  const Edges<T>& edges_;
  Findings& findings_;
  int64_t k_, kp_;
  Numbers<T> p_, q_, boost_;
  std::vector<double> shift_, sums_;
};

// Returns what was taken off: the peak, or NaN if there is one among the weights.
double shift_to_zero_peak(double* log_alpha, int64_t k) {
  double peak = kMinusInf;
  int broken = 0;
  for (int64_t j = 0; j < k; ++j) peak = std::max(peak, log_alpha[j]);
  for (int64_t j = 0; j < k; ++j) broken |= log_alpha[j] != log_alpha[j];
  if (broken) return std::numeric_limits<double>::quiet_NaN();
  if (peak > kMinusInf)
    for (int64_t j = 0; j < k; ++j) log_alpha[j] -= peak;
  return peak;
}

// One chain at a time; products where they can be trusted, log-sum-exp where not.
template <class T> class FilterInLogSpace {
 public:
  FilterInLogSpace(const Chain& c, const Filtered& f, EdgeCache<T> edges, Findings& findings)
      : c_(c),
        f_(f),
        edges_(std::move(edges)),
        findings_(findings),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        p_(kp_, T(0)),
        q_(kp_),
        log_q_(kp_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      if (!c_.shared() || f_.in_log_space[n]) run_chain(n);
  }

 private:
  const T* emissions() const { return static_cast<const T*>(c_.emissions); }

  void run_chain(int64_t n) {
    f_.in_log_space[n] = 1;
    f_.log_z[n] = 0;
    const int64_t length = c_.length(n);
    for (int64_t t = 0; t < length; ++t) {
      if (t == 0)
        for (int64_t j = 0; j < k_; ++j)
          f_.log_alpha[c_.at(n, 0) + j] = bounded(emissions()[c_.at(n, 0) + j]);
      else
        arrive(edges_.at(n, t - 1), n, t);
      normalize(n, t);
    }
    if (length == 0) return;
    const double total = sum_of(static_cast<const T*>(f_.weights) + c_.row<T>(n, length - 1), kp_);
    f_.log_z[n] += std::log(total);
    if (total == 0) ++findings_.impossible;
  }

  void normalize(int64_t n, int64_t t) {
    double* log_alpha = f_.log_alpha + c_.at(n, t);
    const double norm = shift_to_zero_peak(log_alpha, k_);
    f_.shift[n * c_.num_steps + t] = norm;
    f_.log_z[n] += norm;
    for (int64_t j = 0; j < k_; ++j) p_[j] = fast_exp<T>(T(log_alpha[j]));
    std::copy_n(p_.data(), kp_, static_cast<T*>(f_.weights) + c_.row<T>(n, t));
  }

  void arrive(const Edges<T>& edges, int64_t n, int64_t t) {
    times(1, p_.data(), edges.weight, q_.data(), k_, kp_);
    const T *q = q_.data(), *emission = emissions() + c_.at(n, t);
    double* here = f_.log_alpha + c_.at(n, t);
    std::copy_n(q, kp_, static_cast<T*>(f_.incoming) + c_.row<T>(n, t));
    for (int64_t j = 0; j < kp_; ++j) log_q_[j] = fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1));
    for (int64_t j = 0; j < k_; ++j)
      here[j] = double(log_q_[j]) + edges.column_peak[j] + bounded(emission[j]);
    if (!any_underflow(q, kp_)) return;
    const double* before = f_.log_alpha + c_.at(n, t - 1);
    const Possible possible(k_, [&](int64_t i) { return before[i] > kMinusInf; });
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>())) {
        const bool reached = possible.any_of(edges.allowed_into(j));
        here[j] = reached ? edges.log_sum_into(before, j) + bounded(emission[j]) : kMinusInf;
        if (q[j] != q[j]) here[j] = q[j];
      }
  }

  const Chain& c_;
  const Filtered& f_;
  EdgeCache<T> edges_;
  Findings& findings_;
  int64_t k_, kp_;
  Numbers<T> p_, q_, log_q_;
};

template <class T> class FilterAdjoint {
 public:
  FilterAdjoint(const Chain& c, const Filtered& f, const FilterGrad& a, EdgeCache<T> edges,
                T* products, T* in_log_space)
      : c_(c),
        f_(f),
        a_(a),
        edges_(std::move(edges)),
        products_(products),
        in_log_space_(in_log_space),
        k_(c.num_states),
        kp_(padded<T>(k_)),
        slot_(c.rows() * kp_ + kLine / sizeof(T)),
        chunk_(c.chunk_of_edges()),
        grad_(c.rows() * kp_, T(0)),
        pulled_(grad_),
        waiting_(slot_ * (products ? chunk_ : 1), T(0)),
        grad_after_(kp_),
        w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) zero_padding<T>(c_, n, a_.grad_emissions);
    std::fill(grad_.begin(), grad_.end(), T(0));
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      const int64_t slot = products_ && t > 0 ? (t - 1) % chunk_ : 0;
      scaled_ = &waiting_[slot * slot_];
      block.each(t, [&](int64_t n, int64_t row) { take_in(n, t, row); });
      if (t == 0) break;
      const Edges<T>& edges = edges_.at(block.first, t - 1);
      times(c_.rows(), scaled_, edges.weight_t, pulled_.data(), k_, kp_);
      block.each(t, [&](int64_t n, int64_t row) { step_back(edges, n, t, row); });
      if (products_ && (t - 1) % chunk_ == 0)
        block.each(t, [&](int64_t n, int64_t row) { add_products(n, t - 1, row); });
    }
  }

 private:
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
  }
  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.row<T>(n, t);
  }
  // Add what comes from outside to the gradient of log P_t: then it is that of the emissions.
  void take_in(int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *s = scaled_ + row * kp_;
    if (a_.grad_log_z && t == c_.length(n) - 1) {
      const T* p = weights(n, t);
      const double total = sum_of(p, kp_);  // 0 where no path is allowed
      const T scale = total > 0 ? T(static_cast<const T*>(a_.grad_log_z)[n] / total) : T(0);
      for (int64_t j = 0; j < kp_; ++j) g[j] = p[j] * scale;
    }
    if (a_.upstream) {
      const T* upstream = static_cast<const T*>(a_.upstream) + c_.at(n, t);
      for (int64_t j = 0; j < k_; ++j) g[j] += upstream[j];
    }
    copy_row(g, static_cast<T*>(a_.grad_emissions) + c_.at(n, t), k_);
    if (t == 0) return;
    fetch(incoming(n, t - 1), kp_);
    fetch_to_write(static_cast<T*>(a_.grad_emissions) + c_.at(n, t - 1), k_);
    const T* q = incoming(n, t);
    for (int64_t j = 0; j < kp_; ++j) s[j] = q[j] >= trust<T>() ? g[j] / q[j] : T(0);
  }

  void step_back(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    T *g = &grad_[row * kp_], *s = scaled_ + row * kp_;
    const T *y = &pulled_[row * kp_], *q = incoming(n, t), *p = weights(n, t - 1);
    if (t > 1) fetch(weights(n, t - 2), kp_);
    const bool underflow = f_.in_log_space[n] && any_underflow(q, kp_);
    if (underflow) std::copy_n(g, k_, grad_after_.data());
    for (int64_t i = 0; i < kp_; ++i) g[i] = p[i] * y[i];
    if (a_.grad_transitions && !products_) add_own_edges(edges, n, t, s);
    if (!underflow) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && grad_after_[j] != 0)
        leave_in_log_space(edges, n, t, j, grad_after_[j], g);
  }

  void add_products(int64_t n, int64_t begin, int64_t row) {
    const int64_t count = std::min(chunk_, c_.length(n) - 1 - begin);
    add_outer<T>({weights(n, begin), &waiting_[row * kp_], kp_, slot_, count}, products_, k_, kp_);
  }

  T* own_edges(int64_t n, int64_t t) const {
    return static_cast<T*>(a_.grad_transitions) + c_.edge(n, t - 1);
  }

  void add_own_edges(const Edges<T>& edges, int64_t n, int64_t t, const T* s) {
    const T* p = weights(n, t - 1);
    T* grad_edges = own_edges(n, t);
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j)
        grad_edges[i * k_ + j] += p[i] * edges.weight[i * kp_ + j] * s[j];
  }

  // Log space: hands g to the states before j, and to the edges that lead there.
  void leave_in_log_space(const Edges<T>& edges, int64_t n, int64_t t, int64_t j, T g,
                          T* grad_before) {
    if (!edges.given_after(f_.log_alpha + c_.at(n, t - 1), j, w_.data())) return;
    T* column = nullptr;
    int64_t stride = kp_;
    if (in_log_space_) column = in_log_space_ + j;
    if (a_.grad_transitions && !c_.shared()) column = own_edges(n, t) + j, stride = k_;
    for (int64_t i = 0; i < k_; ++i) {
      const T share = T(w_[i] * g);
      grad_before[i] += share;
      if (column) column[i * stride] += share;
    }
  }

  const Chain& c_;
  const Filtered& f_;
  const FilterGrad& a_;
  EdgeCache<T> edges_;
  T *products_, *in_log_space_;  // [K, Kp], of this group; none where edges are not shared
  int64_t k_, kp_;
  int64_t slot_;   // room for a step of all rows, and a bit: no power of two, which caches mind
  int64_t chunk_;  // steps whose outer products are made together
  Numbers<T> grad_, pulled_;
  Numbers<T> waiting_;   // d log P / q of such steps
  T* scaled_ = nullptr;  // that of the present step
  Numbers<T> grad_after_;
  std::vector<double> w_;
};

// The probability of i given j after it, times that of j.
template <class T> class MoveProbabilities {
 public:
  MoveProbabilities(const Chain& c, const Filtered& f, const EdgeMarginals& m, EdgeCache<T> edges)
      : c_(c), f_(f), m_(m), edges_(std::move(edges)), k_(c.num_states), w_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n)
      for (int64_t t = 1; t < c_.num_steps; ++t) {
        T* out = static_cast<T*>(m_.edges) + (n * (c_.num_steps - 1) + t - 1) * k_ * k_;
        if (t < c_.length(n))
          fill(n, t, out);
        else
          std::fill_n(out, k_ * k_, T(0));
      }
  }

 private:
  void fill(int64_t n, int64_t t, T* out) {
    const Edges<T>& edges = edges_.at(n, t - 1);
    const T* p = static_cast<const T*>(f_.weights) + c_.row<T>(n, t - 1);
    const T* q = static_cast<const T*>(f_.incoming) + c_.row<T>(n, t);
    const T* node = static_cast<const T*>(m_.nodes) + c_.at(n, t);
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j) {
        const T scaled = q[j] >= trust<T>() ? node[j] / q[j] : T(0);
        out[i * k_ + j] = p[i] * edges.weight[i * edges.kp + j] * scaled;
      }
    if (!f_.in_log_space[n]) return;
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>()) && node[j] > 0 &&
          edges.given_after(f_.log_alpha + c_.at(n, t - 1), j, w_.data()))
        for (int64_t i = 0; i < k_; ++i) out[i * k_ + j] = T(w_[i] * node[j]);
  }

  const Chain& c_;
  const Filtered& f_;
  const EdgeMarginals& m_;
  EdgeCache<T> edges_;
  int64_t k_;
  std::vector<double> w_;
};

}  // namespace

template <class T> int64_t filter(const Chain& c, const State& s) {
  const Filtered f = Filtered::of<T>(c, s);
  Findings findings;
  const EdgePack<T> pack(c, Sweep::forward);
  if (c.shared())
    for_groups(c, 1, [&](int64_t) { return Filter<T>(c, f, pack.shared, findings); });
  else
    for_groups(c, 3, pack, [&](EdgeCache<T> edges, int64_t) {
      return FilterInLogSpace<T>(c, f, std::move(edges), findings);
    });
  return findings.packed();
}

// For chains that `filter` found to underflow.
template <class T> int64_t filter_in_log_space(const Chain& c, const State& s) {
  const Filtered f = Filtered::of<T>(c, s);
  Findings findings;
  const EdgePack<T> pack(c, Sweep::forward);
  for_groups(c, 3, pack, [&](EdgeCache<T> edges, int64_t) {
    return FilterInLogSpace<T>(c, f, std::move(edges), findings);
  });
  return findings.packed();
}

template <class T> int64_t filter_adjoint(const Chain& c, const State& s, const FilterGrad& a) {
  const Filtered f = Filtered::of<T>(c, s);
  const bool wanted = a.grad_transitions;
  const EdgePack<T> pack(c, Sweep::backward);
  GroupSums<T> products(c, wanted), in_log_space(c, wanted && f.log_alpha);
  zero_own_edges<T>(c, a.grad_transitions);
  for_groups(c, 2, pack, [&](EdgeCache<T> edges, int64_t group) {
    return FilterAdjoint<T>(c, f, a, std::move(edges), products.of(group), in_log_space.of(group));
  });
  if (wanted && c.shared()) {
    const T *sum = products.total(), *rest = in_log_space.total();
    pack.shared.each([&](int64_t i, int64_t j, int64_t at, T weight) {
      static_cast<T*>(a.grad_transitions)[i * c.num_states + j] =
          weight * sum[at] + (rest ? rest[at] : T(0));
    });
  }
  return 0;
}

template <class T>
int64_t edge_marginals(const Chain& c, const State& s, const EdgeMarginals& m) {
  const Filtered f = Filtered::of<T>(c, s);
  const EdgePack<T> pack(c, Sweep::forward);
  for_groups(c, 2, pack, [&](EdgeCache<T> edges, int64_t) {
    return MoveProbabilities<T>(c, f, m, std::move(edges));
  });
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(filter, (const Chain& c, const State& s), (c, s))
STRUCTDIST_EXPORT_KERNEL(edge_marginals,
                         (const Chain& c, const State& s, const EdgeMarginals& m), (c, s, m))
STRUCTDIST_EXPORT_KERNEL(filter_in_log_space, (const Chain& c, const State& s), (c, s))
STRUCTDIST_EXPORT_KERNEL(filter_adjoint, (const Chain& c, const State& s, const FilterGrad& a),
                         (c, s, a))

}  // namespace structdist
