// The forward pass of semi-Markov chains, and its adjoint; ops/semi_markov/rescaled/__init__.py has
// the equations. `lead` holds W, one row of K for each segment that is not finished yet: a step
// adds its emissions to all of them. All log weights are double; exps, which are at most 1, and
// products are T.
#include "segments.h"

namespace structdist {
namespace {

constexpr int64_t kChunk = 32;  // steps whose outer products are made together

// Loops over labels [K], of pointers that do not meet: then compilers make vector code of them.

// Add an emission to what is unfinished; keep the largest of it, and of what would end here.
template <class T>
void grow_lead(int64_t num_labels, double* __restrict lead, const T* __restrict emission,
               double taken, const T* __restrict score, double* __restrict most,
               double* __restrict peak) {
  for (int64_t k = 0; k < num_labels; ++k) {
    const double grown = lead[k] + (bounded(emission[k]) - taken);
    const double logit = grown + bounded(score[k]);
    lead[k] = grown;
    most[k] = grown > most[k] ? grown : most[k];
    peak[k] = logit > peak[k] ? logit : peak[k];
  }
}

template <class T>
void add_exps(int64_t num_labels, const double* __restrict lead, const T* __restrict score,
              const double* __restrict peak, T* __restrict sum) {
  for (int64_t k = 0; k < num_labels; ++k)
    sum[k] += fast_exp<T>(T(lead[k] + bounded(score[k]) - peak[k]));
}

constexpr int64_t kManyLengths = 8;  // from here on scales live long enough to be worth keeping
constexpr double kHeavy = 40;  // exp(kHeavy) times a length is far from overflow

// Let a segment of each label begin, on a scale that has the emissions of this step: its weight, and
// its log, which is infinite where the scale is -inf. NaN in the scale is left to the ends.
template <class T>
void begin_label(int64_t num_labels, const double* __restrict begins, const T* __restrict emission,
                 double taken, double* __restrict scale, double* __restrict above,
                 T* __restrict weight) {
  for (int64_t k = 0; k < num_labels; ++k) {
    const double begun = begins[k] + bounded(emission[k]);
    scale[k] += bounded(emission[k]) - taken;
    const double over = begun - scale[k];
    above[k] = begun > kMinusInf ? over : kMinusInf;  // else perhaps -inf less -inf
    weight[k] = fast_exp<T>(T(above[k] < kHeavy ? above[k] : kHeavy));
  }
}

// Sums over lengths of weights of leads times those of durations.
template <class T>
void add_products(int64_t num_labels, const T* __restrict lead, const T* __restrict duration,
                  T* __restrict sum) {
  for (int64_t k = 0; k < num_labels; ++k) sum[k] += lead[k] * duration[k];
}

// Logits of segments with one more step before them, and the largest so far.
template <class T>
void add_step(int64_t num_labels, const T* __restrict emission, double norm,
              const T* __restrict score, const double* __restrict before,
              double* __restrict since, double* __restrict logits, double* __restrict peak) {
  for (int64_t k = 0; k < num_labels; ++k) {
    since[k] += bounded(emission[k]) - norm;
    logits[k] = before[k] + since[k] + bounded(score[k]);
    peak[k] = logits[k] > peak[k] ? logits[k] : peak[k];
  }
}

template <class T>
void weigh(int64_t num_labels, const double* __restrict logits, const double* __restrict peak,
           T* __restrict share, T* __restrict sum) {
  for (int64_t k = 0; k < num_labels; ++k) {
    share[k] = fast_exp<T>(T(logits[k] - peak[k]));
    sum[k] += share[k];
  }
}

// Hand the share of a segment to what stands before it and, with those of all that began earlier,
// to its first step.
template <class T>
void hand_share(int64_t num_labels, const T* __restrict share, T* __restrict run,
                T* __restrict before, T* __restrict step) {
  for (int64_t k = 0; k < num_labels; ++k) {
    before[k] += share[k];
    run[k] += share[k];
    step[k] += run[k];
  }
}

inline void zero_where_empty(double* peak, int64_t num_labels) {
  for (int64_t k = 0; k < num_labels; ++k) peak[k] = peak[k] == kMinusInf ? 0 : peak[k];
}

// Durations [L, K] as weights: exp of what each is less than the largest of its label.
template <class T> struct Durations {
  std::vector<T> weight;
  std::vector<double> peak;  // 0 if all are -inf
  int64_t packed = -1;

  void pack(const SegmentChain& s, int64_t n) {
    const int64_t offset = n * s.chain_stride, k = s.chain.num_states;
    if (offset == packed) return;
    const T* scores = static_cast<const T*>(s.segments) + offset;
    peak.assign(k, kMinusInf);
    weight.resize(s.table());
    for (int64_t i = 0; i < s.table(); ++i) peak[i % k] = std::max(peak[i % k], bounded(scores[i]));
    zero_where_empty(peak.data(), k);
    for (int64_t i = 0; i < s.table(); ++i)
      weight[i] = fast_exp<T>(T(bounded(scores[i]) - peak[i % k]));
    packed = offset;
  }
};

// Where segments have durations alone, and many of them, a step adds the same emission to all that is unfinished of
// a label. So their weights U_s(k) = exp(W_t(s, k) - scale_k) stay as they are while scale_k grows,
// and a sum over lengths is one of products U D. A label is *weighed anew*, from `begins`, where a
// new segment is too heavy for its scale, and where a sum is too small to trust.
template <class T> class UnfinishedByDuration {
 public:
  UnfinishedByDuration(const SegmentChain& s, const SegmentState& f)
      : s_(s),
        c_(s.chain),
        f_(f),
        k_(c_.num_states),
        kd_(padded<double>(k_)),
        weights_(c_.rows() * s.longest * k_),
        scale_(c_.rows() * kd_, kMinusInf),
        above_(kd_, kMinusInf) {}

  // Adds step t, and writes the log weights of what ends there, less the norm, and the norm.
  double finish(int64_t n, int64_t t, int64_t row, T* sum, T* log_sum, double* ends) {
    durations_.pack(s_, n);
    const double norm = grow(n, t, row);
    std::fill_n(sum, k_, T(0));
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length)
      add_products(k_, at(row, t + 1 - length), &durations_.weight[(length - 1) * k_], sum);
    double *scale = &scale_[row * kd_], *peak = durations_.peak.data();
    for (int64_t k = 0; k < k_; ++k) log_sum[k] = fast_log<T>(sum[k] >= trust<T>() ? sum[k] : T(1));
    for (int64_t k = 0; k < k_; ++k) ends[k] = scale[k] + peak[k] + double(log_sum[k]) - norm;
    if (any_underflow(sum, k_))
      for (int64_t k = 0; k < k_; ++k)
        if (!(sum[k] >= trust<T>()) && scale[k] > kMinusInf) ends[k] = look_closer(n, t, row, k) - norm;
    return norm;
  }

 private:
  T* at(int64_t row, int64_t first) {
    return &weights_[(row * s_.longest + first % s_.longest) * k_];
  }
  double emission(int64_t n, int64_t t, int64_t k) const {
    return bounded(static_cast<const T*>(c_.emissions)[c_.at(n, t) + k]);
  }

  double grow(int64_t n, int64_t t, int64_t row) {
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    const double *begins = f_.begins + c_.at(n, t), before = t ? f_.norms[at_step(n, t) - 1] : 0;
    double *scale = &scale_[row * kd_], *above = above_.data();
    if (t == 0) std::fill_n(scale, k_, kMinusInf);
    begin_label(k_, begins, emission, before, scale, above, at(row, t));
    if (max_of(above, kd_) > kHeavy)
      for (int64_t k = 0; k < k_; ++k)
        if (above[k] > kHeavy) weigh_anew(n, t, row, k);
    double norm = max_of(scale, kd_);
    if (norm == kMinusInf) norm = 0;
    f_.norms[at_step(n, t)] = norm;
    return norm;
  }

  int64_t at_step(int64_t n, int64_t t) const { return n * c_.num_steps + t; }

  // Call f(length, log weight) for all unfinished segments of a label; less the norms before t.
  template <class F> void each(int64_t n, int64_t t, int64_t k, F f) const {
    double since = 0;
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const int64_t first = t + 1 - length;
      since += emission(n, first, k) - (first < t ? f_.norms[at_step(n, first)] : 0);
      f(length, f_.begins[c_.at(n, first) + k] + since);
    }
  }

  void weigh_anew(int64_t n, int64_t t, int64_t row, int64_t k) {
    double most = kMinusInf;
    each(n, t, k, [&](int64_t, double w) { most = w > most || w != w ? w : most; });
    scale_[row * kd_ + k] = most;
    each(n, t, k, [&](int64_t length, double w) {
      at(row, t + 1 - length)[k] = w > kMinusInf ? fast_exp<T>(T(w - most)) : T(0);
    });
  }

  // The log weight of what ends with step t, with new weights or, if need be, without any.
  double look_closer(int64_t n, int64_t t, int64_t row, int64_t k) {
    weigh_anew(n, t, row, k);
    double peak = kMinusInf, sum = 0;
    const T* scores = static_cast<const T*>(s_.segments) + s_.segment(n, t, 1) + k;
    each(n, t, k, [&](int64_t length, double w) {
      peak = std::max(peak, w + bounded(scores[(length - 1) * k_]));
    });
    if (peak == kMinusInf) return peak;
    each(n, t, k, [&](int64_t length, double w) {
      sum += std::exp(w + bounded(scores[(length - 1) * k_]) - peak);
    });
    return peak + std::log(sum);
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  int64_t k_, kd_;
  Durations<T> durations_;
  std::vector<T> weights_;      // [rows, L, K]: U
  std::vector<double> scale_;   // [rows, K], less the norms before this step; -inf beyond K
  std::vector<double> above_;   // [K]: of the segments that begin here, above the scale
};

template <class T> class SegmentFilter {
 public:
  SegmentFilter(const SegmentChain& s, const SegmentState& f, EdgeCache<T> edges)
      : s_(s),
        c_(s.chain),
        f_(f),
        edges_(std::move(edges)),
        k_(c_.num_states),
        kp_(padded<T>(k_)),
        p_(c_.rows() * kp_, T(0)),
        q_(c_.rows() * kp_),
        log_q_(kp_),
        by_products_(s.step_stride == 0 && s.longest >= kManyLengths),
        by_duration_(s, f),
        lead_(by_products_ ? 0 : c_.rows() * s.longest * k_),
        peak_(k_),
        most_(padded<double>(k_), kMinusInf),
        sum_(k_),
        log_sum_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t n = block.first; n < block.end; ++n) f_.log_z[n] = 0;
    block.each(0, [&](int64_t n, int64_t) { std::fill_n(f_.begins + c_.at(n, 0), k_, 0.0); });
    for (int64_t t = 0; t < block.longest; ++t) {
      block.each(t, [&](int64_t n, int64_t row) { finish_segments(n, t, row); });
      if (t + 1 == block.longest) break;
      const Edges<T>& edges = edges_.at(block.first, t);
      times(c_.rows(), p_.data(), edges.weight, q_.data(), k_, kp_);
      block.each(t + 1, [&](int64_t n, int64_t row) { begin_segments(edges, n, t, row); });
    }
    block.each(0, [&](int64_t n, int64_t) { close(n); });
  }

 private:
  double* lead(int64_t row, int64_t first) {
    return &lead_[(row * s_.longest + first % s_.longest) * k_];
  }

  // Ends of step t, and P.
  void finish_segments(int64_t n, int64_t t, int64_t row) {
    if (by_products_)
      f_.log_z[n] += by_duration_.finish(n, t, row, sum_.data(), log_sum_.data(), most_.data());
    else
      finish_by_step(n, t, row);
    std::copy_n(most_.data(), k_, f_.ends + c_.at(n, t));
    const double largest = max_of(most_.data(), padded<double>(k_));
    largest_[row] = largest == kMinusInf ? 0 : largest;
    T* p = &p_[row * kp_];
    for (int64_t k = 0; k < k_; ++k) p[k] = fast_exp<T>(T(most_[k] - largest_[row]));
    std::copy_n(p, k_, static_cast<T*>(f_.weights) + c_.at(n, t));
  }

  void finish_by_step(int64_t n, int64_t t, int64_t row) {
    const double norm = grow(n, t, row);
    std::fill_n(sum_.data(), k_, T(0));
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const T* score = static_cast<const T*>(s_.segments) + s_.segment(n, t, length);
      add_exps(k_, lead(row, t + 1 - length), score, peak_.data(), sum_.data());
    }
    const T* sum = sum_.data();
    for (int64_t k = 0; k < k_; ++k) log_sum_[k] = fast_log<T>(sum[k] > 0 ? sum[k] : T(1));
    for (int64_t k = 0; k < k_; ++k)
      most_[k] = sum[k] > 0 ? peak_[k] + double(log_sum_[k]) - norm : kMinusInf;
    f_.log_z[n] += norm;
  }

  // Adds step t to what is unfinished, less the norm before, and finds the largest of what ends
  // there. Returns the norm of this step.
  double grow(int64_t n, int64_t t, int64_t row) {
    const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, t);
    const double before = t > 0 ? f_.norms[n * c_.num_steps + t - 1] : 0;
    std::copy_n(f_.begins + c_.at(n, t), k_, lead(row, t));
    double *most = most_.data(), *peak = peak_.data();
    std::fill_n(most, k_, kMinusInf);
    std::fill_n(peak, k_, kMinusInf);
    for (int64_t length = 1; length <= s_.lengths_at(t); ++length) {
      const T* score = static_cast<const T*>(s_.segments) + s_.segment(n, t, length);
      const double taken = length > 1 ? before : 0;  // `begins` have lost it already
      grow_lead(k_, lead(row, t + 1 - length), emission, taken, score, most, peak);
    }
    zero_where_empty(peak, k_);
    double norm = max_of(most, padded<double>(k_));
    if (norm == kMinusInf) norm = 0;
    f_.norms[n * c_.num_steps + t] = norm;
    return norm;
  }

  // Begins of step t+1, from q.
  void begin_segments(const Edges<T>& edges, int64_t n, int64_t t, int64_t row) {
    const T* q = &q_[row * kp_];
    double* begins = f_.begins + c_.at(n, t + 1);
    std::copy_n(q, k_, static_cast<T*>(f_.incoming) + c_.at(n, t + 1));
    for (int64_t j = 0; j < kp_; ++j) log_q_[j] = fast_log<T>(q[j] >= trust<T>() ? q[j] : T(1));
    for (int64_t j = 0; j < k_; ++j)
      begins[j] = double(log_q_[j]) + edges.column_peak[j] + largest_[row];
    if (!any_underflow(q, k_)) return;
    const double* ends = f_.ends + c_.at(n, t);
    for (int64_t j = 0; j < k_; ++j)
      if (!(q[j] >= trust<T>())) begins[j] = q[j] != q[j] ? q[j] : edges.log_sum_into(ends, j);
  }

  void close(int64_t n) {
    const double* ends = f_.ends + c_.at(n, c_.length(n) - 1);
    const double peak = *std::max_element(ends, ends + k_);
    double sum = 0;
    for (int64_t k = 0; k < k_ && peak > kMinusInf; ++k) sum += std::exp(ends[k] - peak);
    f_.log_z[n] = peak > kMinusInf ? f_.log_z[n] + peak + std::log(sum) : kMinusInf;
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  EdgeCache<T> edges_;
  int64_t k_, kp_;
  std::vector<T> p_, q_, log_q_;
  bool by_products_;
  UnfinishedByDuration<T> by_duration_;
  std::vector<double> lead_, peak_;
  std::vector<double> most_;  // of each label, -inf beyond K
  std::vector<T> sum_, log_sum_;
  double largest_[4] = {};  // of the ends of a step
};

template <class T> class SegmentFilterAdjoint {
 public:
  SegmentFilterAdjoint(const SegmentChain& s, const SegmentState& f, const SegmentGrad& a,
                       EdgeCache<T> edges, T* products, T* in_log_space, T* tables)
      : s_(s),
        c_(s.chain),
        f_(f),
        a_(a),
        edges_(std::move(edges)),
        products_(products),
        in_log_space_(in_log_space),
        tables_(tables),
        k_(c_.num_states),
        kp_(padded<T>(k_)),
        slot_(c_.rows() * kp_ + lanes<T>()),
        scaled_(slot_ * kChunk, T(0)),
        pulled_(c_.rows() * kp_),
        grad_(kp_),
        logits_(s.longest * k_),
        peak_(k_),
        since_(k_),
        given_(k_),
        shares_(s.longest * k_),
        sum_(k_),
        run_(k_) {}

  void run(int64_t index) {
    const Block block(c_, index);
    for (int64_t t = block.longest - 1; t >= 0; --t) {
      if (t + 1 < block.longest) {
        block.each(t + 1, [&](int64_t n, int64_t row) { divide(n, t, row); });
        times(c_.rows(), scaled(0, t), edges_.at(block.first, t).weight_t, pulled_.data(), k_, kp_);
      }
      block.each(t, [&](int64_t n, int64_t row) { step_back(n, t, row); });
      if (products_ && t % kChunk == 0 && t + 1 < block.longest)
        block.each(t + 1, [&](int64_t n, int64_t row) { add_products(n, t, row); });
    }
  }

 private:
  const T* incoming(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.incoming) + c_.at(n, t);
  }
  const T* weights(int64_t n, int64_t t) const {
    return static_cast<const T*>(f_.weights) + c_.at(n, t);
  }
  T* begins(int64_t n, int64_t t) const { return static_cast<T*>(a_.grad_begins) + c_.at(n, t); }

  // Gradients of the begins of step t+1 over q; they wait there for their outer products.
  T* scaled(int64_t row, int64_t t) { return &scaled_[t % kChunk * slot_ + row * kp_]; }

  void divide(int64_t n, int64_t t, int64_t row) {
    const T *g = begins(n, t + 1), *q = incoming(n, t + 1);
    T* s = scaled(row, t);
    for (int64_t j = 0; j < k_; ++j) s[j] = q[j] >= trust<T>() ? g[j] / q[j] : T(0);
  }

  void step_back(int64_t n, int64_t t, int64_t row) {
    const T* upstream = static_cast<const T*>(a_.upstream) + c_.at(n, t);
    std::copy_n(upstream, k_, grad_.data());
    if (t + 1 < c_.length(n)) {
      const T *p = weights(n, t), *y = &pulled_[row * kp_];
      for (int64_t i = 0; i < k_; ++i) grad_[i] += p[i] * y[i];
      pull_in_log_space(n, t);
      if (a_.grad_transitions && !products_) add_own_edges(n, t, scaled(row, t));
    }
    divide_among_lengths(n, t);
    if (a_.of_lengths) add_single_segments(n, t);
    hand_out(n, t);
  }

  // Probabilities of lengths, times the gradient of the ends of step t.
  void divide_among_lengths(int64_t n, int64_t t) {
    const int64_t count = s_.lengths_at(t);
    std::fill_n(since_.data(), k_, 0.0);
    std::fill_n(peak_.data(), k_, kMinusInf);
    for (int64_t length = 1; length <= count; ++length) {
      const int64_t first = t + 1 - length;
      const T* emission = static_cast<const T*>(c_.emissions) + c_.at(n, first);
      const T* score = static_cast<const T*>(s_.segments) + s_.segment(n, t, length);
      add_step(k_, emission, f_.norms[n * c_.num_steps + first], score,
               f_.begins + c_.at(n, first), since_.data(), &logits_[(length - 1) * k_],
               peak_.data());
    }
    zero_where_empty(peak_.data(), k_);
    std::fill_n(sum_.data(), k_, T(0));
    for (int64_t length = 0; length < count; ++length)
      weigh(k_, &logits_[length * k_], peak_.data(), &shares_[length * k_], sum_.data());
    for (int64_t k = 0; k < k_; ++k) sum_[k] = sum_[k] > 0 ? grad_[k] / sum_[k] : T(0);
    const T* __restrict scale = sum_.data();
    for (int64_t length = 0; length < count; ++length) {
      T* __restrict share = &shares_[length * k_];
      for (int64_t k = 0; k < k_; ++k) share[k] *= scale[k];
    }
  }

  void add_single_segments(int64_t n, int64_t t) {
    const int64_t count = s_.lengths_at(t);
    for (int64_t s = 0; s < a_.num_samples; ++s) {
      const int64_t at = (s * c_.num_chains + n) * c_.num_steps + t;
      const T* of_lengths = static_cast<const T*>(a_.of_lengths) + at * s_.longest;
      T* share = &shares_[a_.labels[at]];
      for (int64_t length = 0; length < count; ++length) share[length * k_] += of_lengths[length];
    }
  }

  // To what stands before each segment, to its steps and to the segment itself.
  void hand_out(int64_t n, int64_t t) {
    T* run = run_.data();
    std::fill_n(run, k_, T(0));
    T* table = tables_;
    if (a_.grad_segments && !table) table = static_cast<T*>(a_.grad_segments);
    for (int64_t length = s_.lengths_at(t); length > 0; --length) {
      const int64_t first = t + 1 - length;
      const T* share = &shares_[(length - 1) * k_];
      T* step = static_cast<T*>(a_.grad_emissions) + c_.at(n, first);
      hand_share(k_, share, run, begins(n, first), step);
      if (!table) continue;
      T* own = table + s_.segment(n, t, length);
      for (int64_t k = 0; k < k_; ++k) own[k] += share[k];
    }
  }

  void add_products(int64_t n, int64_t begin, int64_t row) {
    const int64_t count = std::min(kChunk, c_.length(n) - 1 - begin);
    add_outer(weights(n, begin), k_, &scaled_[row * kp_], slot_, count, products_, k_, kp_);
  }

  void add_own_edges(int64_t n, int64_t t, const T* s) {
    const Edges<T>& edges = edges_.at(n, t);
    const T* p = weights(n, t);
    T* grad = static_cast<T*>(a_.grad_transitions) + c_.edge(n, t);
    for (int64_t i = 0; i < k_; ++i)
      for (int64_t j = 0; j < k_; ++j) grad[i * k_ + j] += p[i] * edges.weight[i * kp_ + j] * s[j];
  }

  // The share of sums that underflowed, column by column.
  void pull_in_log_space(int64_t n, int64_t t) {
    const T *q = incoming(n, t + 1), *g = begins(n, t + 1);
    if (!any_underflow(q, k_)) return;
    const Edges<T>& edges = edges_.at(n, t);
    for (int64_t j = 0; j < k_; ++j) {
      if (q[j] >= trust<T>() || g[j] == 0) continue;
      if (!edges.given_after(f_.ends + c_.at(n, t), j, given_.data())) continue;
      T* column = in_log_space_ ? in_log_space_ + j : nullptr;
      int64_t stride = kp_;
      if (a_.grad_transitions && !c_.shared())
        column = static_cast<T*>(a_.grad_transitions) + c_.edge(n, t) + j, stride = k_;
      for (int64_t i = 0; i < k_; ++i) {
        const T share = T(given_[i] * g[j]);
        grad_[i] += share;
        if (column) column[i * stride] += share;
      }
    }
  }

  const SegmentChain& s_;
  const Chain& c_;
  const SegmentState& f_;
  const SegmentGrad& a_;
  EdgeCache<T> edges_;
  T *products_, *in_log_space_;  // [K, Kp], of this group, for transitions that chains share
  T* tables_;                    // [L, K], of this group, for segments that chains share
  int64_t k_, kp_, slot_;
  std::vector<T> scaled_, pulled_, grad_;
  std::vector<double> logits_, peak_, since_, given_;
  std::vector<T> shares_, sum_, run_;
};

// How much a step costs, in matrix products of K x K.
double cost_of(const SegmentChain& s) {
  return 1 + 12 * double(s.longest) / double(s.chain.num_states);
}

}  // namespace

template <class T> int64_t segment_filter(const SegmentChain& s, const SegmentState& f) {
  const EdgePack<T> pack(s.chain, Sweep::forward);
  for_groups(s.chain, cost_of(s), pack, [&](EdgeCache<T> edges, int64_t) {
    return SegmentFilter<T>(s, f, std::move(edges));
  });
  return 0;
}

template <class T>
int64_t segment_filter_adjoint(const SegmentChain& s, const SegmentState& f, const SegmentGrad& a) {
  const Chain& c = s.chain;
  const EdgePack<T> pack(c, Sweep::backward);
  GroupSums<T> products(c, a.grad_transitions), in_log_space(c, a.grad_transitions);
  const int64_t count = Groups(c).count(), table = s.table();
  std::vector<T> tables(a.grad_segments && s.shared() ? count * table : 0, T(0));
  for_groups(c, 2 * cost_of(s), pack, [&](EdgeCache<T> edges, int64_t group) {
    return SegmentFilterAdjoint<T>(s, f, a, std::move(edges), products.of(group),
                                   in_log_space.of(group),
                                   tables.empty() ? nullptr : &tables[group * table]);
  });
  for (size_t i = 0; i < tables.size(); ++i)
    static_cast<T*>(a.grad_segments)[int64_t(i) % table] += tables[i];
  if (const T* total = products.total()) {
    const T* more = in_log_space.total();
    const int64_t k = c.num_states;
    pack.shared.each([&](int64_t i, int64_t j, int64_t at, T weight) {
      static_cast<T*>(a.grad_transitions)[i * k + j] = weight * total[at] + more[at];
    });
  }
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_filter, (const SegmentChain& s, const SegmentState& f), (s, f))
STRUCTDIST_EXPORT_KERNEL(segment_filter_adjoint,
                         (const SegmentChain& s, const SegmentState& f, const SegmentGrad& a),
                         (s, f, a))

// The version of the interface, then the sizes of the structs in segments.h.
STRUCTDIST_EXPORT int64_t segment_layout(int64_t* numbers, int64_t room) {
  const int64_t found[] = {kSegmentVersion, sizeof(SegmentChain), sizeof(SegmentState),
                           sizeof(SegmentGrad), sizeof(SegmentDraws)};
  const int64_t count = sizeof(found) / sizeof(found[0]);
  for (int64_t i = 0; i < count && i < room; ++i) numbers[i] = found[i];
  return count;
}

}  // namespace structdist
