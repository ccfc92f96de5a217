#include "tests/models/cuda/host_training_kernels.h"

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/cuda/flat_step_kernel.h"
#include "models/cuda/gated_kernel.h"
#include "models/cuda/logit_rows_kernel.h"
#include "models/cuda/rms_norm_kernel.h"
#include "models/cuda/rotary_kernel.h"
#include "models/cuda/thread_maths.h"
#include "tests/models/cuda/host_block.h"

namespace sluice::models::gpu {

template <>
struct Element<c10::BFloat16> {
  static float wide(c10::BFloat16 x) { return static_cast<float>(x); }
  static c10::BFloat16 narrow(float x) { return {x}; }
};

}  // namespace sluice::models::gpu

namespace sluice::tests {
namespace {

using namespace models;  // NOLINT(google-build-using-namespace): the bodies, and what they are given
using Thread = HostBlock::Thread;

constexpr int kThreads = 64;

template <class T>
struct Type {
  using type = T;
};

template <class Use>
void with_type(bool bfloat16, const Use& use) {
  bfloat16 ? use(Type<c10::BFloat16>()) : use(Type<float>());
}

// Threads that meet nobody: each goes to its end.
struct LoneThread {
  int x = 0, y = 0, number = 0;
  int block_x() const { return x; }
  int block_y() const { return y; }
  int index() const { return number; }
};

template <class Body>
void run_alone(int64_t blocks, const Body& body, int y = 0) {
  for (int64_t x = 0; x < blocks; ++x) {
    for (int number = 0; number < kThreads; ++number) body(LoneThread{static_cast<int>(x), y, number});
  }
}

// What a thread block shares is of chance at its beginning.
template <class Shared, class Body>
void run_blocks(int64_t blocks, const Body& body) {
  HostBlock block(kThreads, 1);
  for (int64_t x = 0; x < blocks; ++x) {
    Shared shared;
    std::fill_n(reinterpret_cast<float*>(&shared), sizeof shared / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    block.run(static_cast<int>(x), 0, [&](const Thread& thread) { body(shared, thread); });
  }
}

int64_t blocks_for(int64_t count, int64_t of_block) { return (count + of_block - 1) / of_block; }

const char* rms_norm_on_host(const RmsNormArguments& in) {
  gpu::with_pack<8>(in.size, {in.x, in.weight, in.out}, [&](auto pack) {
    with_type(in.bfloat16, [&](auto type) {
      run_blocks<rms_norm::Shared<kThreads>>(in.rows, [&](auto& shared, const Thread& thread) {
        rms_norm::forward<kThreads, decltype(pack)::value, typename decltype(type)::type>(in, shared, thread);
      });
    });
  });
  return nullptr;
}

const char* rms_norm_backward_on_host(const RmsNormBackwardArguments& in) {
  with_type(in.bfloat16, [&](auto type) {
    using T = typename decltype(type)::type;
    gpu::with_pack<8>(in.size, {in.x, in.weight, in.grad, in.of_x}, [&](auto pack) {
      if (in.of_x == nullptr) return;
      run_blocks<rms_norm::Shared<kThreads>>(in.rows, [&](auto& shared, const Thread& thread) {
        rms_norm::backward<kThreads, decltype(pack)::value, T>(in, shared, thread);
      });
    });
    if (in.of_weight == nullptr) return;
    gpu::with_pack<4>(in.size, {in.grad, in.x, in.of_weight}, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      for (int slice = 0; slice < in.slices; ++slice) {
        run_alone(
            blocks_for(in.size, kThreads * kPack),
            [&](const LoneThread& thread) { rms_norm::weight_sums<kThreads, kPack, T>(in, thread); }, slice);
      }
    });
  });
  return nullptr;
}

const char* gated_on_host(const GatedArguments& in) {
  gpu::with_pack<8>(in.count, {in.gate, in.up, in.out}, [&](auto pack) {
    with_type(in.bfloat16, [&](auto type) {
      constexpr int kPack = decltype(pack)::value;
      run_alone(blocks_for(in.count, kThreads * kPack),
                [&](const LoneThread& thread) { gated::forward<kThreads, kPack, typename decltype(type)::type>(in, thread); });
    });
  });
  return nullptr;
}

const char* gated_backward_on_host(const GatedBackwardArguments& in) {
  if (in.narrow_result && !in.bfloat16) return "a gradient that is rounded after the activation and not before";
  gpu::with_pack<8>(in.count, {in.grad, in.gate, in.up, in.of_gate, in.of_up}, [&](auto pack) {
    with_type(in.bfloat16, [&](auto grad) {
      with_type(in.narrow_result, [&](auto result) {
        constexpr int kPack = decltype(pack)::value;
        run_alone(blocks_for(in.count, kThreads * kPack), [&](const LoneThread& thread) {
          gated::backward<kThreads, kPack, typename decltype(grad)::type, typename decltype(result)::type>(in, thread);
        });
      });
    });
  });
  return nullptr;
}

const char* rotary_on_host(const RotaryArguments& in) {
  if (in.bfloat16_in && in.bfloat16_out) return "heads are rotated from float32 or to it";
  gpu::with_pack<8>(std::gcd(in.dims / 2, in.head_dim), {in.x, in.angles, in.out}, [&](auto pack) {
    with_type(in.bfloat16_in, [&](auto from) {
      with_type(in.bfloat16_out, [&](auto to) {
        run_alone(in.tokens, [&](const LoneThread& thread) {
          rotary::heads_of_token<kThreads, decltype(pack)::value, typename decltype(from)::type, typename decltype(to)::type>(
              in, thread);
        });
      });
    });
  });
  return nullptr;
}

const char* logit_rows_on_host(const LogitRowsArguments& in) {
  gpu::with_pack<8>(in.vocabulary, {in.logits}, [&](auto pack) {
    run_blocks<logit_rows::Shared<kThreads>>(in.rows, [&](auto& shared, const Thread& thread) {
      logit_rows::forward<kThreads, decltype(pack)::value>(in, shared, thread);
    });
  });
  return nullptr;
}

const char* logit_slopes_on_host(const LogitSlopesArguments& in) {
  gpu::with_pack<8>(in.vocabulary, {in.logits, in.slopes}, [&](auto pack) {
    with_type(in.bfloat16, [&](auto type) {
      run_alone(in.rows, [&](const LoneThread& thread) {
        logit_rows::backward<kThreads, decltype(pack)::value, typename decltype(type)::type>(in, thread);
      });
    });
  });
  return nullptr;
}

const char* adamw_on_host(const AdamWArguments& in) {
  gpu::with_pack<4>(in.count, {in.weights, in.gradients, in.first_moments, in.second_moments, in.written}, [&](auto pack) {
    constexpr int kPack = decltype(pack)::value;
    run_alone(blocks_for(in.count, kThreads * kPack),
              [&](const LoneThread& thread) { flat_step::adamw<kThreads, kPack, c10::BFloat16>(in, thread); });
  });
  return nullptr;
}

const char* squares_on_host(const SquaresArguments& in) {
  gpu::with_pack<4>(in.count, {in.values}, [&](auto pack) {
    run_blocks<flat_step::Shared<kThreads>>(blocks_for(in.count, kSquaresOfABlock), [&](auto& shared, const Thread& thread) {
      flat_step::squares_of_block<kThreads, decltype(pack)::value>(in, shared, thread);
    });
  });
  run_blocks<flat_step::Shared<kThreads>>(
      1, [&](auto& shared, const Thread& thread) { flat_step::total_of_partial<kThreads>(in, shared, thread); });
  return nullptr;
}

constexpr TrainingKernels kOnHost{.rms_norm = &rms_norm_on_host,
                                  .rms_norm_backward = &rms_norm_backward_on_host,
                                  .gated = &gated_on_host,
                                  .gated_backward = &gated_backward_on_host,
                                  .rotary = &rotary_on_host,
                                  .logit_rows = &logit_rows_on_host,
                                  .logit_slopes = &logit_slopes_on_host,
                                  .adamw = &adamw_on_host,
                                  .squares = &squares_on_host};

}  // namespace

const TrainingKernels& host_training_kernels() { return kOnHost; }

}  // namespace sluice::tests
