#pragma once

#include "models/cuda/thread_maths.h"
#include "models/cuda/training_kernels.h"

// The bodies of activation(gate) * up and its backward: a thread takes kPack neighbours. The plain reference is activated()
// (models/layers/tensor_maths.h) times up.
namespace sluice::models::gated {

/// An activation at a point, and its slope there.
struct Activated {
  float value, slope;
};

SLUICE_ON_GPU Activated silu(float x) {
  const float share = 1 / (1 + expf(-x));
  return {x * share, share * (1 + x * (1 - share))};
}

SLUICE_ON_GPU Activated gelu_tanh(float x) {
  constexpr float kSteep = 0.7978845608028654f, kCubic = 0.044715f;  // sqrt(2 / pi)
  const float bend = tanhf(kSteep * (x + kCubic * x * x * x));
  return {0.5f * x * (1 + bend), 0.5f * (1 + bend) + 0.5f * x * (1 - bend * bend) * kSteep * (1 + 3 * kCubic * x * x)};
}

SLUICE_ON_GPU Activated gelu(float x) {
  constexpr float kHalfRoot = 0.7071067811865476f, kDensity = 0.3989422804014327f;  // sqrt(1 / 2), 1 / sqrt(2 pi)
  const float below = 0.5f * (1 + erff(x * kHalfRoot));
  return {x * below, below + x * kDensity * expf(-0.5f * x * x)};
}

SLUICE_ON_GPU Activated activated(GateKind kind, float x) {
  if (kind == GateKind::kSilu) return silu(x);
  return kind == GateKind::kGeluTanh ? gelu_tanh(x) : gelu(x);
}

template <int kThreads, int kPack, class Thread>
SLUICE_ON_GPU int64_t first_of(const Thread& thread) {
  return (int64_t{thread.block_x()} * kThreads + thread.index()) * kPack;
}

template <int kThreads, int kPack, class T, class Thread>
SLUICE_ON_GPU void forward(const GatedArguments& in, const Thread& thread) {
  const int64_t at = first_of<kThreads, kPack>(thread);
  if (at >= in.count) return;
  gpu::Pack<float, kPack> gate = gpu::wide<kPack>(in.gate + at);
  const gpu::Pack<float, kPack> up = gpu::wide<kPack>(in.up + at);
  for (int i = 0; i < kPack; ++i) gate.of[i] = activated(in.kind, gate.of[i]).value * up.of[i];
  gpu::put<kPack>(gate, static_cast<T*>(in.out) + at);
}

template <int kThreads, int kPack, class Grad, class Result, class Thread>
SLUICE_ON_GPU void backward(const GatedBackwardArguments& in, const Thread& thread) {
  const int64_t at = first_of<kThreads, kPack>(thread);
  if (at >= in.count) return;
  const gpu::Pack<float, kPack> grad = gpu::wide<kPack>(static_cast<const Grad*>(in.grad) + at);
  gpu::Pack<float, kPack> gate = gpu::wide<kPack>(in.gate + at), up = gpu::wide<kPack>(in.up + at);
  for (int i = 0; i < kPack; ++i) {
    const Activated of_gate = activated(in.kind, gate.of[i]);
    gate.of[i] = grad.of[i] * up.of[i] * of_gate.slope;
    up.of[i] = grad.of[i] * of_gate.value;
  }
  gpu::put<kPack>(gate, static_cast<Result*>(in.of_gate) + at);
  gpu::put<kPack>(up, static_cast<Result*>(in.of_up) + at);
}

}  // namespace sluice::models::gated
