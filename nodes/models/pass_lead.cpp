#include "nodes/models/pass_lead.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/layers/gradient.h"

namespace sluice::nodes {
namespace {

// Bytes of columns that are whole numbers or floats.
template <class T>
int64_t bytes_for(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

}  // namespace

models::Segment PassLead::segment_of(const PassRequest& whole, int place) {
  return {.tokens = whole.tokens.numel(), .place = place, .ranks = passes_.size(), .exchange = &exchange_};
}

void PassLead::begin(const PassRequest& part, const PassWord& word, int place) {
  PassWord of_place = word;
  of_place.tokens = part.tokens.numel(), of_place.places = part.places.numel();
  passes_.send(place, of_place.to_text(), {});
  engine::PassGroup::Columns columns{column_of(part.tokens), column_of(part.places)};
  if (part.logprobs) columns.push_back(column_of(part.targets));
  passes_.send(place, {}, std::move(columns));
}

std::vector<at::Tensor> PassLead::outputs_of(const models::Transformer& model, const PassRequest& whole) {
  const bool trains = at::GradMode::is_enabled() && !model.weights().trainable().empty();
  PassWord word{.say = PassWord::Say::kCompute, .request = whole, .trains = trains};
  if (trains && model.routers() && model.config().experts.any()) word.counted = model.routers()->expected();
  Tensors own, all;
  {
    const std::lock_guard lock(mutex_);
    for (int place = 1; place < passes_.size(); ++place) begin(part_of(whole, segment_of(whole, place)), word, place);
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
    const auto come = passes_.receive(place, bytes_for<float>(count) * static_cast<int64_t>(whole.outputs()));
    SLUICE_CHECK(come.columns.size() == whole.outputs(), "a rank of a pass has other outputs than were asked for");
    Tensors& outputs = of_places.emplace_back();
    for (const engine::ColumnData& column : come.columns) copy_column(column, outputs.emplace_back(at::empty({count})));
  }
  return of_places;
}

// All at once, since each waits for the others in its layers.
void PassLead::run_backward_of_all(const PassRequest& whole, const Tensors& own, const Tensors& gradients) {
  const std::lock_guard lock(mutex_);
  PassWord word{.say = PassWord::Say::kBackward};
  for (const at::Tensor& gradient : gradients) word.has_gradient.push_back(gradient.defined());
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
    passes_.send(place, word.to_text(), {});
    passes_.send(place, {}, std::move(columns));
  }
  models::run_backward(own, of_own);
}

void PassLead::say(engine::PassGroup& group, const PassWord& word) {
  const std::string text = word.to_text();
  for (int place = 1; place < group.size(); ++place) group.send(place, text, {});
}

void PassLead::tell(const PassWord& word) {
  const std::lock_guard lock(mutex_);
  say(passes_, word);
}

void PassLead::do_together(const PassWord& word, const std::function<void()>& own) {
  const std::lock_guard lock(mutex_);
  say(passes_, word);
  own();
  for (int place = 1; place < passes_.size(); ++place) passes_.receive(place, 0);
}

void PassLead::have_saved(const PassWord& word) {
  SLUICE_CHECK(saves_ != nullptr, "nothing is saved of a frozen model");
  say(*saves_, word);
  std::string failure;
  for (int place = 1; place < saves_->size(); ++place) {
    const std::string answer = saves_->receive(place, 0).text;
    if (failure.empty()) failure = answer;
  }
  if (!failure.empty()) throw UserError("a rank that assists could not save its part: " + failure);
}

void PassLead::dismiss() {
  tell({.say = PassWord::Say::kEnd});
  passes_.flush();
  if (saves_ == nullptr) return;
  say(*saves_, {.say = PassWord::Say::kEnd});
  saves_->flush();
}

}  // namespace sluice::nodes
