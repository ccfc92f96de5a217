#pragma once

#include "models/cuda/thread_maths.h"
#include "models/cuda/training_kernels.h"

// The bodies of what an optimizer does to flat buffers: one step, and the sum of squares. Their plain reference is
// models/kernels/adamw_kernel.h.
namespace sluice::models::flat_step {

/// A thread takes kPack neighbours. Narrow: the type that `bfloat16` means.
template <int kThreads, int kPack, class Narrow, class Thread>
SLUICE_ON_GPU void adamw(const AdamWArguments& in, const Thread& thread) {
  const int64_t at = (int64_t{thread.block_x()} * kThreads + thread.index()) * kPack;
  if (at >= in.count) return;
  auto weight = gpu::wide<kPack>(in.weights + at), gradient = gpu::wide<kPack>(in.gradients + at);
  auto first = gpu::wide<kPack>(in.first_moments + at), second = gpu::wide<kPack>(in.second_moments + at);
  for (int i = 0; i < kPack; ++i) {
    const float g = gradient.of[i] * in.gradient_scale;
    first.of[i] += in.new_first * (g - first.of[i]);
    second.of[i] += in.new_second * (g * g - second.of[i]);
    const float step = in.step_size * first.of[i] / (sqrtf(second.of[i]) * in.root_scale + in.epsilon);
    weight.of[i] = weight.of[i] * in.kept - step;
    gradient.of[i] = 0;
  }
  gpu::put<kPack>(weight, in.weights + at);
  gpu::put<kPack>(gradient, in.gradients + at);
  gpu::put<kPack>(first, in.first_moments + at);
  gpu::put<kPack>(second, in.second_moments + at);
  if (in.written == nullptr) return;
  if (in.bfloat16)
    gpu::put<kPack>(weight, static_cast<Narrow*>(in.written) + at);
  else
    gpu::put<kPack>(weight, static_cast<float*>(in.written) + at);
}

template <int kThreads>
struct Shared {
  double sums[kThreads];
};

/// Over all threads of the block, in an order of their numbers alone: in thread 0.
template <int kThreads, class Thread>
SLUICE_ON_GPU double sum_of_block(double sum, Shared<kThreads>& shared, const Thread& thread) {
  shared.sums[thread.index()] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    thread.meet();
    if (thread.index() < half) shared.sums[thread.index()] += shared.sums[thread.index() + half];
  }
  return shared.sums[thread.index()];
}

/// The squares of kSquaresOfABlock numbers.
template <int kThreads, int kPack, class Thread>
SLUICE_ON_GPU void squares_of_block(const SquaresArguments& in, Shared<kThreads>& shared, const Thread& thread) {
  const int64_t begin = int64_t{thread.block_x()} * kSquaresOfABlock;
  const int64_t end = in.count - begin < kSquaresOfABlock ? in.count : begin + kSquaresOfABlock;
  double sum = 0;
  for (int64_t at = begin + int64_t{thread.index()} * kPack; at < end; at += kThreads * kPack) {
    const auto values = gpu::wide<kPack>(in.values + at);
    for (int i = 0; i < kPack; ++i) sum += double{values.of[i]} * double{values.of[i]};
  }
  sum = sum_of_block<kThreads>(sum, shared, thread);
  if (thread.index() == 0) in.partial[thread.block_x()] = sum;
}

/// One block: of all partial sums.
template <int kThreads, class Thread>
SLUICE_ON_GPU void total_of_partial(const SquaresArguments& in, Shared<kThreads>& shared, const Thread& thread) {
  const int64_t parts = (in.count + kSquaresOfABlock - 1) / kSquaresOfABlock;
  double sum = 0;
  for (int64_t part = thread.index(); part < parts; part += kThreads) sum += in.partial[part];
  sum = sum_of_block<kThreads>(sum, shared, thread);
  if (thread.index() == 0) *in.total = sum;
}

}  // namespace sluice::models::flat_step
