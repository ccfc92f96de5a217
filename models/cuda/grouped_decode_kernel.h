#pragma once

#include "models/cuda/paged_decode_kernel.h"

// The code of our attention of one new token a sequence for bfloat16 heads of 64 or 128 over blocks of a multiple of 16 tokens:
// what one thread does. As paged_decode_kernel.h, but that up to eight heads that share a key head are rows of products by tensor
// cores, so that reading keys and values is all that takes time.
//
// A warp takes 16 tokens at a time. Lane 4 r + c has, of mma.m16n8k16: head r; of keys the dimensions 8 c to 8 c + 7 of every 32
// of token r, which are the places 2 c, 2 c + 1, 2 c + 8, 2 c + 9 of two products, on both sides; of values the dimensions 8 r to
// 8 r + 7 of every 64 of tokens 2 c, 2 c + 1, 2 c + 8 and 2 c + 9, so that column r of the i-th product is dimension 8 r + i.
// Shares are rounded to bfloat16 before they weigh values, as flash attention does it.
namespace sluice::models::grouped_decode {

using gpu::Bfloat16, gpu::kLanes, gpu::Words, paged_decode::kept, paged_decode::kThreads, paged_decode::kWarps;

constexpr int kHeads = 8;                                            // of a thread block at most
constexpr int kTokens = 16;                                          // of a tile
constexpr int kFewestTiles = paged_decode::kFewestTokens / kTokens;  // of a part

inline bool takes(const PagedDecodeArguments& in) {
  return in.bfloat16 && (in.head_dim == 64 || in.head_dim == 128) && in.block_size % kTokens == 0;
}

/// Of a thread block: what each warp has seen.
template <int kDim>
struct Shared {
  float largest[kWarps][kHeads], sums[kWarps][kHeads], values[kWarps][kHeads][kDim];
};

/// Who a thread is within its block's work.
struct Place {
  int sequence, split, kv_head, first_head, heads;  // of the block
  int warp, line, column;                           // lane 4 line + column
  int first, length;                                // tokens that are seen
  int begin, end;                                   // tiles

  template <class Thread>
  SLUICE_ON_GPU Place(const PagedDecodeArguments& in, const Thread& thread)
      : sequence(thread.block_y()),
        split(thread.block_x() % in.splits),
        warp(thread.index() / kLanes),
        line(thread.index() % kLanes / 4),
        column(thread.index() % 4),
        length(in.lengths[sequence]) {
    const int group = in.heads / in.kv_heads, parts = (group + kHeads - 1) / kHeads, of_heads = thread.block_x() / in.splits;
    kv_head = of_heads / parts;
    const int behind = of_heads % parts * kHeads;
    first_head = kv_head * group + behind;
    heads = group - behind < kHeads ? group - behind : kHeads;
    first = in.window > 0 && length > in.window ? length - in.window : 0;
    const int first_tile = first / kTokens, tiles = (length + kTokens - 1) / kTokens;
    const int apart = (tiles - first_tile + in.splits - 1) / in.splits, each = apart < kFewestTiles ? kFewestTiles : apart;
    begin = first_tile + split * each;
    end = begin + each < tiles ? begin + each : tiles;
  }

  SLUICE_ON_GPU bool sees(int token) const { return token >= first && token < length; }
};

/// Keys and values of a tile, as the lane has them.
template <int kDim>
struct Tile {
  Words keys[2][kDim / 32];    // of tokens 0 to 7, 8 to 15
  Words values[4][kDim / 64];  // of tokens 2 c, 2 c + 1, 2 c + 8, 2 c + 9

  SLUICE_ON_GPU static int token_of_value(int v, int column) { return 2 * column + v % 2 + v / 2 * 8; }

  SLUICE_ON_GPU void read(const PagedDecodeArguments& in, const Place& place, int tile) {
    const int token = tile * kTokens;
    const auto whole = static_cast<uint32_t>(static_cast<uint64_t>(static_cast<uint32_t>(token)) * in.block_inverse >> 32);
    const int64_t block = in.table[static_cast<int64_t>(place.sequence) * in.table_width + whole];
    const int64_t slot = block * in.block_size + token - static_cast<int64_t>(whole) * in.block_size;
    const int64_t row = (slot * in.kv_heads + place.kv_head) * kDim, apart = static_cast<int64_t>(in.kv_heads) * kDim;
    SLUICE_UNROLLED
    for (int n = 0; n < 2; ++n) {
      const Bfloat16* const key = static_cast<const Bfloat16*>(in.keys) + row + (n * 8 + place.line) * apart + place.column * 8;
      SLUICE_UNROLLED
      for (int c = 0; c < kDim / 32; ++c) keys[n][c] = gpu::load_words(key + c * 32);
    }
    SLUICE_UNROLLED
    for (int v = 0; v < 4; ++v) {
      const int of_tile = token_of_value(v, place.column);
      const Bfloat16* const value = static_cast<const Bfloat16*>(in.values) + row + of_tile * apart + place.line * 8;
      const bool seen = place.sees(token + of_tile);
      SLUICE_UNROLLED
      for (int c = 0; c < kDim / 64; ++c) values[v][c] = seen ? gpu::load_words(value + c * 64) : Words{};
    }
  }
};

/// What a warp has seen so far: of the lane's head, sums of its own tokens; dimensions as the products give them.
template <int kDim>
struct Seen {
  float largest = -INFINITY, sum = 0;
  float values[kDim / 8][4] = {};
};

template <int kDim, class Thread>
SLUICE_ON_GPU void add_tile(const PagedDecodeArguments& in, const Place& place, int tile, const Tile<kDim>& of,
                            const Words (&query)[kDim / 32], Seen<kDim>& seen, const Thread& thread) {
  float scores[2][4] = {};
  SLUICE_UNROLLED
  for (int n = 0; n < 2; ++n) {
    SLUICE_UNROLLED
    for (int c = 0; c < kDim / 32; ++c) {
      SLUICE_UNROLLED
      for (int k = 0; k < 4; k += 2) {
        const uint32_t a[4] = {query[c].of[k], 0, query[c].of[k + 1], 0}, b[2] = {of.keys[n][c].of[k], of.keys[n][c].of[k + 1]};
        thread.multiply(scores[n], a, b);
      }
    }
  }
  float top = seen.largest;
  SLUICE_UNROLLED
  for (int n = 0; n < 2; ++n) {
    SLUICE_UNROLLED
    for (int i = 0; i < 2; ++i) {
      const int token = tile * kTokens + n * 8 + place.column * 2 + i;
      scores[n][i] = place.sees(token) ? paged_decode::capped(in, scores[n][i] * in.scale) : -INFINITY;
      top = fmaxf(top, scores[n][i]);
    }
  }
  SLUICE_UNROLLED
  for (int step = 1; step < 4; step *= 2) top = fmaxf(top, thread.of_lane_across(step, top));
  const float share = kept(seen.largest, top);
  seen.largest = top, seen.sum *= share;
  SLUICE_UNROLLED
  for (int i = 0; i < kDim / 8; ++i) seen.values[i][0] *= share, seen.values[i][1] *= share;
  SLUICE_UNROLLED
  for (int n = 0; n < 2; ++n) {
    SLUICE_UNROLLED
    for (int i = 0; i < 2; ++i) scores[n][i] = kept(scores[n][i], top), seen.sum += scores[n][i];
  }
  const uint32_t a[4] = {gpu::narrow_pair(scores[0][0], scores[0][1]), 0, gpu::narrow_pair(scores[1][0], scores[1][1]), 0};
  SLUICE_UNROLLED
  for (int c = 0; c < kDim / 64; ++c) {
    SLUICE_UNROLLED
    for (int w = 0; w < 4; ++w) {
      const auto word = [&](int v) { return of.values[v][c].of[w]; };
      const uint32_t even[2] = {gpu::lower_halves(word(0), word(1)), gpu::lower_halves(word(2), word(3))};
      const uint32_t odd[2] = {gpu::upper_halves(word(0), word(1)), gpu::upper_halves(word(2), word(3))};
      thread.multiply(seen.values[c * 8 + 2 * w], a, even);
      thread.multiply(seen.values[c * 8 + 2 * w + 1], a, odd);
    }
  }
}

/// A sequence without tokens gives zeros.
template <int kDim, class Thread>
SLUICE_ON_GPU void attend(const PagedDecodeArguments& in, Shared<kDim>& shared, const Thread& thread) {
  thread.follow();
  const Place place(in, thread);
  const int64_t row = in.rows != nullptr ? in.rows[place.sequence] : place.sequence;
  Words query[kDim / 32];
  const int64_t head = row * in.heads + place.first_head + place.line;
  SLUICE_UNROLLED
  for (int c = 0; c < kDim / 32; ++c) {
    const Bfloat16* const of_head = static_cast<const Bfloat16*>(in.query) + head * kDim + c * 32 + place.column * 8;
    query[c] = place.line < place.heads ? gpu::load_words(of_head) : Words{};
  }
  Seen<kDim> seen;
  for (int tile = place.begin + place.warp; tile < place.end; tile += kWarps) {
    Tile<kDim> of;
    of.read(in, place, tile);
    add_tile<kDim>(in, place, tile, of, query, seen, thread);
  }
  for (int step = 1; step < 4; step *= 2) seen.sum += thread.of_lane_across(step, seen.sum);
  if (place.column == 0) shared.largest[place.warp][place.line] = seen.largest, shared.sums[place.warp][place.line] = seen.sum;
  SLUICE_UNROLLED
  for (int i = 0; i < kDim / 8; ++i) {
    SLUICE_UNROLLED
    for (int j = 0; j < 2; ++j)
      shared.values[place.warp][place.line][i / 8 * 64 + (2 * place.column + j) * 8 + i % 8] = seen.values[i][j];
  }
  thread.meet();
  paged_decode::put_together<Bfloat16>(in, shared, place.sequence, place.split, row, place.first_head, place.heads, thread);
}

}  // namespace sluice::models::grouped_decode
