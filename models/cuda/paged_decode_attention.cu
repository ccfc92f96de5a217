// paged_decode_kernel.h on GPUs. The tests that compare it with its reference: on a GPU paged_decode_attention_test.cpp, on the
// host paged_decode_kernel_test.cpp.

#include "models/cuda/grouped_decode_kernel.h"
#include "models/cuda/launch.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_kernel.h"

namespace sluice::models {
namespace {

template <class S>
__global__ void __launch_bounds__(paged_decode::kThreads, 1) paged_decode_attend(PagedDecodeArguments in) {
  __shared__ paged_decode::Shared<S> shared;
  paged_decode::attend<S>(in, shared, gpu::Thread());
}

template <class T>
__global__ void __launch_bounds__(paged_decode::kThreads, 1) paged_decode_combine(PagedDecodeArguments in) {
  __shared__ paged_decode::SharedParts shared;
  paged_decode::combine<T>(in, shared, gpu::Thread());
}

template <int kDim>
__global__ void __launch_bounds__(paged_decode::kThreads, 1) grouped_decode_attend(PagedDecodeArguments in) {
  __shared__ grouped_decode::Shared<kDim> shared;
  grouped_decode::attend<kDim>(in, shared, gpu::Thread());
}

int32_t heads_at_once(const PagedDecodeArguments& in) {
  return grouped_decode::takes(in) ? grouped_decode::kHeads : paged_decode::heads_at_once(in);
}

void launch_grouped(const PagedDecodeArguments& in, const dim3& grid) {
  if (in.head_dim == 64)
    gpu::enqueue(grouped_decode_attend<64>, grid, paged_decode::kThreads, in.stream, in);
  else
    gpu::enqueue(grouped_decode_attend<128>, grid, paged_decode::kThreads, in.stream, in);
}

template <class T>
void launch(const PagedDecodeArguments& in) {
  const paged_decode::Grid blocks = paged_decode::grid_of(in, heads_at_once(in)), of_combine = paged_decode::grid_of_combine(in);
  const dim3 grid = gpu::grid(blocks.x, blocks.y);
  if (grouped_decode::takes(in)) {
    launch_grouped(in, grid);
  } else {
    paged_decode::with_shape<T>(
        in, [&](auto shape) { gpu::enqueue(paged_decode_attend<decltype(shape)>, grid, paged_decode::kThreads, in.stream, in); });
  }
  if (in.splits > 1)
    gpu::enqueue(paged_decode_combine<T>, gpu::grid(of_combine.x, of_combine.y), paged_decode::kThreads, in.stream, in);
}

}  // namespace

int64_t plan_paged_decode(PagedDecodeArguments& in, int64_t longest) {
  in.splits = paged_decode::splits_for(in, heads_at_once(in), longest);
  return paged_decode::partial_numbers(in);
}

const char* paged_decode_attention(const PagedDecodeArguments& in) {
  if (in.sequences == 0) return nullptr;
  return gpu::launched(in.device, [&] { in.bfloat16 ? launch<gpu::Bfloat16>(in) : launch<float>(in); });
}

}  // namespace sluice::models
