// logit_rows_kernel.h on GPUs. The tests are in tests/models/cuda/: on a GPU training_operators_test.cpp, on the host
// training_kernels_test.cpp.

#include "models/cuda/launch.h"
#include "models/cuda/logit_rows_kernel.h"
#include "models/cuda/training_parts.h"

namespace sluice::models {
namespace {

constexpr int kLogitThreads = 512;

template <int kPack>
__global__ void __launch_bounds__(kLogitThreads) logit_rows_forward(LogitRowsArguments in) {
  __shared__ logit_rows::Shared<kLogitThreads> shared;
  logit_rows::forward<kLogitThreads, kPack>(in, shared, gpu::Thread());
}

template <int kPack, class T>
__global__ void __launch_bounds__(kLogitThreads) logit_rows_backward(LogitSlopesArguments in) {
  logit_rows::backward<kLogitThreads, kPack, T>(in, gpu::Thread());
}

}  // namespace

const char* launch_logit_rows(const LogitRowsArguments& in) {
  if (in.rows == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    gpu::with_pack<8>(in.vocabulary, {in.logits}, [&](auto pack) {
      logit_rows_forward<decltype(pack)::value><<<static_cast<unsigned>(in.rows), kLogitThreads, 0, gpu::stream(in)>>>(in);
    });
  });
}

const char* launch_logit_slopes(const LogitSlopesArguments& in) {
  if (in.rows == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    gpu::with_pack<8>(in.vocabulary, {in.logits, in.slopes}, [&](auto pack) {
      gpu::with_type(in.bfloat16, [&](auto type) {
        logit_rows_backward<decltype(pack)::value, typename decltype(type)::type>
            <<<static_cast<unsigned>(in.rows), kLogitThreads, 0, gpu::stream(in)>>>(in);
      });
    });
  });
}

}  // namespace sluice::models
