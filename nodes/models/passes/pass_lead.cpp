#include "nodes/models/passes/pass_lead.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "models/layers/gradient.h"
#include "nodes/models/passes/pass_wire.h"

namespace sluice::nodes {

models::Segment PassLead::segment_of(const PassRequest& whole, int place) {
  return {.tokens = whole.tokens.numel(),
          .place = place,
          .ranks = passes_.size(),
          .ring = passes_.ring(),
          .expert_ranks = passes_.expert_ranks(),
          .exchange = &exchange_};
}

std::vector<at::Tensor> PassLead::outputs_of(const models::Transformer& model, const PassRequest& whole) {
  const bool trains = at::GradMode::is_enabled() && !model.weights().trainable().empty();
  PassCommand command{.kind = PassCommand::Kind::kCompute, .request = whole, .trains = trains};
  if (trains && model.routers() && model.config().experts.any()) command.counted = model.routers()->expected();
  Tensors own, all;
  {
    const std::lock_guard lock(mutex_);
    for (int place = 1; place < passes_.size(); ++place)
      send_request(passes_, place, command, part_of(whole, segment_of(whole, place)));
    own = nodes::outputs_of(model, part_of(whole, segment_of(whole, 0)), segment_of(whole, 0));
    const std::vector<Tensors> of_places = gather(whole, own);
    for (size_t i = 0; i < whole.outputs(); ++i) {
      Tensors parts;
      for (const Tensors& of_place : of_places) parts.push_back(of_place[i]);
      all.push_back(at::cat(parts));
    }
  }
  if (!trains) return all;
  models::attach_backward(all, {}, {}, [this, whole, own](Tensors&& gradients) {
    run_backward_of_all(whole, own, gradients);
    return at::Tensor();
  });
  return all;
}

// In the order of the places, so that all of them stand as they were asked for.
std::vector<PassLead::Tensors> PassLead::gather(const PassRequest& whole, const Tensors& own) {
  std::vector<Tensors> of_places(1);
  for (const at::Tensor& output : own) of_places.front().push_back(output.detach());
  for (int place = 1; place < passes_.size(); ++place) {
    const int64_t count = part_of(whole, segment_of(whole, place)).places.numel();
    of_places.push_back(receive_outputs(passes_, place, whole, count));
  }
  return of_places;
}

// All at once, since each waits for the others in its layers.
void PassLead::run_backward_of_all(const PassRequest& whole, const Tensors& own, const Tensors& gradients) {
  const std::unique_lock turn = turn_ != nullptr ? std::unique_lock(*turn_) : std::unique_lock<std::mutex>();
  const std::lock_guard lock(mutex_);
  PassCommand command{.kind = PassCommand::Kind::kBackward};
  for (const at::Tensor& gradient : gradients) command.has_gradient.push_back(gradient.defined());
  int64_t first = 0;
  Tensors of_own;
  for (int place = 0; place < passes_.size(); ++place) {
    const int64_t count = part_of(whole, segment_of(whole, place)).places.numel();
    engine::PassGroup::Columns columns;
    for (const at::Tensor& gradient : gradients) {
      const at::Tensor part = gradient.defined() ? gradient.to(at::kFloat).narrow(0, first, count) : at::Tensor();
      if (place == 0)
        of_own.push_back(part);
      else if (part.defined())
        columns.push_back(column_of(part));
    }
    first += count;
    if (place == 0) continue;
    passes_.send(place, command.to_text(), {});
    passes_.send(place, {}, std::move(columns));
  }
  models::run_backward(own, of_own);
}

void PassLead::send_to_all(engine::PassGroup& group, const PassCommand& command) {
  const std::string text = command.to_text();
  for (int place = 1; place < group.size(); ++place) group.send(place, text, {});
}

void PassLead::tell(const PassCommand& command) {
  const std::lock_guard lock(mutex_);
  send_to_all(passes_, command);
}

void PassLead::do_together(const PassCommand& command, const std::function<void()>& own) {
  const std::lock_guard lock(mutex_);
  send_to_all(passes_, command);
  own();
  for (int place = 1; place < passes_.size(); ++place) passes_.receive(place, 0);
}

void PassLead::have_saved(const PassCommand& command) {
  SLUICE_CHECK(saves_ != nullptr, "nothing is saved of a frozen model");
  send_to_all(*saves_, command);
  std::string failure;
  for (int place = 1; place < saves_->size(); ++place) {
    const std::string answer = saves_->receive(place, 0).text;
    if (failure.empty()) failure = answer;
  }
  if (!failure.empty()) throw UserError("a rank that assists could not save its part: " + failure);
}

void PassLead::dismiss() {
  tell({.kind = PassCommand::Kind::kEnd});
  passes_.flush();
  if (saves_ == nullptr) return;
  send_to_all(*saves_, {.kind = PassCommand::Kind::kEnd});
  saves_->flush();
}

}  // namespace sluice::nodes
