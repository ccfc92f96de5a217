#pragma once

#include "models/cuda/step_kernels.h"

// What the files of libsluice_cuda.so know of each other. Functions as StepKernels and OwnKernels have them.
namespace sluice::models {

int64_t plan_paged_decode(PagedDecodeArguments& arguments, int64_t longest);
const char* paged_decode_attention(const PagedDecodeArguments& arguments);

/// Few enough rows for launch_skinny_product().
bool is_skinny(const StepProductArguments& arguments);
void launch_skinny_product(const StepProductArguments& arguments);

const char* open_library(int32_t device, void* memory, int64_t bytes, void** library);
void close_library(void* library);
const char* product(const StepProductArguments& arguments);

const char* residual(const ResidualArguments& arguments);
const char* heads(const HeadsArguments& arguments);
const char* gate(const GateArguments& arguments);
void launch_skinny_gated(const GatedProductArguments& arguments);
const char* gated_product(const GatedProductArguments& arguments);

int64_t draw_bytes(const DrawArguments& arguments);
const char* draw(const DrawArguments& arguments);

const char* begin_recording(int32_t device, void** stream);
const char* end_recording(int32_t device, void* stream, void** recording);
const char* play(int32_t device, void* recording, void* stream);
void forget(void* recording);

}  // namespace sluice::models
