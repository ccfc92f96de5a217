#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/step_kernels.h"
#include "models/kernels/rotary.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// Steps of generation in bfloat16 by our own kernels, on a GPU: the numbers of portable::Decoder but for the order of sums. What
/// is between products is fused, matrices that read the same rows and lie beside each other are one, and a step in which every
/// sequence has one new token is recorded when it comes again, and then played in one call of the host.
///
/// Owns its scratch memory and the recordings, which grow with the largest step; refers to the config, and shares the cache. A
/// recording is of one version's weights, told by their places in memory: those of the last few versions are kept. Not
/// thread-safe.
class OwnStep {
 public:
  /// A step at hand, as numbers: T new tokens in rows, S rows whose logits are wanted.
  struct Rows {
    std::vector<int64_t> tokens, positions, slots;  // [T]; slot: block * block_size + place in it
    std::vector<int64_t> last;                      // [S]
    std::vector<int64_t> single;                    // rows of sequences with one new token
    std::vector<int64_t> table;                     // [single, width] their blocks
    int64_t width = 0;
  };
  /// Attention of all other rows: query [T,Nq,D], whose result goes to the same rows of out.
  using Others = std::function<void(int64_t layer, const at::Tensor& query, const at::Tensor& out)>;

  /// Whether our kernels know all that the config says.
  static bool takes(const ModelConfig& config, Precision precision);

  /// keys, values [layers,blocks,block_size,Nk,D] bfloat16, of the device that the kernels are for. Throws InternalError with
  /// what the device says where it fails, as step() does.
  OwnStep(const ModelConfig& config, const OwnKernels& kernels, const at::Tensor& keys, const at::Tensor& values);
  ~OwnStep();
  OwnStep(const OwnStep&) = delete;
  OwnStep& operator=(const OwnStep&) = delete;

  /// Writes keys and values into their slots. Returns the logits [S,V] float32 in scratch memory, until the next step; undefined
  /// without `last`. Waits for nothing.
  at::Tensor step(const Weights& weights, const Rows& rows, const Others& others);

 private:
  struct Linear {
    const void* weight;
    int64_t outputs;
  };
  struct Layer {
    std::vector<Linear> projections, output, down;  // of one input each: those that lie beside each other are one
    const void *gate, *up;
    const float *query_bias, *key_bias, *value_bias, *output_bias, *gate_bias, *up_bias, *down_bias;
    const float *attention_norm, *query_norm, *key_norm, *attention_output_norm, *feed_forward_norm, *feed_forward_output_norm;
  };
  /// Weights by their places.
  struct Version {
    std::vector<const void*> places;
    std::vector<Layer> layers;
    const void *embedding, *head;
    const float* final_norm;
    std::map<int64_t, int> times;         // that a step of so many rows came
    std::map<int64_t, void*> recordings;  // of these steps
  };
  /// Of the step at hand, on the device: `rows` of them, `wanted` of them with logits.
  struct Plan {
    int64_t rows, wanted, single;
    const int32_t *tokens, *positions, *slots, *last, *single_rows, *lengths, *table;
    bool all_single;  // and all wanted, in order
  };

  Version& version_of(const Weights& weights);
  void make_room(int64_t rows, int64_t wanted, int64_t width);
  void make_angles(int64_t positions);
  Plan planned(const Rows& rows, int64_t padded);
  void enqueue(const Version& version, const Plan& plan, const Others& others, void* stream);
  void attend(int64_t layer, const Plan& plan, void* stream);
  void multiply(const std::vector<Linear>& linears, const at::Tensor& x, int64_t inputs, const at::Tensor& y, int64_t rows,
                void* stream);
  void residual(ResidualArguments arguments, int64_t rows, void* stream);
  bool play(Version& version, const Plan& plan);
  void forget_recordings();
  int64_t widest() const;

  const ModelConfig& config_;
  const OwnKernels& kernels_;
  const at::Tensor keys_, values_;
  const int32_t device_;
  int64_t rows_ = 0, wanted_ = 0, width_ = 0;  // that there is room for
  at::Tensor x_, read_, projected_, query_, attended_, gated_, logits_, partials_, numbers_, library_memory_;
  std::vector<Version> versions_;    // the last used one first
  std::vector<RotaryTable> rotary_;  // for each rope_at() of the config, of the positions that steps have reached
  std::vector<at::Tensor> angles_;   // [positions,R] of each, on the device
  void* library_ = nullptr;
};

}  // namespace sluice::models
