// What the loader asks before it trusts the library.
#include "chain.h"

#if defined(__x86_64__) && defined(__AVX2__)
#include <cpuid.h>

namespace {

// Asked of the processor itself: `__builtin_cpu_supports` needs a part of the compiler's library
// that not every toolchain links into shared ones.
bool has_avx2_and_fma() {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return false;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const bool keeps_registers = (low & 6) == 6;  // the system saves wide ones
  return keeps_registers && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

}  // namespace
#endif

// Whether this processor can run what the library was compiled to.
STRUCTDIST_EXPORT int supported() {
#if defined(__x86_64__) && defined(__AVX2__)
  return has_avx2_and_fma();
#else
  return 1;
#endif
}

// Whether products of long rows take vectors of 64 bytes from now on: they do from the start on
// processors that have them. Returns whether they did; results are the same to the bit.
STRUCTDIST_EXPORT int use_wide_vectors(int wanted) {
  using namespace structdist;
  const bool before = wide_vectors;
  wide_vectors = wanted && has_wide_vectors();
  return before;
}

// The version of the interface, then the sizes of the structs in arguments.h, as they stand there;
// returns how many numbers there are.
STRUCTDIST_EXPORT int64_t structdist_layout(int64_t* numbers, int64_t room) {
  using namespace structdist;
  const int64_t found[] = {
      kVersion,           sizeof(Chain),         sizeof(State),
      sizeof(FilterGrad), sizeof(EdgeMarginals), sizeof(Expectation),
      sizeof(ExpectGrad), sizeof(Draws),         sizeof(SoftGrad),
      sizeof(Paths),      sizeof(Best),          sizeof(PrefixGrad),
  };
  const int64_t count = sizeof(found) / sizeof(found[0]);
  for (int64_t i = 0; i < count && i < room; ++i) numbers[i] = found[i];
  return count;
}
