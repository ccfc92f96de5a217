// What models/folder/folder.h does with a folder, for a script that looks at the result with Hugging Face's packages.
//
// Reads lines of MODE, SOURCE, TARGET and token ids with tabs between them; answers each with "done" or what went wrong. MODE is
//
//   same      load, save
//   shards    likewise, in many small files
//   bfloat16  likewise, loaded and saved in bfloat16
//   critic    loaded with a value head, which is then 0.01 times 0, 1, 2, ...
//   step      one step of plain gradient descent, rate 0.05, on the mean log-probability of the tokens but the first
//   lora      with random adapters of all matrices, saved merged and in PEFT's format
//   lora_critic  likewise with a value head

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>

#include "base/text/strings.h"
#include "models/adapters/lora.h"
#include "models/folder/folder.h"

namespace sluice::models {
namespace {

at::Tensor mean_logprob(const Transformer& model, const std::vector<int64_t>& ids) {
  const auto count = static_cast<int64_t>(ids.size());
  const at::Tensor tokens = at::tensor(ids);
  const at::Tensor hidden = model.hidden_states(tokens, std::vector<int64_t>{0, count}).slice(0, 0, count - 1);  // [A,H]
  at::Tensor logits = at::linear(hidden, model.weights().head);                                                  // [A,V]
  const double cap = model.config().logit_softcap;
  if (cap > 0) logits = (logits / cap).tanh() * cap;
  return at::log_softmax(logits, 1).gather(1, tokens.slice(0, 1).unsqueeze(1)).mean();
}

void descend(const Transformer& model, const std::vector<int64_t>& ids) {
  mean_logprob(model, ids).neg().backward();
  const at::NoGradGuard no_gradient;
  for (const auto& [name, weight] : model.weights().named()) {
    if (weight.grad().defined()) weight.sub_(weight.grad(), 0.05);
  }
}

void adapt(Transformer& model) {
  add_adapters(model.weights(), {.rank = 3, .alpha = 6, .targets = {kAllLinear}}, 5);
  const at::NoGradGuard no_gradient;
  for (const auto& [name, weight] : model.weights().trainable()) weight.normal_(0.0, 0.1);
}

void run(const std::string& mode, const std::string& source, const std::string& target, const std::vector<int64_t>& ids) {
  LoadOptions load;
  SaveOptions save;
  if (mode == "bfloat16") load.dtype = at::kBFloat16;
  if (mode == "critic" || mode == "lora_critic") load.head = Head::kValue;
  if (mode == "shards") save.max_shard_bytes = 10'000;
  load.trainable = mode == "step";
  Transformer model = load_transformer(source, load);
  if (mode.starts_with("lora")) adapt(model), save.adapter = SavedAdapter::kBoth;
  if (mode == "critic") model.weights().value_head.copy_(at::arange(model.config().hidden_size, at::kFloat).mul(0.01));
  if (mode == "step") descend(model, ids);
  write_folder(model, source, target, save);
}

}  // namespace
}  // namespace sluice::models

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::vector<std::string> words = sluice::split(line, '\t');
    if (words.size() < 3) return 64;
    std::string answer = "done";
    try {
      std::vector<int64_t> ids;
      for (size_t i = 3; i < words.size(); ++i) ids.push_back(std::stoll(words[i]));
      sluice::models::run(words[0], words[1], words[2], ids);
    } catch (const std::exception& error) {
      answer = error.what();
      std::replace(answer.begin(), answer.end(), '\n', ' ');
    }
    std::cout << answer << std::endl;
  }
}
