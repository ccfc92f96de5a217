#pragma once

#include <type_traits>

#include "models/cuda/gated_kernel.h"
#include "models/cuda/gpu_thread.h"
#include "models/cuda/step_kernels.h"
#include "models/cuda/thread_maths.h"

// The code of what is between the products of a step: what one thread does. Its plain reference is portable::LayerMaths. A thread
// block has a row, so that sums do not depend on others.
namespace sluice::models::row_kernels {

using gpu::Bfloat16, gpu::Element, gpu::kLanes, gpu::Words;

constexpr int kWarps = 8, kThreads = kWarps * kLanes;
constexpr int kAtOnce = 4;  // numbers that a thread works on together

/// Of a thread block.
struct Shared {
  float sums[2][kWarps];  // of two norms: the second does not wait for readers of the first
};

using Four = gpu::Pack<float, kAtOnce>;

SLUICE_ON_GPU void add(Four& to, const Four& from) {
  for (int i = 0; i < kAtOnce; ++i) to.of[i] += from.of[i];
}
SLUICE_ON_GPU float squares(const Four& four) {
  float sum = 0;
  for (int i = 0; i < kAtOnce; ++i) sum += four.of[i] * four.of[i];
  return sum;
}
/// times `factor`, times weights, which count from one.
SLUICE_ON_GPU void scale(Four& four, float factor, const Four& weights, bool from_one) {
  for (int i = 0; i < kAtOnce; ++i) four.of[i] = four.of[i] * factor * (from_one ? weights.of[i] + 1.0f : weights.of[i]);
}

SLUICE_ON_GPU float inverse_root(float x) { return 1.0f / sqrtf(x); }

/// A thread's numbers of a row, kFours times four: in registers, so that a row is read once.
template <int kFours>
struct Strip {
  Four of[kFours] = {};  // zeros after the row

  template <class Use>
  static SLUICE_ON_GPU void each(int me, int size, const Use& use) {
    SLUICE_UNROLLED
    for (int f = 0; f < kFours; ++f)
      if (const int i = (f * kThreads + me) * kAtOnce; i < size) use(f, i);
  }
  template <class T>
  SLUICE_ON_GPU void read(const T* from, int me, int size) {
    each(me, size, [&](int f, int i) { of[f] = gpu::wide<kAtOnce>(from + i); });
  }
  SLUICE_ON_GPU float squares() const {
    float sum = 0;
    SLUICE_UNROLLED
    for (int f = 0; f < kFours; ++f) sum += row_kernels::squares(of[f]);
    return sum;
  }
};

/// A size of a row that Strip<kFours> holds.
constexpr int most_of(int fours) { return fours * kThreads * kAtOnce; }
constexpr int kMostFours = 8;
static_assert(most_of(kMostFours) == kMostOfRow);

/// Calls `use` with the kFours for rows of this size, which is most_of(kMostFours) at most.
template <class Use>
void with_fours(int32_t size, const Use& use) {
  if (size <= most_of(2)) return use(std::integral_constant<int, 2>());
  if (size <= most_of(4)) return use(std::integral_constant<int, 4>());
  use(std::integral_constant<int, kMostFours>());
}

/// Of x, or of what is added: its norm's factor.
template <class Thread>
SLUICE_ON_GPU float factor_of(const Thread& thread, float squares, const ResidualArguments& in, float (&sums)[kWarps]) {
  return inverse_root(gpu::sum_of_block<kThreads>(squares, sums, thread) / static_cast<float>(in.size) + in.eps);
}

template <int kFours, class Thread>
SLUICE_ON_GPU void residual(const ResidualArguments& in, Shared& shared, const Thread& thread) {
  using Own = Strip<kFours>;
  const int me = thread.index(), size = in.size;
  Own before, after, bias;  // weights, which are there already
  if (in.before != nullptr) before.read(in.before, me, size);
  if (in.after != nullptr) after.read(in.after, me, size);
  if (in.bias != nullptr) bias.read(in.bias, me, size);
  thread.follow();
  const int64_t row = thread.block_x(), of_x = in.chosen != nullptr ? in.chosen[row] : row;
  float* const to = in.x + of_x * size;
  Own x;
  if (in.embedding != nullptr) {
    x.read(static_cast<const Bfloat16*>(in.embedding) + static_cast<int64_t>(in.tokens[row]) * size, me, size);
    Own::each(me, size, [&](int f, int) {
      for (float& number : x.of[f].of) number *= in.embedding_scale;
    });
  } else {
    x.read(to, me, size);
  }
  if (in.added != nullptr) {
    Own more;
    more.read(in.added + row * size, me, size);
    if (in.bias != nullptr) Own::each(me, size, [&](int f, int) { add(more.of[f], bias.of[f]); });
    if (in.after != nullptr) {
      const float factor = factor_of(thread, more.squares(), in, shared.sums[0]);
      Own::each(me, size, [&](int f, int) { scale(more.of[f], factor, after.of[f], in.from_one); });
    }
    Own::each(me, size, [&](int f, int) { add(x.of[f], more.of[f]); });
  }
  if (in.embedding != nullptr || in.added != nullptr)
    Own::each(me, size, [&](int f, int i) { gpu::put<kAtOnce>(x.of[f], to + i); });
  if (in.before != nullptr) {
    const float factor = factor_of(thread, x.squares(), in, shared.sums[1]);
    Own::each(me, size, [&](int f, int) { scale(x.of[f], factor, before.of[f], in.from_one); });
  }
  Own::each(me, size, [&](int f, int i) { gpu::put<kAtOnce>(x.of[f], static_cast<Bfloat16*>(in.read) + row * size + i); });
}

/// A head of queries, keys or values.
struct Head {
  const float *from, *bias, *norm;  // bias, norm: or null
  Bfloat16* to;                     // null: nowhere
  bool rotated;
};

SLUICE_ON_GPU Head head_of(const HeadsArguments& in, int64_t row, int head) {
  const int64_t dim = in.head_dim, slot = in.slots[row];
  const int of_keys = head - in.heads, of_values = of_keys - in.kv_heads;
  Head found{in.projected + (row * (in.heads + 2 * in.kv_heads) + head) * dim, nullptr, nullptr, nullptr, of_values < 0};
  const auto biased = [&](const float* bias, int number) { return bias == nullptr ? nullptr : bias + number * dim; };
  const auto cached = [&](void* cache, int number) {
    return slot < 0 ? nullptr : static_cast<Bfloat16*>(cache) + (slot * in.kv_heads + number) * dim;
  };
  if (of_keys < 0) {
    found.bias = biased(in.query_bias, head), found.norm = in.query_norm;
    found.to = static_cast<Bfloat16*>(in.query) + (row * in.heads + head) * dim;
  } else if (of_values < 0) {
    found.bias = biased(in.key_bias, of_keys), found.norm = in.key_norm, found.to = cached(in.keys, of_keys);
  } else {
    found.bias = biased(in.value_bias, of_values), found.to = cached(in.values, of_values);
  }
  return found;
}

/// A warp has a head of a row.
constexpr int kHeadsOfBlock = 4, kHeadThreads = kHeadsOfBlock * kLanes;
inline int head_blocks(const HeadsArguments& in) { return (in.heads + 2 * in.kv_heads + kHeadsOfBlock - 1) / kHeadsOfBlock; }

template <class Thread>
SLUICE_ON_GPU void heads(const HeadsArguments& in, const Thread& thread) {
  thread.follow();
  const int64_t row = thread.block_x();
  const int lane = thread.index() % kLanes, half = in.rotary_dims / 2;
  const float* const angles = in.angles + static_cast<int64_t>(in.positions[row]) * in.rotary_dims;
  const int h = thread.block_y() * kHeadsOfBlock + thread.index() / kLanes;
  if (h >= in.heads + 2 * in.kv_heads) return;
  const Head head = head_of(in, row, h);
  const auto biased = [&](int d) { return head.bias == nullptr ? head.from[d] : head.from[d] + head.bias[d]; };
  float factor = 1;
  if (head.norm != nullptr) {
    float sum = 0;
    for (int d = lane; d < in.head_dim; d += kLanes) sum += biased(d) * biased(d);
    factor = inverse_root(gpu::sum_of_lanes(thread, sum) / static_cast<float>(in.head_dim) + in.eps);
  }
  if (head.to == nullptr) return;  // all lanes of the warp
  const auto normalised = [&](int d) {
    if (head.norm == nullptr) return biased(d);
    return biased(d) * factor * (in.from_one ? head.norm[d] + 1.0f : head.norm[d]);
  };
  for (int d = lane; d < in.head_dim; d += kLanes) {
    float x = normalised(d);
    if (head.rotated && d < in.rotary_dims) {
      const bool first = in.neighbours ? d % 2 == 0 : d < half;
      const int apart = in.neighbours ? 1 : half, pair = in.neighbours ? d / 2 : first ? d : d - half;
      const float other = normalised(first ? d + apart : d - apart) * angles[half + pair];
      x = x * angles[pair] + (first ? -other : other);
    }
    head.to[d] = Element<Bfloat16>::narrow(x);
  }
}

/// A thread block has kThreads * kAtOnce numbers of a row.
inline int gate_blocks(const GateArguments& in) { return (in.size + kThreads * kAtOnce - 1) / (kThreads * kAtOnce); }

template <class Thread>
SLUICE_ON_GPU void gate(const GateArguments& in, const Thread& thread) {
  const int i = (thread.block_x() * kThreads + thread.index()) * kAtOnce;
  const int64_t row = thread.block_y();
  thread.follow();
  if (i >= in.size) return;
  const auto read = [&](const float* from, const float* bias) {
    Four four = gpu::wide<kAtOnce>(from + i);
    if (bias != nullptr) add(four, gpu::wide<kAtOnce>(bias + i));
    return four;
  };
  const float* const projected = in.projected + row * in.size * (in.gated ? 2 : 1);
  Four out = read(projected + (in.gated ? in.size : 0), in.up_bias);
  if (in.gated) {
    const Four gates = read(projected, in.gate_bias);
    for (int n = 0; n < kAtOnce; ++n) out.of[n] *= gated::activated(in.gate, gates.of[n]).value;
  } else {
    for (float& number : out.of) number = gated::activated(in.gate, number).value;
  }
  gpu::put<kAtOnce>(out, static_cast<Bfloat16*>(in.out) + row * in.size + i);
}

}  // namespace sluice::models::row_kernels
