// turn_kernel.h on GPUs. The tests are in tests/models/cuda/: on a GPU training_operators_test.cpp, on the host
// training_kernels_test.cpp.

#include <numeric>

#include "models/cuda/launch.h"
#include "models/cuda/training_parts.h"
#include "models/cuda/turn_kernel.h"

namespace sluice::models {
namespace {

constexpr int kTurnThreads = 128;

template <int kPack, class In, class Out>
__global__ void __launch_bounds__(kTurnThreads) turn_heads(TurnArguments in) {
  turn::heads_of_token<kTurnThreads, kPack, In, Out>(in, gpu::Thread());
}

template <class In, class Out>
void turn_into(const TurnArguments& in) {
  // Everything begins at a multiple of what half of the turned numbers, and a head, are multiples of.
  gpu::with_pack<8>(std::gcd(in.dims / 2, in.head_dim), {in.x, in.turns, in.out}, [&](auto pack) {
    turn_heads<decltype(pack)::value, In, Out><<<static_cast<unsigned>(in.tokens), kTurnThreads, 0, gpu::stream(in)>>>(in);
  });
}

}  // namespace

const char* launch_turn(const TurnArguments& in) {
  if (in.tokens == 0) return nullptr;
  if (in.bfloat16_in && in.bfloat16_out) return "heads are turned from float32 or to it";
  return gpu::launched(in.device, [&] {
    if (in.bfloat16_in) return turn_into<gpu::Bfloat16, float>(in);
    in.bfloat16_out ? turn_into<float, gpu::Bfloat16>(in) : turn_into<float, float>(in);
  });
}

}  // namespace sluice::models
