// Gumbel noise from a seed, without names outside: noise.cpp compiles it for any processor, wide.cpp
// for vectors of 64 bytes.
//
// Random bits are those of Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as
// 1, 2, 3"), a bijection of (counter, seed) without a state. A uniform number u in (0, 1) becomes
// -log(-log(1 - u)): near u = 0, where the noise is largest and decides which rare state is drawn,
// it is resolved down to 2^-31 (2^-63 for doubles).
#pragma once

#include <algorithm>

#include "scalar_math.h"

namespace structdist {
namespace {

constexpr int64_t kWide = 64;  // counters that go through the rounds together

// Four random words for each of kWide counters from `counter` on: words[4][kWide].
void philox(uint64_t seed, uint64_t counter, uint32_t words[4][kWide]) {
  for (int64_t i = 0; i < kWide; ++i) {
    words[0][i] = uint32_t(counter + uint64_t(i));
    words[1][i] = uint32_t((counter + uint64_t(i)) >> 32);
    words[2][i] = words[3][i] = 0;
  }
  uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t i = 0; i < kWide; ++i) {
      const uint64_t a = uint64_t(0xD2511F53u) * words[0][i];
      const uint64_t b = uint64_t(0xCD9E8D57u) * words[2][i];
      words[0][i] = uint32_t(b >> 32) ^ words[1][i] ^ key0;
      words[2][i] = uint32_t(a >> 32) ^ words[3][i] ^ key1;
      words[1][i] = uint32_t(b);
      words[3][i] = uint32_t(a);
    }
    key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
  }
}

// -log(1 - u), to the last digits also where u is small: what rounding took from 1 - u comes back.
// (To be divided by 1 - u, which differs from 1 only where the logarithm is large beside it.)
template <class T> inline T exponential(T u) {
  const T rest = T(1) - u, lost = T(1) - rest;
  return (u - lost) - fast_log<T>(rest);
}

// `count` numbers, of which the first is the one at `begin` of all.
void fill_with_noise(uint64_t seed, int64_t begin, int64_t count, float* out) {
  uint32_t words[4][kWide];
  const float scale = (1 - std::numeric_limits<float>::epsilon()) / 2147483647.0f;
  for (int64_t i = 0; i < count; i += 4 * kWide) {
    philox(seed, uint64_t(begin + i) / 4, words);
    const uint32_t* bits = &words[0][0];
    const int64_t here = std::min(4 * kWide, count - i);
    for (int64_t j = 0; j < here; ++j) {
      const float u = (float(int32_t(bits[j] >> 1)) + 0.5f) * scale;
      out[i + j] = -fast_log<float>(exponential<float>(u));
    }
  }
}

void fill_with_noise(uint64_t seed, int64_t begin, int64_t count, double* out) {
  uint32_t words[4][kWide];
  const double scale = (1 - std::numeric_limits<double>::epsilon()) / 9223372036854775807.0;
  for (int64_t i = 0; i < count; i += 2 * kWide) {
    philox(seed, uint64_t(begin + i) / 2, words);
    const int64_t here = std::min(2 * kWide, count - i);
    for (int64_t j = 0; j < here; ++j) {
      const int64_t pair = j / kWide, at = j % kWide;
      const uint64_t bits = uint64_t(words[2 * pair][at]) << 32 | words[2 * pair + 1][at];
      const double u = (double(int64_t(bits >> 1)) + 0.5) * scale;
      out[i + j] = -fast_log<double>(exponential<double>(u));
    }
  }
}

}  // namespace
}  // namespace structdist
