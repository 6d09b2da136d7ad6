// What the loader asks before it trusts the library.
#include "chain.h"

// Whether this processor can run what the library was compiled to.
STRUCTDIST_EXPORT int supported() {
#if defined(__x86_64__) && defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 1;
#endif
}

// The version of the interface, then the sizes of the structs in arguments.h, as they stand there;
// returns how many numbers there are.
STRUCTDIST_EXPORT int64_t structdist_layout(int64_t* numbers, int64_t room) {
  using namespace structdist;
  const int64_t found[] = {
      kVersion,           sizeof(Chain),         sizeof(Filtered),
      sizeof(FilterGrad), sizeof(EdgeMarginals), sizeof(Expectation),
      sizeof(ExpectGrad), sizeof(Draws),         sizeof(SoftGrad),
      sizeof(Paths),      sizeof(Best),          sizeof(PrefixGrad),
  };
  const int64_t count = sizeof(found) / sizeof(found[0]);
  for (int64_t i = 0; i < count && i < room; ++i) numbers[i] = found[i];
  return count;
}
