#pragma once

#include <ATen/core/Tensor.h>

#include "models/cuda/training_operators.h"

namespace sluice::models {

constexpr const char* kLogitRowsSchema =
    "logit_rows(Tensor logits, Tensor targets, float temperature, float softcap, bool entropy) -> (Tensor, Tensor, Tensor)";
constexpr const char* kLogitSlopesSchema =
    "logit_slopes(Tensor logits, Tensor targets, Tensor log_sums, Tensor? entropies, Tensor? of_logprobs, Tensor? of_entropies, "
    "float temperature, float softcap, Tensor(a!) slopes) -> ()";

/// Of each row of logits [c,V] float32, as a product gave them, under softmax(cap(logits) / temperature).
struct LogitRows {
  at::Tensor logprobs;   // [c] of targets [c] int64
  at::Tensor log_sums;   // [c] logarithms of the sums that the softmax divides by, for the backward
  at::Tensor entropies;  // [c], or of nothing unless wanted
};
LogitRows own_logit_rows(const at::Tensor& logits, const at::Tensor& targets, double temperature, double softcap, bool entropy);

/// Fills slopes [c,V], float32 or bfloat16, with the gradient of the logits; `slopes` may be `logits`. What `rows` has is of
/// these logits. Gradients [c]; undefined ones are zeros.
void own_logit_slopes(const at::Tensor& logits, const at::Tensor& targets, const LogitRows& rows, const at::Tensor& of_logprobs,
                      const at::Tensor& of_entropies, double temperature, double softcap, const at::Tensor& slopes);

void offer_logit_rows(torch::Library& library, const TrainingKernels& kernels);

}  // namespace sluice::models
