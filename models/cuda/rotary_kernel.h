#pragma once

#include "models/cuda/thread_maths.h"
#include "models/cuda/training_kernels.h"

// The body of rotary positions (Su et al. 2021, with the halves of a head against each other), forward and backward: a thread
// block takes all heads of a token. The plain reference is rotated() of models/portable/rotary.h.
namespace sluice::models::rotary {

template <int kThreads, int kPack, class In, class Out, class Thread>
SLUICE_ON_GPU void heads_of_token(const RotaryArguments& in, const Thread& thread) {
  const int64_t token = thread.block_x(), begin = token * in.heads * in.head_dim;
  const In* const from = static_cast<const In*>(in.x) + begin;
  Out* const to = static_cast<Out*>(in.out) + begin;
  const int half = in.dims / 2, pairs = half / kPack, pieces = pairs + (in.head_dim - in.dims) / kPack;
  const float* const cosines = in.angles + token * in.dims;
  const float direction = in.back ? -1.0f : 1.0f;
  for (int piece = thread.index(); piece < in.heads * pieces; piece += kThreads) {
    const int head = piece / pieces * in.head_dim, place = piece % pieces;
    if (place >= pairs) {
      const int at = head + in.dims + (place - pairs) * kPack;
      gpu::put<kPack>(gpu::wide<kPack>(from + at), to + at);
      continue;
    }
    const int at = place * kPack;
    gpu::Pack<float, kPack> a = gpu::wide<kPack>(from + head + at), b = gpu::wide<kPack>(from + head + half + at);
    const auto cosine = gpu::wide<kPack>(cosines + at), sine = gpu::wide<kPack>(cosines + half + at);
    for (int i = 0; i < kPack; ++i) {
      const float x = a.of[i], y = b.of[i], rise = direction * sine.of[i];
      a.of[i] = x * cosine.of[i] - y * rise;
      b.of[i] = y * cosine.of[i] + x * rise;
    }
    gpu::put<kPack>(a, to + head + at);
    gpu::put<kPack>(b, to + head + half + at);
  }
}

}  // namespace sluice::models::rotary
