// Threads of our own: no second OpenMP runtime beside torch's, and none that spins.
//
// A job is cut into pieces that any thread may take. The caller takes pieces like everybody else,
// so that it finishes alone where helpers do not come (on a busy machine they may not), and waits
// only for pieces that a helper has begun. Helpers sleep between jobs. A second caller that finds
// the helpers taken does its own work. After a fork the child begins with helpers of its own.
#pragma once

#include <cstdint>

namespace structdist {

using Piece = void (*)(void* context, int64_t index);

// Call piece(context, i) for each i below `count`, on up to `num_threads` threads.
void run_pieces(int64_t count, int64_t num_threads, Piece piece, void* context);

template <class F> void for_pieces(int64_t count, int64_t num_threads, F f) {
  run_pieces(
      count, num_threads, [](void* context, int64_t index) { (*static_cast<F*>(context))(index); },
      &f);
}

}  // namespace structdist
