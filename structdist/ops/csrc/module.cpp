// Whether this processor can run what the library was compiled to.
#include "chain.h"

STRUCTDIST_EXPORT int supported() {
#if defined(__x86_64__) && defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 1;
#endif
}
