#include "models/cuda/training_operators.h"

#include <torch/library.h>

#include "base/error.h"
#include "models/cuda/flat_step.h"
#include "models/cuda/gated.h"
#include "models/cuda/logit_rows.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/rms_norm.h"
#include "models/cuda/rotary.h"

namespace sluice::models {
namespace {

// LibTorch holds what it is told as long as the process lives: see paged_decode_attention.cpp.
torch::Library& kept_library(torch::Library::Kind kind, std::optional<c10::DispatchKey> key) {
  return *new torch::Library(kind, "sluice", key, __FILE__, __LINE__);
}

bool declared_training_operators() {
  torch::Library& library = kept_library(torch::Library::FRAGMENT, std::nullopt);
  for (const char* schema : {kRmsNormSchema, kRmsNormBackwardSchema, kGatedSchema, kGatedBackwardSchema, kRotarySchema,
                             kLogitRowsSchema, kLogitSlopesSchema, kAdamWStepSchema, kSumOfSquaresSchema})
    library.def(schema);
  return true;
}

bool offered_training_operators() {
  offer_training_operators(kept_library(torch::Library::IMPL, c10::DispatchKey::CUDA), own_kernels()->training);
  return true;
}

}  // namespace

void declare_training_operators() { [[maybe_unused]] static const bool once = declared_training_operators(); }

void offer_training_operators() {
  declare_training_operators();
  [[maybe_unused]] static const bool once = offered_training_operators();
}

void offer_training_operators(torch::Library& library, const TrainingKernels& kernels) {
  declare_training_operators();
  offer_rms_norm(library, kernels);
  offer_gated(library, kernels);
  offer_rotary(library, kernels);
  offer_logit_rows(library, kernels);
  offer_flat_step(library, kernels);
}

void check_launched(const char* name, const char* failure) {
  SLUICE_CHECK(failure == nullptr, std::string(name) + ": " + (failure != nullptr ? failure : ""));
}

}  // namespace sluice::models
