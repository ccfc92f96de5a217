// rotary_kernel.h on GPUs. The tests are in tests/models/cuda/: on a GPU training_operators_test.cpp, on the host
// training_kernels_test.cpp.

#include <numeric>

#include "models/cuda/launch.h"
#include "models/cuda/rotary_kernel.h"
#include "models/cuda/training_parts.h"

namespace sluice::models {
namespace {

constexpr int kRotaryThreads = 128;

template <int kPack, class In, class Out>
__global__ void __launch_bounds__(kRotaryThreads) rotate_heads(RotaryArguments in) {
  rotary::heads_of_token<kRotaryThreads, kPack, In, Out>(in, gpu::Thread());
}

template <class In, class Out>
void rotate_into(const RotaryArguments& in) {
  // Everything begins at a multiple of what half of the rotated numbers, and a head, are multiples of.
  gpu::with_pack<8>(std::gcd(in.dims / 2, in.head_dim), {in.x, in.angles, in.out}, [&](auto pack) {
    rotate_heads<decltype(pack)::value, In, Out><<<static_cast<unsigned>(in.tokens), kRotaryThreads, 0, gpu::stream(in)>>>(in);
  });
}

}  // namespace

const char* launch_rotary(const RotaryArguments& in) {
  if (in.tokens == 0) return nullptr;
  if (in.bfloat16_in && in.bfloat16_out) return "heads are rotated from float32 or to it";
  return gpu::launched(in.device, [&] {
    if (in.bfloat16_in) return rotate_into<gpu::Bfloat16, float>(in);
    in.bfloat16_out ? rotate_into<float, gpu::Bfloat16>(in) : rotate_into<float, float>(in);
  });
}

}  // namespace sluice::models
