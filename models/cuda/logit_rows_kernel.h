#pragma once

#include "models/cuda/thread_maths.h"
#include "models/cuda/training_kernels.h"

// The bodies of log-probabilities and their backward: a thread block takes a row of logits, and reads it once. The plain
// reference is what action_logprobs() of models/portable/ does on devices that have no such kernel.
namespace sluice::models::logit_rows {

/// z of a logit, and the slope of that.
struct Scaled {
  float z, slope;
};

SLUICE_ON_GPU Scaled scaled(float logit, const LogitScaling& by) {
  if (by.softcap == 0) return {logit * by.inverse_temperature, by.inverse_temperature};
  const float bend = tanhf(logit * by.inverse_softcap);
  return {bend * by.softcap * by.inverse_temperature, (1 - bend * bend) * by.inverse_temperature};
}

/// Of some numbers z: the largest, the sum of e^(z - largest), and that with each times z - largest (Milakov and Gimelshein
/// 2018, "Online normalizer calculation for softmax"). Of none the largest is finite too, so that nothing is infinity minus
/// infinity.
struct RunningSums {
  float largest = -3e38f, sum = 0, weighted = 0;

  SLUICE_ON_GPU void move_to(float top) {
    const float shift = largest - top, kept = expf(shift);
    weighted = kept * (weighted + shift * sum);
    sum *= kept;
    largest = top;
  }

  SLUICE_ON_GPU void add(float z) {
    const float share = expf(z - largest);
    sum += share;
    weighted += share * (z - largest);
  }
};

/// Of a thread block: what each warp has.
template <int kThreads>
struct Shared {
  static constexpr int kWarps = kThreads / gpu::kLanes;
  float largest[kWarps], sums[kWarps], weighted[kWarps];
};

/// Of all threads of the block.
template <int kThreads, class Thread>
SLUICE_ON_GPU RunningSums together(RunningSums mine, Shared<kThreads>& shared, const Thread& thread) {
  mine.move_to(gpu::largest_of_lanes(mine.largest, thread));
  const float sum = gpu::sum_of_lanes(thread, mine.sum), weighted = gpu::sum_of_lanes(thread, mine.weighted);
  const int warp = thread.index() / gpu::kLanes;
  if (thread.index() % gpu::kLanes == 0)
    shared.largest[warp] = mine.largest, shared.sums[warp] = sum, shared.weighted[warp] = weighted;
  thread.meet();
  RunningSums all;
  all.largest = shared.largest[0];
  for (int w = 1; w < shared.kWarps; ++w) all.largest = fmaxf(all.largest, shared.largest[w]);
  for (int w = 0; w < shared.kWarps; ++w) {
    const float shift = shared.largest[w] - all.largest, kept = expf(shift);
    all.sum += kept * shared.sums[w];
    all.weighted += kept * (shared.weighted[w] + shift * shared.sums[w]);
  }
  return all;
}

template <int kThreads, int kPack, class Thread>
SLUICE_ON_GPU void forward(const LogitRowsArguments& in, Shared<kThreads>& shared, const Thread& thread) {
  const int64_t row = thread.block_x();
  const float* const logits = in.logits + row * in.vocabulary;
  RunningSums mine;
  for (int64_t at = int64_t{thread.index()} * kPack; at < in.vocabulary; at += int64_t{kThreads} * kPack) {
    gpu::Pack<float, kPack> z = gpu::wide<kPack>(logits + at);
    float top = mine.largest;
    for (int i = 0; i < kPack; ++i) {
      z.of[i] = scaled(z.of[i], in.scaling).z;
      top = fmaxf(top, z.of[i]);
    }
    if (top > mine.largest) mine.move_to(top);
    for (int i = 0; i < kPack; ++i) mine.add(z.of[i]);
  }
  const RunningSums all = together<kThreads>(mine, shared, thread);
  if (thread.index() != 0) return;
  const float log_sum = logf(all.sum);
  in.logprobs[row] = scaled(logits[in.targets[row]], in.scaling).z - all.largest - log_sum;
  in.log_sums[row] = all.largest + log_sum;
  if (in.entropies != nullptr) in.entropies[row] = log_sum - all.weighted / all.sum;
}

/// d logprob / d z = (1 at the target) - probability;  d entropy / d z = -probability * (log probability + entropy)
template <int kThreads, int kPack, class T, class Thread>
SLUICE_ON_GPU void backward(const LogitSlopesArguments& in, const Thread& thread) {
  const int64_t row = thread.block_x(), target = in.targets[row];
  const float* const logits = in.logits + row * in.vocabulary;
  T* const slopes = static_cast<T*>(in.slopes) + row * in.vocabulary;
  const float log_sum = in.log_sums[row], grad = in.of_logprobs != nullptr ? in.of_logprobs[row] : 0;
  const float of_entropy = in.of_entropies != nullptr ? in.of_entropies[row] : 0;
  const float entropy = in.of_entropies != nullptr ? in.entropies[row] : 0;
  for (int64_t at = int64_t{thread.index()} * kPack; at < in.vocabulary; at += int64_t{kThreads} * kPack) {
    gpu::Pack<float, kPack> pack = gpu::wide<kPack>(logits + at);
    for (int i = 0; i < kPack; ++i) {
      const Scaled to = scaled(pack.of[i], in.scaling);
      const float log_share = to.z - log_sum, share = expf(log_share);
      float slope = -share * grad;
      if (at + i == target) slope += grad;
      if (of_entropy != 0) slope -= (log_share + entropy) * share * of_entropy;
      pack.of[i] = slope * to.slope;
    }
    gpu::put<kPack>(pack, slopes + at);
  }
}

}  // namespace sluice::models::logit_rows
