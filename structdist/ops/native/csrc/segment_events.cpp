// Relaxed events [T, L, K] of draws of segments, and their adjoint.
//
// A draw has, at the last step of each segment that was chosen, a relaxed label [K] and a relaxed
// length [L]; other steps are 0. The event is their product, which stands at the first step that a
// segment of such a length has. So most of an event is 0, and neither pass looks at that part but
// to write it.
#include "segments.h"

namespace structdist {
namespace {

template <class T> class RelaxedEvents {
 public:
  RelaxedEvents(const SegmentEvents& e) : e_(e), k_(e.num_labels), width_(k_ + e.longest) {}

  void fill(int64_t draw) const {
    T* events = static_cast<T*>(e_.events) + draw * e_.size();
    std::fill_n(events, e_.size(), T(0));
    const T* soft = static_cast<const T*>(e_.soft) + draw * e_.num_steps * width_;
    for (int64_t t = 0; t < e_.num_steps; ++t, soft += width_)
      if (is_chosen(soft))
        for (int64_t length = 1; length <= e_.lengths_at(t); ++length)
          multiply(soft, soft[k_ + length - 1], events + e_.at(t, length));
  }

  void pull(int64_t draw, const SegmentEventGrad& a) const {
    const T* grad = static_cast<const T*>(a.grad_events) + draw * e_.size();
    const int64_t first = draw * e_.num_steps * width_;
    const T* soft = static_cast<const T*>(e_.soft) + first;
    T* out = static_cast<T*>(a.grad_soft) + first;
    std::fill_n(out, e_.num_steps * width_, T(0));
    for (int64_t t = 0; t < e_.num_steps; ++t, soft += width_, out += width_)
      if (is_chosen(soft)) {
        for (int64_t length = 1; length <= e_.lengths_at(t); ++length)
          fetch(grad + e_.at(t, length), k_);
        for (int64_t length = 1; length <= e_.lengths_at(t); ++length) {
          const T* g = grad + e_.at(t, length);
          out[k_ + length - 1] = pull_label(soft, soft[k_ + length - 1], g, out);
        }
      }
  }

 private:
  bool is_chosen(const T* soft) const {
    int found = 0;
    for (int64_t k = 0; k < k_; ++k) found |= soft[k] > 0;
    return found;
  }

  void multiply(const T* __restrict label, T share, T* __restrict event) const {
    for (int64_t k = 0; k < k_; ++k) event[k] = share * label[k];
  }

  // Adds to the gradient of the label, and returns that of the share of a length.
  T pull_label(const T* __restrict label, T share, const T* __restrict grad,
               T* __restrict out) const {
    for (int64_t k = 0; k < k_; ++k) out[k] += share * grad[k];
    return dot(label, grad, k_);
  }

  const SegmentEvents& e_;
  int64_t k_, width_;
};

}  // namespace

template <class T> int64_t relaxed_events(const SegmentEvents& e) {
  const RelaxedEvents<T> events(e);
  for_pieces(e.num_draws, e.worthwhile_threads(), [&](int64_t draw) { events.fill(draw); });
  return 0;
}

template <class T>
int64_t relaxed_events_adjoint(const SegmentEvents& e, const SegmentEventGrad& a) {
  const RelaxedEvents<T> events(e);
  for_pieces(e.num_draws, e.worthwhile_threads(), [&](int64_t draw) { events.pull(draw, a); });
  return 0;
}

STRUCTDIST_EXPORT_KERNEL(relaxed_events, (const SegmentEvents& e), (e))
STRUCTDIST_EXPORT_KERNEL(relaxed_events_adjoint,
                         (const SegmentEvents& e, const SegmentEventGrad& a), (e, a))

}  // namespace structdist
