#pragma once

#include "models/cuda/gpu_thread.h"
#include "models/cuda/step_kernels.h"

// The code of our draws from rows of logits: what one thread does. Its plain reference is portable::Sampler. Three launches:
// tops() and masses() by thread blocks of a stretch of a row each, choose() by one a draw. Weights e^((logit - top) scale) are
// float32, their sums float64, of runs first.
namespace sluice::models::drawing {

using gpu::kLanes;

constexpr int kWarps = 8, kThreads = kWarps * kLanes;
constexpr int kRun = kThreads;  // weights: one a thread where a run is looked into
constexpr int kRunsOfStretch = 2 * kWarps;
constexpr int kStretch = kRun * kRunsOfStretch;

inline int64_t stretches_of(const DrawArguments& in) { return (in.vocabulary + kStretch - 1) / kStretch; }

/// The largest logit of a stretch, the first of equal ones, and whether all are finite.
struct Top {
  float logit;
  int32_t id;
  int32_t finite;
  int32_t unused;
};

/// Memory for what the launches tell each other: tops [draws, stretches], then totals [draws, stretches, kRunsOfStretch].
inline int64_t scratch_bytes(const DrawArguments& in) {
  return in.draws * stretches_of(in) *
         (static_cast<int64_t>(sizeof(Top)) + kRunsOfStretch * static_cast<int64_t>(sizeof(double)));
}

struct Scratch {
  Top* tops;
  double* totals;
  int stretches;

  SLUICE_ON_GPU Scratch(const DrawArguments& in, int draw) : stretches((in.vocabulary + kStretch - 1) / kStretch) {
    Top* const all = static_cast<Top*>(in.scratch);
    const int64_t before = static_cast<int64_t>(draw) * stretches;
    tops = all + before;
    totals = reinterpret_cast<double*>(all + static_cast<int64_t>(in.draws) * stretches) + before * kRunsOfStretch;
  }
};

SLUICE_ON_GPU const float* row_of(const DrawArguments& in, int draw) {
  return in.logits + static_cast<int64_t>(in.rows[draw]) * in.vocabulary;
}

SLUICE_ON_GPU bool is_finite(float x) { return (gpu::bits_of_float(x) & 0x7f800000u) != 0x7f800000u; }

/// A number that is not finite is above all, so that its place does not matter.
SLUICE_ON_GPU Top larger(const Top& a, const Top& b) {
  const bool second = b.logit > a.logit || (b.logit == a.logit && b.id < a.id);
  return {second ? b.logit : a.logit, second ? b.id : a.id, a.finite & b.finite, 0};
}

template <class Thread>
SLUICE_ON_GPU Top larger_of_lanes(Top top, const Thread& thread) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const auto theirs = [&](int32_t x) {
      return static_cast<int32_t>(gpu::bits_of_float(thread.of_lane_across(step, gpu::float_of_bits(static_cast<uint32_t>(x)))));
    };
    Top other{thread.of_lane_across(step, top.logit), theirs(top.id), theirs(top.finite), 0};
    top = larger(top, other);
  }
  return top;
}

struct SharedTops {
  Top of[kWarps];
};

template <class Thread>
SLUICE_ON_GPU void tops(const DrawArguments& in, SharedTops& shared, const Thread& thread) {
  const int draw = thread.block_y(), first = thread.block_x() * kStretch, lane = thread.index() % kLanes;
  thread.follow();
  const float* const row = row_of(in, draw);
  Top top{-INFINITY, in.vocabulary, 1, 0};
  for (int i = first + thread.index(); i < first + kStretch && i < in.vocabulary; i += kThreads) {
    const float logit = row[i];
    top = larger(top, {logit, i, is_finite(logit) ? 1 : 0, 0});
  }
  top = larger_of_lanes(top, thread);
  if (lane == 0) shared.of[thread.index() / kLanes] = top;
  thread.meet();
  if (thread.index() != 0) return;
  for (int w = 1; w < kWarps; ++w) top = larger(top, shared.of[w]);
  Scratch(in, draw).tops[thread.block_x()] = top;
}

/// Of a row.
template <class Thread>
SLUICE_ON_GPU Top top_of(const Scratch& scratch, const Thread& thread) {
  Top top{-INFINITY, 0x7fffffff, 1, 0};
  for (int s = thread.index() % kLanes; s < scratch.stretches; s += kLanes) top = larger(top, scratch.tops[s]);
  return larger_of_lanes(top, thread);
}

SLUICE_ON_GPU float weight_of(const DrawArguments& in, const float* row, int id, float top) {
  return id < in.vocabulary ? expf((row[id] - top) * in.scale) : 0.0f;
}

template <class Thread>
SLUICE_ON_GPU double across(const Thread& thread, int step, double x) {
  uint32_t words[2];
  memcpy(words, &x, sizeof x);
  for (uint32_t& word : words) word = gpu::bits_of_float(thread.of_lane_across(step, gpu::float_of_bits(word)));
  memcpy(&x, words, sizeof x);
  return x;
}

template <class Thread>
SLUICE_ON_GPU void masses(const DrawArguments& in, const Thread& thread) {
  thread.follow();
  const int draw = thread.block_y(), lane = thread.index() % kLanes;
  const Scratch scratch(in, draw);
  const float* const row = row_of(in, draw);
  const float top = top_of(scratch, thread).logit;
  for (int run = thread.index() / kLanes; run < kRunsOfStretch; run += kWarps) {
    const int first = thread.block_x() * kStretch + run * kRun;
    double sum = 0;
    for (int i = lane; i < kRun; i += kLanes) sum += weight_of(in, row, first + i, top);
    for (int step = kLanes / 2; step > 0; step /= 2) sum += across(thread, step, sum);
    if (lane == 0) scratch.totals[thread.block_x() * kRunsOfStretch + run] = sum;
  }
}

struct SharedChoice {
  double sums[kThreads];  // of each thread's runs
  float weights[kRun];
  double before, wanted;
  int run;
};

/// The first place whose weights, those before it with them, are more than what is wanted; `before` is what lies before it. Where
/// rounding leaves a little over, the last place that has any.
struct Found {
  int place;
  double before;
};
template <class Weight>
SLUICE_ON_GPU Found find(int count, double wanted, double before, const Weight& weight) {
  Found last{0, before};
  for (int i = 0; i < count; ++i) {
    const double here = weight(i);
    if (here > 0) last = {i, before};
    if (before + here > wanted) return {i, before};
    before += here;
  }
  return last;
}

template <class Thread>
SLUICE_ON_GPU void choose(const DrawArguments& in, SharedChoice& shared, const Thread& thread) {
  thread.follow();
  const int draw = thread.block_x(), me = thread.index();
  const Scratch scratch(in, draw);
  const float* const row = row_of(in, draw);
  const Top top = top_of(scratch, thread);
  const int runs = scratch.stretches * kRunsOfStretch, each = (runs + kThreads - 1) / kThreads;
  const double uniform = in.uniform[draw];
  double sum = 0;
  for (int r = me * each; r < (me + 1) * each && r < runs; ++r) sum += scratch.totals[r];
  shared.sums[me] = sum;
  thread.meet();
  if (me == 0) {
    double total = 0;
    for (int t = 0; t < kThreads; ++t) total += shared.sums[t];
    shared.wanted = total * uniform;
    const Found part = find(kThreads, shared.wanted, 0, [&](int t) { return shared.sums[t]; });
    const int first = part.place * each, count = first + each < runs ? each : runs - first;
    const Found found = find(count, shared.wanted, part.before, [&](int r) { return scratch.totals[first + r]; });
    shared.run = first + found.place, shared.before = found.before;
    shared.sums[0] = total;
  }
  thread.meet();
  shared.weights[me] = weight_of(in, row, shared.run * kRun + me, top.logit);
  thread.meet();
  if (me != 0) return;
  const bool likeliest = uniform < 0;
  const Found found = find(kRun, shared.wanted, shared.before, [&](int i) { return static_cast<double>(shared.weights[i]); });
  const int id = likeliest ? top.id : shared.run * kRun + found.place;
  in.out[3 * draw] = top.finite != 0 ? id : -1;
  in.out[3 * draw + 1] = top.finite != 0 ? static_cast<double>(row[id]) - top.logit : 0;
  in.out[3 * draw + 2] = shared.sums[0];
}

}  // namespace sluice::models::drawing
