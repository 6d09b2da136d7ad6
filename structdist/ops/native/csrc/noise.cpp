// Gumbel noise from a seed: the same numbers on any number of threads.
#include "chain.h"
#include "gumbel.h"
#include "wide.h"

namespace structdist {
namespace {

constexpr int64_t kPiece = 1 << 15;  // numbers made in one go, by one thread

template <class T> int64_t gumbel_noise(int64_t seed, T* out, int64_t count, int64_t num_threads) {
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  for_pieces(pieces, count > 8 * kPiece ? num_threads : 1, [&](int64_t piece) {
    const int64_t begin = piece * kPiece;
    const int64_t here = std::min(kPiece, count - begin);
    if (wide_vectors)
      fill_with_noise_wide(uint64_t(seed), begin, here, out + begin);
    else
      fill_with_noise(uint64_t(seed), begin, here, out + begin);
  });
  return 0;
}

}  // namespace
}  // namespace structdist

STRUCTDIST_EXPORT int64_t gumbel_noise_float(int64_t seed, float* out, int64_t count,
                                             int64_t num_threads) {
  return structdist::gumbel_noise(seed, out, count, num_threads);
}
STRUCTDIST_EXPORT int64_t gumbel_noise_double(int64_t seed, double* out, int64_t count,
                                              int64_t num_threads) {
  return structdist::gumbel_noise(seed, out, count, num_threads);
}
