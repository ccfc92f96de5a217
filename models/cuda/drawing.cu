// drawing_kernel.h on GPUs. The tests that compare it with its reference: drawing_kernel_test.cpp on the host, sampler_test.cpp
// on a GPU.

#include "models/cuda/drawing_kernel.h"
#include "models/cuda/launch.h"
#include "models/cuda/step_parts.h"

namespace sluice::models {
namespace {

__global__ void __launch_bounds__(drawing::kThreads, 1) draw_tops(DrawArguments in) {
  __shared__ drawing::SharedTops shared;
  drawing::tops(in, shared, gpu::Thread());
}

__global__ void __launch_bounds__(drawing::kThreads, 1) draw_masses(DrawArguments in) { drawing::masses(in, gpu::Thread()); }

__global__ void __launch_bounds__(drawing::kThreads, 1) draw_choose(DrawArguments in) {
  __shared__ drawing::SharedChoice shared;
  drawing::choose(in, shared, gpu::Thread());
}

}  // namespace

int64_t draw_bytes(const DrawArguments& in) { return drawing::scratch_bytes(in); }

const char* draw(const DrawArguments& in) {
  if (in.draws == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    const dim3 stretches = gpu::grid(drawing::stretches_of(in), in.draws);
    gpu::enqueue(draw_tops, stretches, drawing::kThreads, in.stream, in);
    gpu::enqueue(draw_masses, stretches, drawing::kThreads, in.stream, in);
    gpu::enqueue(draw_choose, gpu::grid(in.draws), drawing::kThreads, in.stream, in);
  });
}

}  // namespace sluice::models
