// training FOLDER float32|bfloat16 THREADS [DEVICE [PLUGIN]]: how long a training step takes, with random weights of the model in
// FOLDER.
//
//   {"tokens": 4096, "length": 256}
//       {"seconds"} of one step on tokens / length packed samples: hidden states, log-probability of every next token, backward,
//       AdamW; with "backward": false of the log-probabilities alone

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>

#include "bench/questions.h"
#include "models/folder/folder.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/train/adamw.h"

namespace sluice::bench {
namespace {

using models::Transformer;

class Bench {
 public:
  Bench(const std::string& folder, models::Precision precision, at::Device device)
      : transformer_(
            models::load_transformer(folder, {.random_init = true, .trainable = true, .device = device, .compute = {precision}})),
        optimizer_(transformer_.weights().trainable(), {.learning_rate = 1e-5}) {}

  Json answer(const Json& question) {
    const int64_t tokens = question.at("tokens"), length = question.at("length");
    const at::Tensor drawn = at::randint(2, transformer_.config().vocab_size, {tokens}, at::kLong);
    const at::Tensor ids = drawn.to(transformer_.device()), next = drawn.roll(-1).to(transformer_.device());
    std::vector<int64_t> offsets;
    for (int64_t offset = 0; offset <= tokens; offset += length) offsets.push_back(offset);
    const bool trains = question.value("backward", true);
    return {{"seconds", seconds_of([&] {
               trains ? step(ids, next, offsets) : compute(ids, next, offsets);
               wait_for(ids.device());
             })}};
  }

 private:
  void compute(const at::Tensor& ids, const at::Tensor& next, const std::vector<int64_t>& offsets) {
    const at::NoGradGuard no_gradient;
    logprobs(ids, next, offsets);
  }

  at::Tensor logprobs(const at::Tensor& ids, const at::Tensor& next, const std::vector<int64_t>& offsets) {
    const at::Tensor hidden = transformer_.hidden_states(ids, offsets);
    const models::LogprobOptions options{.precision = transformer_.compute().precision};
    return models::action_logprobs(hidden, transformer_.weights().head, next, options);
  }

  void step(const at::Tensor& ids, const at::Tensor& next, const std::vector<int64_t>& offsets) {
    logprobs(ids, next, offsets).sum().neg().backward();
    optimizer_.step(1.0 / static_cast<double>(ids.numel()));
  }

  Transformer transformer_;
  models::AdamW optimizer_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::answer_about_model<sluice::bench::Bench>(argc, argv); }
