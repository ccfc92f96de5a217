#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/sampling.h"
#include "models/portable/texts.h"

namespace sluice::models::portable {

/// What the penalties make of logits [R,V], as SamplingOptions says. Allocates 8 bytes a logit and some 40 a token of `texts`.
///
/// prompts  [R,1] int64 tokens of each text that are its prompt
at::Tensor penalized(const at::Tensor& logits, const Texts& texts, const at::Tensor& prompts, const SamplingOptions& options);

}  // namespace sluice::models::portable
