// What do log-probabilities cost without the logits of all tokens at once?
//
// 8192 tokens, hidden 512, vocabulary 32768, against at:: operations that materialise the logits: product, log-softmax, gather.
// "forward" is without gradient, as a reference model computes them; "forward and backward" has the gradients of hidden states
// and head. Time: ours and theirs in turn. Memory: the most bytes of tensors at a time beside inputs and results; the goal is a
// 50th of the logits, and with gradient those beside that which are kept.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "base/process/machine.h"
#include "bench/questions.h"
#include "bench/report.h"
#include "models/forward/action_logprobs.h"
#include "models/memory/tensor_memory.h"
#include "nodes/models/passes/threads.h"

namespace sluice::bench {
namespace {

using models::Precision;

struct Sizes {
  int64_t tokens, hidden, vocabulary;
  int repetitions;
};

struct Problem {
  Problem(const Sizes& sizes, Precision precision, bool gradient)
      : hidden(at::randn({sizes.tokens, sizes.hidden})),
        head(at::randn({sizes.vocabulary, sizes.hidden}).mul(0.02)),
        targets(at::randint(sizes.vocabulary, {sizes.tokens}, at::kLong)),
        precision(precision) {
    if (!gradient) return;
    hidden.requires_grad_();
    head.requires_grad_();
  }

  at::Tensor hidden, head, targets;
  Precision precision;
};

at::Tensor chunked(const Problem& problem) {
  return models::action_logprobs(problem.hidden, problem.head, problem.targets, {.precision = problem.precision});
}

at::Tensor materialised(const Problem& problem) {
  const auto operand = [&](const at::Tensor& floats) {
    return problem.precision == Precision::kFloat32 ? floats : floats.to(at::kBFloat16);
  };
  const at::Tensor logits = operand(problem.hidden).matmul(operand(problem.head).t());
  const at::Tensor logprobs = at::log_softmax(logits.to(at::kFloat), -1);
  return logprobs.gather(-1, problem.targets.unsqueeze(-1)).squeeze(-1);
}

int threads() { return static_cast<int>(available_cores()); }

struct Cost {
  double seconds = 0;
  double megabytes = 0;
};

Cost cost_of(at::Tensor (*logprobs)(const Problem&), const Problem& problem, models::TensorMemory& memory) {
  memory.take_peak();
  at::Tensor result;
  const double seconds = seconds_of([&] {
    result = logprobs(problem);
    if (result.requires_grad()) result.sum().backward();
  });
  result = result.detach();
  const int64_t extra = memory.take_peak() - memory.live();
  problem.hidden.mutable_grad().reset();
  problem.head.mutable_grad().reset();
  return {seconds, static_cast<double>(extra) * 1e-6};
}

void compare(const Sizes& sizes, Precision precision, bool gradient, models::TensorMemory& memory) {
  const at::AutoGradMode mode(gradient);
  const Problem problem(sizes, precision, gradient);
  const std::string name =
      std::string(precision == Precision::kFloat32 ? "fp32" : "bf16") + (gradient ? ", forward and backward" : ", forward");
  Case time{.bench = "logprobs", .name = name + ", time", .unit = "tokens/s", .ours = {}, .reference = {}};
  Case space{.bench = "logprobs", .name = name + ", memory", .unit = "MB", .ours = {}, .reference = {}};
  cost_of(chunked, problem, memory);  // warm
  for (int i = 0; i < sizes.repetitions; ++i) {
    const Cost ours = cost_of(chunked, problem, memory);
    at::set_num_threads(threads());
    const Cost theirs = cost_of(materialised, problem, memory);
    nodes::use_threads(threads());
    time.ours.push_back(static_cast<double>(sizes.tokens) / ours.seconds);
    time.reference.push_back(static_cast<double>(sizes.tokens) / theirs.seconds);
    space.ours.push_back(ours.megabytes);
    space.reference.push_back(theirs.megabytes);
  }
  time.goal.ratio_at_least = 3;
  const int64_t kept = gradient ? models::kKeptLogits : 0;
  space.goal.ours_at_most = static_cast<double>(sizes.tokens * sizes.vocabulary / 50 + kept) * sizeof(float) * 1e-6;
  print(time);
  print(space);
}

void run(const Sizes& sizes) {
  nodes::use_threads(threads());
  models::TensorMemory memory;
  memory.watch_this_thread();
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16})
    for (const bool gradient : {false, true}) compare(sizes, precision, gradient, memory);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const bool smoke = sluice::bench::is_smoke(argc, argv);
  sluice::bench::run(smoke ? sluice::bench::Sizes{64, 32, 512, 1} : sluice::bench::Sizes{8192, 512, 32768, 5});
  return 0;
}
