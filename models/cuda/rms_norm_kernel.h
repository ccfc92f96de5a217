#pragma once

#include "models/cuda/thread_maths.h"
#include "models/cuda/training_kernels.h"

// The bodies of the RMS norm (Zhang and Sennrich 2019) and its backward. A thread block takes a row; of the gradient of the
// weight it takes some columns of every so-manieth row, so that no sum has an order of chance. The plain reference is
// at::rms_norm.
namespace sluice::models::rms_norm {

template <int kThreads>
struct Shared {
  float sums[kThreads / gpu::kLanes];
};

SLUICE_ON_GPU float factor(float weight, bool from_one) { return from_one ? weight + 1 : weight; }

template <int kThreads, int kPack, class T, class Thread>
SLUICE_ON_GPU void forward(const RmsNormArguments& in, Shared<kThreads>& shared, const Thread& thread) {
  const int64_t row = thread.block_x(), begin = row * in.size, first = int64_t{thread.index()} * kPack;
  float squares = 0;
  for (int64_t at = first; at < in.size; at += kThreads * kPack) {
    const auto x = gpu::wide<kPack>(in.x + begin + at);
    for (int i = 0; i < kPack; ++i) squares += x.of[i] * x.of[i];
  }
  const float mean = gpu::sum_of_block<kThreads>(squares, shared.sums, thread) / static_cast<float>(in.size);
  const float inverse = 1 / sqrtf(mean + in.eps);
  if (thread.index() == 0) in.inverses[row] = inverse;
  for (int64_t at = first; at < in.size; at += kThreads * kPack) {
    auto x = gpu::wide<kPack>(in.x + begin + at);
    const auto weight = gpu::wide<kPack>(in.weight + at);
    for (int i = 0; i < kPack; ++i) x.of[i] = x.of[i] * inverse * factor(weight.of[i], in.from_one);
    gpu::put<kPack>(x, static_cast<T*>(in.out) + begin + at);
  }
}

/// With n = x / rms: (g w - n mean(g w n)) / rms.
template <int kThreads, int kPack, class T, class Thread>
SLUICE_ON_GPU void backward(const RmsNormBackwardArguments& in, Shared<kThreads>& shared, const Thread& thread) {
  const int64_t row = thread.block_x(), begin = row * in.size, first = int64_t{thread.index()} * kPack;
  const T* const grads = static_cast<const T*>(in.grad) + begin;
  const float inverse = in.inverses[row];
  float along = 0;
  for (int64_t at = first; at < in.size; at += kThreads * kPack) {
    const auto x = gpu::wide<kPack>(in.x + begin + at), weight = gpu::wide<kPack>(in.weight + at);
    const auto grad = gpu::wide<kPack>(grads + at);
    for (int i = 0; i < kPack; ++i) along += grad.of[i] * factor(weight.of[i], in.from_one) * (x.of[i] * inverse);
  }
  const float mean = gpu::sum_of_block<kThreads>(along, shared.sums, thread) / static_cast<float>(in.size);
  for (int64_t at = first; at < in.size; at += kThreads * kPack) {
    auto x = gpu::wide<kPack>(in.x + begin + at);
    const auto weight = gpu::wide<kPack>(in.weight + at);
    const auto grad = gpu::wide<kPack>(grads + at);
    for (int i = 0; i < kPack; ++i)
      x.of[i] = inverse * (grad.of[i] * factor(weight.of[i], in.from_one) - x.of[i] * inverse * mean);
    gpu::put<kPack>(x, in.of_x + begin + at);
  }
}

/// Block (x, y): columns from x * kThreads * kPack on, of the rows y, y + slices, ...
template <int kThreads, int kPack, class T, class Thread>
SLUICE_ON_GPU void weight_sums(const RmsNormBackwardArguments& in, const Thread& thread) {
  const int64_t column = (int64_t{thread.block_x()} * kThreads + thread.index()) * kPack, slice = thread.block_y();
  if (column >= in.size) return;
  gpu::Pack<float, kPack> sums;
  for (int i = 0; i < kPack; ++i) sums.of[i] = 0;
  for (int64_t row = slice; row < in.rows; row += in.slices) {
    const auto x = gpu::wide<kPack>(in.x + row * in.size + column);
    const auto grad = gpu::wide<kPack>(static_cast<const T*>(in.grad) + row * in.size + column);
    const float inverse = in.inverses[row];
    for (int i = 0; i < kPack; ++i) sums.of[i] += grad.of[i] * (x.of[i] * inverse);
  }
  gpu::put<kPack>(sums, in.of_weight + slice * in.size + column);
}

}  // namespace sluice::models::rms_norm
