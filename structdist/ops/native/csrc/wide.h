// What wide.cpp does with vectors of 64 bytes. Every sum has the order that it has elsewhere, so
// results are the same to the bit.
#pragma once

#include <cstdint>

namespace structdist {

template <class T> struct Product;
template <class T> struct Outer;

bool has_wide_vectors();
extern bool wide_vectors;  // whether to use them: from the start, where the processor has them

// Several products of 4 rows, and outer products: see product.h.
void multiply_wide(const Product<float>* products, int64_t count, int64_t k, int64_t kp);
void multiply_wide(const Product<double>* products, int64_t count, int64_t k, int64_t kp);
void add_outer_wide(const Outer<float>& x, float* total, int64_t k, int64_t kp);
void add_outer_wide(const Outer<double>& x, double* total, int64_t k, int64_t kp);

// Noise: see gumbel.h.
void fill_with_noise_wide(uint64_t seed, int64_t begin, int64_t count, float* out);
void fill_with_noise_wide(uint64_t seed, int64_t begin, int64_t count, double* out);

}  // namespace structdist
