#include "nodes/models/remote_publisher.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace sluice::nodes {

RemotePublisher::RemotePublisher(std::string model, WireLayout layout, std::vector<std::pair<std::string, at::Tensor>> trained,
                                 PublicationRanks ranks, engine::Publications& publications)
    : model_(std::move(model)),
      layout_(std::move(layout)),
      trained_(std::move(trained)),
      ranks_(std::move(ranks)),
      publications_(publications) {}

void RemotePublisher::begin(int64_t first_version) {
  engine::PublicationLayout layout = publication_layout(model_, layout_, ranks_, first_version);
  own_.clear();
  for (const auto& bucket : layout.buckets)
    for (const engine::OwnedBytes& owned : bucket)
      if (owned.owner == ranks_.own) own_.push_back(owned.range);
  publication_ = publications_.publication(
      std::move(layout), {.landed = {}, .opened = [this](const engine::PublishedVersion& of) { opened_ = of.version; }});
}

void RemotePublisher::restart() {
  publication_.reset();
  source_ = nullptr;
  opened_ = -1;
}

void RemotePublisher::publish(int64_t version) {
  if (!publication_) begin(version);
  size_t bytes = 0;
  for (const engine::Range& range : own_) bytes += range.size();
  if (bytes == 0) return;
  // The memory is used again once nobody copies from it any more.
  if (!source_ || opened_ < published_) source_ = publication_->new_source(bytes);
  published_ = version;
  std::byte* to = source_.get();
  for (const engine::Range& range : own_) {
    copy(range, to);
    publication_->offer(version, range, std::shared_ptr<const std::byte>(source_, to));
    to += range.size();
  }
}

// The part of each tensor that lies in the range. What lies between two tensors is nobody's, and is zero.
void RemotePublisher::copy(engine::Range range, std::byte* to) const {
  const at::NoGradGuard no_gradient;
  std::fill_n(to, range.size(), std::byte{0});
  for (size_t i = 0; i < layout_.tensors.size(); ++i) {
    const WireTensor& tensor = layout_.tensors[i];
    const size_t begin = std::max(range.begin, tensor.range.begin), end = std::min(range.end, tensor.range.end);
    if (begin >= end) continue;
    const auto size = static_cast<size_t>(c10::elementSize(tensor.dtype));
    const auto first = static_cast<int64_t>((begin - tensor.range.begin) / size),
               count = static_cast<int64_t>((end - begin) / size);
    at::Tensor part = at::from_blob(to + (begin - range.begin), {count}, at::TensorOptions(tensor.dtype));
    part.copy_(trained_[i].second.detach().view({-1}).narrow(0, first, count));
  }
}

}  // namespace sluice::nodes
