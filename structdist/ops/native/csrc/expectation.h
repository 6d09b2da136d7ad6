// What an expectation, or an entropy, adds up along a path.
#pragma once

#include "chain.h"

namespace structdist {

inline Carried carried_by(const Expectation& v) {
  if (v.is_entropy()) return Carried::surprisal;
  return v.edge_values ? Carried::values : Carried::nothing;
}

// What an edge of conditional probability w adds: its value, or its surprisal.
template <class T>
double value_of_edge(const Edges<T>& edges, const Expectation& v, double w, int64_t i, int64_t j) {
  if (v.is_entropy()) return -std::log(w);
  return edges.values ? double(edges.values[i * edges.k + j]) : 0;
}

}  // namespace structdist
