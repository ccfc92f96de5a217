#include "nodes/models/passes/asked_passes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "nodes/models/passes/pass_command.h"
#include "nodes/models/passes/pass_wire.h"

namespace sluice::nodes {
namespace {

constexpr int kAsks = 0, kAnswers = 1;  // places

// Of samples [first, last) of the whole.
PassRequest samples_of(const PassRequest& whole, size_t first, size_t last) {
  const int64_t begin = whole.sample_offsets[first], end = whole.sample_offsets[last];
  PassRequest part = tokens_of(whole, begin, end);
  part.sample_offsets.clear();
  for (size_t sample = first; sample <= last; ++sample) part.sample_offsets.push_back(whole.sample_offsets[sample] - begin);
  return part;
}

}  // namespace

// The boundary between samples that is nearest to where an equal part would end.
std::vector<PassRequest> parts_of(const PassRequest& whole, size_t count) {
  const std::vector<int64_t>& offsets = whole.sample_offsets;
  const size_t samples = offsets.size() - 1;
  std::vector<PassRequest> parts;
  size_t first = 0;
  for (size_t part = 1; part <= count && first < samples; ++part) {
    const double end = static_cast<double>(offsets.back()) * static_cast<double>(part) / static_cast<double>(count);
    size_t last = first + 1;
    const auto distance = [&](size_t at) { return std::abs(static_cast<double>(offsets[at]) - end); };
    while (last < samples && distance(last + 1) <= distance(last)) ++last;
    if (part == count) last = samples;
    parts.push_back(samples_of(whole, first, last));
    first = last;
  }
  return parts;
}

// Of a part without places nothing is asked.
std::vector<at::Tensor> AskedPasses::outputs_of(const PassRequest& whole) {
  const std::lock_guard lock(mutex_);
  std::vector<PassRequest> parts = parts_of(whole, groups_.size());
  std::erase_if(parts, [](const PassRequest& part) { return part.places.numel() == 0; });
  for (size_t i = 0; i < parts.size(); ++i)
    send_request(*groups_[i], kAnswers, {.kind = PassCommand::Kind::kCompute, .request = parts[i]}, parts[i]);
  std::vector<std::vector<at::Tensor>> by_output(whole.outputs());
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto of_part = receive_outputs(*groups_[i], kAnswers, parts[i], parts[i].places.numel());
    for (size_t output = 0; output < of_part.size(); ++output) by_output[output].push_back(of_part[output]);
  }
  std::vector<at::Tensor> outputs;
  for (const auto& of_output : by_output) outputs.push_back(of_output.size() == 1 ? of_output.front() : at::cat(of_output));
  return outputs;
}

void AskedPasses::dismiss() {
  for (engine::PassGroup* const group : groups_)
    group->send(kAnswers, PassCommand{.kind = PassCommand::Kind::kEnd}.to_text(), {});
  for (engine::PassGroup* const group : groups_) group->flush();
}

void answer_passes(engine::PassGroup& group, const models::Transformer& model, std::mutex& turn) {
  const at::NoGradGuard no_gradient;
  while (true) {
    const PassCommand command = PassCommand::from_text(group.receive(kAsks, 0).text);
    if (command.kind == PassCommand::Kind::kEnd) return;
    SLUICE_CHECK(command.kind == PassCommand::Kind::kCompute, "of a frozen model nothing but passes is asked");
    const PassRequest request = receive_request(group, kAsks, command);
    const auto outputs = [&] {
      const std::lock_guard lock(turn);
      return nodes::outputs_of(model, request, {.tokens = request.tokens.numel()});
    }();
    send_outputs(group, kAsks, outputs);
  }
}

}  // namespace sluice::nodes
