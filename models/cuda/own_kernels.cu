// What libsluice_cuda.so exports.

#include "models/cuda/own_kernels.h"

#include "models/cuda/step_parts.h"
#include "models/cuda/training_parts.h"

namespace sluice::models {
namespace {

constexpr StepKernels kStep{.open_library = &open_library,
                            .close_library = &close_library,
                            .product = &product,
                            .residual = &residual,
                            .heads = &heads,
                            .gated_product = &gated_product,
                            .draw_bytes = &draw_bytes,
                            .draw = &draw,
                            .begin_recording = &begin_recording,
                            .end_recording = &end_recording,
                            .play = &play,
                            .forget = &forget};
constexpr OwnKernels kKernels{.version = kOwnKernelsVersion,
                              .plan_paged_decode = &plan_paged_decode,
                              .paged_decode_attention = &paged_decode_attention,
                              .step = &kStep,
                              .training = kTrainingKernels};

}  // namespace
}  // namespace sluice::models

const sluice::models::OwnKernels* sluice_own_kernels() { return &sluice::models::kKernels; }
