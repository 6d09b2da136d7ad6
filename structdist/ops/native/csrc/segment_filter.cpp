// The forward pass of semi-Markov chains; ops/semi_markov/rescaled/__init__.py has the equations.
//
// `lead` holds W, one row of K for each segment that is not finished yet: a step adds its emissions
// to all of them. Log weights are double; exps, which are at most 1, and products are T.
#include "segment_durations.h"

namespace structdist {
namespace {

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
    for (int64_t n = block.first; n < block.end; ++n) {
      f_.log_z[n] = 0;
      fill_padding(n);
    }
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
  // Sums are 1 where there are none, so that none looks as if it underflowed.
  void fill_padding(int64_t n) const {
    zero_padding<double>(c_, n, f_.ends);
    zero_padding<double>(c_, n, f_.begins);
    zero_padding<T>(c_, n, f_.weights);
    T* incoming = static_cast<T*>(f_.incoming);
    std::fill(incoming + c_.at(n, c_.length(n)), incoming + c_.at(n, c_.num_steps), T(1));
    std::fill_n(incoming + c_.at(n, 0), k_, T(1));
    double* norms = f_.norms + n * c_.num_steps;
    std::fill(norms + c_.length(n), norms + c_.num_steps, 0.0);
  }

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
  Numbers<T> p_, q_, log_q_;
  bool by_products_;
  UnfinishedByDuration<T> by_duration_;
  std::vector<double> lead_, peak_;
  std::vector<double> most_;  // of each label, -inf beyond K
  Numbers<T> sum_, log_sum_;
  double largest_[4] = {};  // of the ends of a step
};

}  // namespace

template <class T> int64_t segment_filter(const SegmentChain& s, const SegmentState& f) {
  const EdgePack<T> pack(s.chain, Sweep::forward);
  for_groups(s.chain, cost_of(s), pack, [&](EdgeCache<T> edges, int64_t) {
    return SegmentFilter<T>(s, f, std::move(edges));
  });
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(segment_filter, (const SegmentChain& s, const SegmentState& f), (s, f))
// The version of the interface, then the sizes of the structs in segments.h.
STRUCTDIST_EXPORT int64_t segment_layout(int64_t* numbers, int64_t room) {
  const int64_t found[] = {
      kSegmentVersion,           sizeof(SegmentChain),     sizeof(SegmentState),
      sizeof(SegmentGrad),       sizeof(SegmentDraws),     sizeof(SegmentSoftGrad),
      sizeof(SegmentEvents),     sizeof(SegmentEventGrad), sizeof(SegmentExpectation),
      sizeof(SegmentExpectGrad), sizeof(SegmentBest),      sizeof(SegmentPrefixGrad),
      sizeof(SegmentPaths),      sizeof(SegmentNodes),
  };
  const int64_t count = sizeof(found) / sizeof(found[0]);
  for (int64_t i = 0; i < count && i < room; ++i) numbers[i] = found[i];
  return count;
}

}  // namespace structdist
