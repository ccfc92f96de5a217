#pragma once

#include "models/cuda/training_kernels.h"

// What the files of libsluice_cuda.so know of each other, of training: launches, one file each.
namespace sluice::models {

const char* launch_rms_norm(const RmsNormArguments& in);
const char* launch_rms_norm_backward(const RmsNormBackwardArguments& in);
const char* launch_gated(const GatedArguments& in);
const char* launch_gated_backward(const GatedBackwardArguments& in);
const char* launch_rotary(const RotaryArguments& in);
const char* launch_logit_rows(const LogitRowsArguments& in);
const char* launch_logit_slopes(const LogitSlopesArguments& in);
const char* launch_adamw(const AdamWArguments& in);
const char* launch_squares(const SquaresArguments& in);

constexpr TrainingKernels kTrainingKernels{
    &launch_rms_norm,   &launch_rms_norm_backward, &launch_gated, &launch_gated_backward, &launch_rotary,
    &launch_logit_rows, &launch_logit_slopes,      &launch_adamw, &launch_squares};

}  // namespace sluice::models
