#pragma once

#include <cstdint>
#include <type_traits>

#include "models/cuda/gpu_thread.h"
#include "models/cuda/own_kernels.h"

// The code of our attention of one new token a sequence over keys and values that lie in blocks: what one thread does. Its plain
// reference is portable::paged_attention().
//
// A thread block computes some query heads that share a key head, for a part of one sequence's tokens, so that keys and values
// are read once: each key by neighbouring lanes, 16 bytes a lane. Every group of lanes keeps a running softmax (Milakov and
// Gimelshein 2018, "Online normalizer calculation for softmax"); they are put together at the end, and the parts of a sequence by
// combine() (Dao et al. 2023, "Flash-decoding"). Sums are float32, in an order that the arguments alone decide.
namespace sluice::models::paged_decode {

using gpu::Element, gpu::kLanes, gpu::Words;

constexpr int kWarps = 4, kThreads = kWarps * kLanes;
constexpr int kMostHeads = 4;      // query heads of a thread block
constexpr int kFewestTokens = 64;  // of a part
constexpr int kMostSplits = 64;

/// A lane has kChunks times 16 bytes of a key; kGroup lanes, a power of two, share it.
template <class T_, int kGroup_, int kChunks_, int kHeads_>
struct Shape {
  using T = T_;
  static constexpr int kGroup = kGroup_, kChunks = kChunks_, kHeads = kHeads_;
  static constexpr int kInWords = Element<T>::kInWords, kDims = kChunks * kInWords;  // of a lane
  static constexpr int kKeys = kLanes / kGroup;                                      // that a warp reads at once
  static constexpr int kUnrolled = kHeads * kChunks > 4 ? 2 : 4;                     // such reads in flight
};

/// Of a thread block: what each warp has seen.
template <class S>
struct Shared {
  float largest[kWarps][S::kHeads], sums[kWarps][S::kHeads], values[kWarps][S::kHeads][S::kGroup * S::kDims];
};

/// Thread blocks along x and y.
struct Grid {
  int32_t x, y;
};

/// Query heads of a thread block.
inline int32_t heads_at_once(const PagedDecodeArguments& in) { return in.heads == in.kv_heads ? 1 : kMostHeads; }
/// Thread blocks that share a key head.
inline int32_t parts_of_group(const PagedDecodeArguments& in, int32_t at_once) {
  return (in.heads / in.kv_heads + at_once - 1) / at_once;
}
inline Grid grid_of(const PagedDecodeArguments& in, int32_t at_once) {
  return {in.splits * in.kv_heads * parts_of_group(in, at_once), in.sequences};
}
inline Grid grid_of_combine(const PagedDecodeArguments& in) { return {in.heads, in.sequences}; }

/// Parts of each sequence of `longest` tokens at most, so that a GPU is busy.
inline int32_t splits_for(const PagedDecodeArguments& in, int32_t at_once, int64_t longest) {
  constexpr int64_t kBlocks = 288, kMost = kMostSplits;  // two a multiprocessor of the largest cards
  const int64_t without = int64_t{in.sequences} * in.kv_heads * parts_of_group(in, at_once);
  const int64_t wanted = (kBlocks + without - 1) / (without > 0 ? without : 1);
  const int64_t most = (longest + kFewestTokens - 1) / kFewestTokens;
  const int64_t splits = wanted < most ? wanted : most;
  return static_cast<int32_t>(splits < 1 ? 1 : splits < kMost ? splits : kMost);
}
/// Numbers of float32 that `partials` needs.
inline int64_t partial_numbers(const PagedDecodeArguments& in) {
  return in.splits == 1 ? 0 : int64_t{in.sequences} * in.heads * in.splits * (in.head_dim + 2);
}

template <class T, int kHeads, class Use>
void with_shape_of_heads(int32_t head_dim, const Use& use) {
  constexpr int kInWords = Element<T>::kInWords;
  if (head_dim <= 8 * kInWords) return use(Shape<T, 8, 1, kHeads>());
  if (head_dim <= 16 * kInWords) return use(Shape<T, 16, 1, kHeads>());
  use(Shape<T, 32, kMostHeadDim / (32 * kInWords), kHeads>());
}

/// Calls `use` with the Shape for these arguments.
template <class T, class Use>
void with_shape(const PagedDecodeArguments& in, const Use& use) {
  heads_at_once(in) == 1 ? with_shape_of_heads<T, 1>(in.head_dim, use) : with_shape_of_heads<T, kMostHeads>(in.head_dim, use);
}

/// Who a thread is within its block's work.
template <class S>
struct Place {
  int sequence, split, kv_head, first_head, heads;  // of the block; heads <= kHeads
  int warp, lane, key;                              // key: which of those that its warp reads at once
  int begin, end;                                   // tokens

  template <class Thread>
  SLUICE_ON_GPU Place(const PagedDecodeArguments& in, const Thread& thread)
      : sequence(thread.block_y()),
        split(thread.block_x() % in.splits),
        warp(thread.index() / kLanes),
        lane(thread.index() % kLanes),
        key(lane / S::kGroup) {
    const int group = in.heads / in.kv_heads, parts = (group + S::kHeads - 1) / S::kHeads,
              of_heads = thread.block_x() / in.splits;
    kv_head = of_heads / parts;
    const int behind = of_heads % parts * S::kHeads;
    first_head = kv_head * group + behind;
    heads = group - behind < S::kHeads ? group - behind : S::kHeads;
    const int length = in.lengths[sequence], first = in.window > 0 && length > in.window ? length - in.window : 0;
    const int apart = (length - first + in.splits - 1) / in.splits;
    const int each = apart < kFewestTokens ? kFewestTokens : apart;
    begin = first + split * each;
    end = begin + each < length ? begin + each : length;
  }

  /// The first dimension of a chunk of the lane.
  SLUICE_ON_GPU int dim(int chunk) const { return (chunk * S::kGroup + lane % S::kGroup) * S::kInWords; }
};

/// A lane's 16 bytes of a row from dimension `dim` on; zeros after the last.
template <class S>
SLUICE_ON_GPU Words words_at(const typename S::T* row, int dim, int head_dim) {
  return dim < head_dim ? gpu::load_words(row + dim) : Words{};
}

/// What is left of shares that are relative to `before` where they are relative to `top`.
SLUICE_ON_GPU float kept(float before, float top) { return before == -INFINITY ? 0.0f : expf(before - top); }

/// What a group of lanes has seen so far of one head: the largest score, the sum of shares relative to it, and the values
/// weighted by them.
template <class S>
struct RunningSoftmax {
  float largest = -INFINITY, sum = 0;
  float values[S::kDims] = {};

  SLUICE_ON_GPU void shrink(float top) {
    const float share = kept(largest, top);
    largest = top, sum *= share;
    SLUICE_UNROLLED
    for (int i = 0; i < S::kDims; ++i) values[i] *= share;
  }

  /// With that of other lanes, `step` across.
  template <class Thread>
  SLUICE_ON_GPU void join(const Thread& thread, int step) {
    shrink(fmaxf(largest, thread.of_lane_across(step, largest)));
    sum += thread.of_lane_across(step, sum);
    SLUICE_UNROLLED
    for (int i = 0; i < S::kDims; ++i) values[i] += thread.of_lane_across(step, values[i]);
  }
};

SLUICE_ON_GPU float capped(const PagedDecodeArguments& in, float score) {
  return in.softcap > 0 ? in.softcap * tanhf(score / in.softcap) : score;
}

/// Reads some keys and values of each group of lanes, from token `first` of the warp on, and adds them.
template <class S, class Thread>
SLUICE_ON_GPU void add_tokens(const PagedDecodeArguments& in, const Place<S>& place, int first,
                              const float (&query)[S::kHeads][S::kDims], RunningSoftmax<S> (&seen)[S::kHeads],
                              const Thread& thread) {
  using T = typename S::T;
  const int32_t* table = in.table + static_cast<int64_t>(place.sequence) * in.table_width;
  Words keys[S::kUnrolled][S::kChunks], values[S::kUnrolled][S::kChunks];
  SLUICE_UNROLLED
  for (int u = 0; u < S::kUnrolled; ++u) {
    const int token = first + u * S::kKeys + place.key;
    const bool there = token < place.end;
    const auto whole = static_cast<uint32_t>(static_cast<uint64_t>(static_cast<uint32_t>(token)) * in.block_inverse >> 32);
    const int64_t block = there ? table[whole] : 0,
                  slot = block * in.block_size + token - static_cast<int64_t>(whole) * in.block_size;
    const int64_t row = (slot * in.kv_heads + place.kv_head) * in.head_dim;
    SLUICE_UNROLLED
    for (int c = 0; c < S::kChunks; ++c) {
      keys[u][c] = there ? words_at<S>(static_cast<const T*>(in.keys) + row, place.dim(c), in.head_dim) : Words{};
      values[u][c] = there ? words_at<S>(static_cast<const T*>(in.values) + row, place.dim(c), in.head_dim) : Words{};
    }
  }
  SLUICE_UNROLLED
  for (int h = 0; h < S::kHeads; ++h) {
    float scores[S::kUnrolled], top = seen[h].largest;
    SLUICE_UNROLLED
    for (int u = 0; u < S::kUnrolled; ++u) {
      float score = 0;
      SLUICE_UNROLLED
      for (int i = 0; i < S::kDims; ++i) score += query[h][i] * Element<T>::wide(keys[u][i / S::kInWords], i % S::kInWords);
      score = capped(in, gpu::sum_of_lanes(thread, score, S::kGroup));
      scores[u] = first + u * S::kKeys + place.key < place.end ? score : -INFINITY;
      top = fmaxf(top, scores[u]);
    }
    seen[h].shrink(top);
    SLUICE_UNROLLED
    for (int u = 0; u < S::kUnrolled; ++u) {
      const float share = kept(scores[u], top);
      seen[h].sum += share;
      SLUICE_UNROLLED
      for (int i = 0; i < S::kDims; ++i)
        seen[h].values[i] += share * Element<T>::wide(values[u][i / S::kInWords], i % S::kInWords);
    }
  }
}

/// What the warps of a block have seen of its heads, as Shared has it, put together: the result of a sequence, or a part of it.
template <class T, class OfWarps, class Thread>
SLUICE_ON_GPU void put_together(const PagedDecodeArguments& in, const OfWarps& shared, int sequence, int split, int64_t row,
                                int first_head, int heads, const Thread& thread) {
  for (int i = thread.index(); i < heads * in.head_dim; i += kThreads) {
    const int h = i / in.head_dim, d = i % in.head_dim;
    float largest = shared.largest[0][h], sum = 0, value = 0;
    for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, shared.largest[w][h]);
    for (int w = 0; w < kWarps; ++w) {
      const float share = kept(shared.largest[w][h], largest);
      sum += share * shared.sums[w][h];
      value += share * shared.values[w][h][d];
    }
    if (in.splits == 1) {
      static_cast<T*>(in.out)[(row * in.heads + first_head + h) * in.head_dim + d] =
          Element<T>::narrow(sum > 0 ? value / sum : 0.0f);
    } else {
      const int64_t head = static_cast<int64_t>(sequence) * in.heads + first_head + h;
      float* const partial = in.partials + (head * in.splits + split) * (in.head_dim + 2);
      partial[d] = value;
      if (d == 0) partial[in.head_dim] = largest, partial[in.head_dim + 1] = sum;
    }
  }
}

/// A sequence without tokens gives zeros.
template <class S, class Thread>
SLUICE_ON_GPU void attend(const PagedDecodeArguments& in, Shared<S>& shared, const Thread& thread) {
  using T = typename S::T;
  thread.follow();
  const Place<S> place(in, thread);
  const int64_t row = in.rows != nullptr ? in.rows[place.sequence] : place.sequence,
                first_row = row * in.heads + place.first_head;
  float query[S::kHeads][S::kDims];
  RunningSoftmax<S> seen[S::kHeads];
  SLUICE_UNROLLED
  for (int h = 0; h < S::kHeads; ++h) {
    SLUICE_UNROLLED
    for (int c = 0; c < S::kChunks; ++c) {
      const T* of_head = static_cast<const T*>(in.query) + (first_row + h) * in.head_dim;
      const Words words = h < place.heads ? words_at<S>(of_head, place.dim(c), in.head_dim) : Words{};
      SLUICE_UNROLLED
      for (int i = 0; i < S::kInWords; ++i) query[h][c * S::kInWords + i] = Element<T>::wide(words, i) * in.scale;
    }
  }
  constexpr int kOfWarp = S::kKeys * S::kUnrolled;
  for (int token = place.begin + place.warp * kOfWarp; token < place.end; token += kWarps * kOfWarp)
    add_tokens<S>(in, place, token, query, seen, thread);

  SLUICE_UNROLLED
  for (int h = 0; h < S::kHeads; ++h) {
    SLUICE_UNROLLED
    for (int step = S::kGroup; step < kLanes; step *= 2) seen[h].join(thread, step);
    if (place.key == 0) {
      if (place.lane == 0) shared.largest[place.warp][h] = seen[h].largest, shared.sums[place.warp][h] = seen[h].sum;
      SLUICE_UNROLLED
      for (int c = 0; c < S::kChunks; ++c) SLUICE_UNROLLED
      for (int i = 0; i < S::kInWords; ++i) shared.values[place.warp][h][place.dim(c) + i] = seen[h].values[c * S::kInWords + i];
    }
  }
  thread.meet();

  put_together<T>(in, shared, place.sequence, place.split, row, place.first_head, place.heads, thread);
}

/// Of the parts of a head: what each weighs.
struct SharedParts {
  float shares[kMostSplits];
};

/// The parts of one head of one sequence, with in.splits > 1.
template <class T, class Thread>
SLUICE_ON_GPU void combine(const PagedDecodeArguments& in, SharedParts& shared, const Thread& thread) {
  thread.follow();
  const int64_t head = static_cast<int64_t>(thread.block_y()) * in.heads + thread.block_x();
  const int64_t row = in.rows != nullptr ? in.rows[thread.block_y()] : thread.block_y();
  const int size = in.head_dim + 2, lane = thread.index() % kLanes;
  const float* const partials = in.partials + head * in.splits * size;
  float largest = -INFINITY, tops[kMostSplits / kLanes], sum = 0;
  SLUICE_UNROLLED
  for (int i = 0; i < kMostSplits / kLanes; ++i) {
    const int part = lane + i * kLanes;
    tops[i] = part < in.splits ? partials[part * size + in.head_dim] : -INFINITY;
    largest = fmaxf(largest, tops[i]);
  }
  for (int step = kLanes / 2; step > 0; step /= 2) largest = fmaxf(largest, thread.of_lane_across(step, largest));
  SLUICE_UNROLLED
  for (int i = 0; i < kMostSplits / kLanes; ++i) {
    const int part = lane + i * kLanes;
    const float share = kept(tops[i], largest);
    if (part < in.splits) sum += share * partials[part * size + in.head_dim + 1];
    if (thread.index() < kLanes) shared.shares[part] = share;
  }
  sum = gpu::sum_of_lanes(thread, sum);
  thread.meet();
  for (int d = thread.index(); d < in.head_dim; d += kThreads) {
    float value = 0;
    for (int part = 0; part < in.splits; part += 4) {
      SLUICE_UNROLLED
      for (int i = 0; i < 4; ++i)
        if (part + i < in.splits) value += shared.shares[part + i] * partials[(part + i) * size + d];
    }
    static_cast<T*>(in.out)[(row * in.heads + thread.block_x()) * in.head_dim + d] =
        Element<T>::narrow(sum > 0 ? value / sum : 0.0f);
  }
}

}  // namespace sluice::models::paged_decode
