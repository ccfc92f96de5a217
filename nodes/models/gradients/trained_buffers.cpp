#include "nodes/models/gradients/trained_buffers.h"

#include <ATen/core/grad_mode.h>

#include "models/devices/streams.h"
#include "models/portable/abilities.h"

namespace sluice::nodes {
namespace {

void copy_range(const at::Tensor& to, const at::Tensor& from, FloatRange range) {
  const at::NoGradGuard no_gradient;
  to.narrow(0, range.begin, range.size()).copy_(from.narrow(0, range.begin, range.size()));
}

}  // namespace

TrainedBuffers::TrainedBuffers(models::FlatParameters& parameters) : parameters_(parameters) {
  if (parameters.on_host()) return;
  const auto subtrees = static_cast<int64_t>(parameters.subtree_buffers().size());
  copies_ = models::portable::empty_for(parameters.weight_buffer().device(), {subtrees, parameters.size()}, at::kFloat);
}

std::vector<float*> TrainedBuffers::gradients() {
  if (!copies_.defined()) return parameters_.subtrees();
  std::vector<float*> buffers;
  for (int64_t i = 0; i < copies_.size(0); ++i) buffers.push_back(copies_.mutable_data_ptr<float>() + i * copies_.size(1));
  return buffers;
}

float* TrainedBuffers::weights() { return copies_.defined() ? copies_.mutable_data_ptr<float>() : parameters_.weights(); }

void TrainedBuffers::fetch_gradients(FloatRange range) {
  if (!copies_.defined()) return;
  const std::vector<at::Tensor> buffers = parameters_.subtree_buffers();
  for (size_t i = 0; i < buffers.size(); ++i) copy_range(copies_.select(0, static_cast<int64_t>(i)), buffers[i], range);
}

void TrainedBuffers::fetch_weights(FloatRange range) {
  if (copies_.defined()) copy_range(copies_.select(0, 0), parameters_.weight_buffer(), range);
}

void TrainedBuffers::put_back_gradients(const std::vector<FloatRange>& ranges) {
  if (!copies_.defined()) return;
  const at::NoGradGuard no_gradient;
  for (const at::Tensor& buffer : parameters_.subtree_buffers()) buffer.zero_();
  for (const FloatRange& range : ranges) copy_range(parameters_.gradient_buffer(), copies_.select(0, 0), range);
  models::finish_work_on(parameters_.weight_buffer().device());
}

void TrainedBuffers::put_back_weights() {
  if (!copies_.defined()) return;
  copy_range(parameters_.weight_buffer(), copies_.select(0, 0), {0, parameters_.size()});
  models::finish_work_on(parameters_.weight_buffer().device());
}

}  // namespace sluice::nodes
