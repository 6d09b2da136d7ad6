// What expectations, or entropies, add up along a path, and what moves get of their gradients.
#pragma once

#include "chain.h"

namespace structdist {

inline Carried carried_by(bool is_entropy, const void* edge_values) {
  if (is_entropy) return Carried::surprisal;
  return edge_values ? Carried::values : Carried::nothing;
}

// What an edge of conditional probability w adds: its value, or its surprisal.
template <class T> double value_of_edge(const Edges<T>& edges, double w, int64_t i, int64_t j) {
  if (edges.carried == Carried::surprisal) return -std::log(w);
  return edges.values ? double(edges.values[i * edges.k + j]) : 0;
}

// The mean of what the states before j bring along (their own means, and the edges into j), in log
// space. 0 if none of them is possible.
template <class T>
double mean_in_log_space(const Edges<T>& edges, const double* log_weights, const double* means,
                         int64_t j, double* w) {
  if (!edges.given_after(log_weights, j, w)) return 0;
  double sum = 0;
  for (int64_t i = 0; i < edges.k; ++i)
    if (w[i] != 0) sum += w[i] * (means[i] + value_of_edge(edges, w[i], i, j));
  return sum;
}

// Rows [Kp] of one step back: weights P and P (F - pivot) before it, and u and m after it (see
// expect_adjoint.cpp).
template <class T> struct StepBack {
  const T *p, *p_mean, *u, *m;
};

// Where gradients of edges [K, K] and of their values go, in rows of some stride; or none.
template <class T> struct EdgeGrads {
  T *scores, *values;
  int64_t stride;
};

// Gradients of edges that chains do not share.
template <class T>
void add_own_edges(const Edges<T>& edges, const StepBack<T>& at, const EdgeGrads<T>& to) {
  for (int64_t i = 0; i < edges.k; ++i)
    for (int64_t j = 0; j < edges.k; ++j) {
      const T weight = edges.weight[i * edges.kp + j];
      const T value = edges.carried != Carried::nothing ? edges.shifted_value(i, j) : T(0);
      const T mass = at.p[i] * weight * at.m[j];
      if (to.values) to.values[i * to.stride + j] += mass;
      to.scores[i * to.stride + j] +=
          weight * (at.p[i] * at.u[j] + at.p_mean[i] * at.m[j]) + mass * value;
    }
}

// The gradients of state j, of its log weight and of the mean of what comes before it.
template <class T> struct GradInto {
  int64_t state;
  double mean;
  T grad, mass;
};

// Log space: hands them to the states before j, and to the edges that lead there.
template <class T>
void pull_in_log_space(const Edges<T>& edges, const double* log_weights, const double* means,
                       const GradInto<T>& after, double* w, T* grad_before, T* mass_before,
                       const EdgeGrads<T>& to) {
  const int64_t j = after.state;
  if (!edges.given_after(log_weights, j, w)) return;
  for (int64_t i = 0; i < edges.k; ++i) {
    if (w[i] == 0) continue;
    const double surplus = means[i] + value_of_edge(edges, w[i], i, j) - after.mean;
    const T mass = T(w[i] * after.mass);
    const T grad = T(w[i] * (after.grad + after.mass * surplus));
    mass_before[i] += mass;
    grad_before[i] += grad;
    if (to.scores) to.scores[i * to.stride + j] += grad;
    if (to.values) to.values[i * to.stride + j] += mass;
  }
}

// What shared transitions get, summed up by one group: products of rows p, p_mean and u, m, and the
// rest from columns that underflowed. With V the shifted edge values,
//     grad transitions = E * (p'u + p_mean'm + V * p'm) + rest,
//     grad edge values = E * p'm + rest.
template <class T> struct EdgeSums {
  T *pulls, *masses, *rest, *rest_of_values;  // [K, Kp] each, or none

  void add(const Outer<T>& pu, const Outer<T>& mean_m, int64_t k, int64_t kp) const {
    add_outer<T>(pu, pulls, k, kp);
    add_outer<T>(mean_m, pulls, k, kp);
    const Outer<T> pm{pu.a, mean_m.b, pu.a_stride, mean_m.b_stride, pu.count};
    if (masses) add_outer<T>(pm, masses, k, kp);
  }
};

// The same for all groups, and in the end the gradients themselves.
template <class T> class EdgeTotals {
 public:
  EdgeTotals(const Chain& c, const EdgePack<T>& pack, void* grad_transitions, void* grad_values,
             bool may_underflow)
      : pack_(pack),
        grad_transitions_(static_cast<T*>(grad_transitions)),
        grad_values_(static_cast<T*>(grad_values)),
        carries_(pack.carried != Carried::nothing),
        pulls_(c, grad_transitions),
        masses_(c, grad_transitions && (grad_values || carries_)),
        rest_(c, grad_transitions && may_underflow),
        rest_of_values_(c, grad_values && may_underflow) {
    zero_own_edges<T>(c, grad_transitions);
    zero_own_edges<T>(c, grad_values);
  }

  EdgeSums<T> of(int64_t group) {
    return {pulls_.of(group), masses_.of(group), rest_.of(group), rest_of_values_.of(group)};
  }

  // If chains share their transitions.
  void write() {
    const T *pull = pulls_.total(), *mass = masses_.total();
    const T *rest = rest_.total(), *rest_of_values = rest_of_values_.total();
    if (!pull) return;
    const Edges<T>& edges = pack_.shared;
    edges.each([&](int64_t i, int64_t j, int64_t at, T weight) {
      const int64_t to = i * edges.k + j;
      const T carried = carries_ ? edges.shifted_value(i, j) * mass[at] : T(0);
      grad_transitions_[to] = weight * (pull[at] + carried) + (rest ? rest[at] : T(0));
      if (grad_values_)
        grad_values_[to] = weight * mass[at] + (rest_of_values ? rest_of_values[at] : T(0));
    });
  }

 private:
  const EdgePack<T>& pack_;
  T *grad_transitions_, *grad_values_;
  bool carries_;
  GroupSums<T> pulls_, masses_, rest_, rest_of_values_;
};

}  // namespace structdist
