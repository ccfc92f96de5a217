#include "nodes/models/weights/remote_publisher.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "base/numbers/crc32c.h"
#include "models/kernels/parallel.h"

namespace sluice::nodes {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

constexpr size_t kInCache = size_t{64} << 10;  // bytes that a checksum is taken of while they are near

// The part of each tensor that lies in the range. What lies between two tensors is nobody's, and is zero.
void copy_tensors(const WireLayout& layout, const NamedTensors& trained, engine::Range range, std::byte* to) {
  const at::NoGradGuard no_gradient;
  const auto first =
      std::ranges::partition_point(layout.tensors, [&](const WireTensor& of) { return of.range.end <= range.begin; });
  size_t written = range.begin;
  for (auto tensor = first; tensor != layout.tensors.end() && tensor->range.begin < range.end; ++tensor) {
    const size_t begin = std::max(range.begin, tensor->range.begin), end = std::min(range.end, tensor->range.end);
    std::fill(to + (written - range.begin), to + (begin - range.begin), std::byte{0});
    const auto size = static_cast<size_t>(c10::elementSize(tensor->dtype));
    const auto skipped = static_cast<int64_t>((begin - tensor->range.begin) / size),
               count = static_cast<int64_t>((end - begin) / size);
    const at::Tensor& values = trained[static_cast<size_t>(tensor - layout.tensors.begin())].second;
    at::from_blob(to + (begin - range.begin), {count}, at::TensorOptions(tensor->dtype))
        .copy_(values.detach().view({-1}).narrow(0, skipped, count));
    written = end;
  }
  std::fill(to + (written - range.begin), to + range.size(), std::byte{0});
}

}  // namespace

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
    std::vector<uint32_t> checksums = write(range, to);
    publication_->offer(version, range, std::shared_ptr<const std::byte>(source_, to), std::move(checksums));
    to += range.size();
  }
}

// On the host every checksum is taken of what has just been written; what a device writes gets them on its way.
std::vector<uint32_t> RemotePublisher::write(engine::Range range, std::byte* to) const {
  if (!trained_.front().second.is_cpu()) {
    copy_tensors(layout_, trained_, range, to);
    return {};
  }
  const std::vector<engine::Range> stretches = publication_->stretches(range);
  std::vector<uint32_t> checksums(stretches.size());
  models::parallel_ranges(std::ssize(stretches), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      checksums[i] = write_stretch(stretches[i], to + (stretches[i].begin - range.begin));
  });
  return checksums;
}

uint32_t RemotePublisher::write_stretch(engine::Range range, std::byte* to) const {
  uint32_t checksum = 0;
  for (size_t begin = range.begin; begin < range.end; begin += kInCache) {
    const engine::Range part{begin, std::min(begin + kInCache, range.end)};
    std::byte* const place = to + (begin - range.begin);
    copy_tensors(layout_, trained_, part, place);
    checksum = crc32c({reinterpret_cast<const char*>(place), part.size()}, checksum);
  }
  return checksum;
}

}  // namespace sluice::nodes
