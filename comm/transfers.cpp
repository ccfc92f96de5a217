#include "comm/transfers.h"

#include <ATen/ops/from_blob.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

namespace sluice::comm {
namespace {

std::vector<at::Tensor> as_tensors(float* floats, int64_t count) { return {at::from_blob(floats, {count}, at::kFloat)}; }

}  // namespace

Transfers::Transfers(std::shared_ptr<c10d::Backend> ranks, int batches)
    : ranks_(std::move(ranks)), batches_(static_cast<size_t>(batches)) {}

Transfers::~Transfers() { close(); }

void Transfers::send(int batch_number, const float* from, int64_t count, int rank, int tag) {
  auto tensors = as_tensors(const_cast<float*>(from), count);
  const std::lock_guard lock(mutex_);
  if (given_up_) throw GivenUp();
  batch(batch_number).push_back(ranks_->send(tensors, rank, tag));
}

void Transfers::receive(int batch_number, float* into, int64_t count, int rank, int tag) {
  auto tensors = as_tensors(into, count);
  const std::lock_guard lock(mutex_);
  if (given_up_) throw GivenUp();
  batch(batch_number).push_back(ranks_->recv(tensors, rank, tag));
}

void Transfers::wait(int batch_number) {
  // Without the lock, which give_up() needs: only this thread changes the batch.
  for (const Work& work : batch(batch_number))
    if (!work->wait()) throw GivenUp();
  const std::lock_guard lock(mutex_);
  batch(batch_number).clear();
}

void Transfers::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  for (const auto& works : batches_)
    for (const Work& work : works) work->abort();  // also ends a wait that begins later
}

void Transfers::close() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  for (auto& works : batches_) works.clear();  // returns when nothing touches their memory any more
  ranks_.reset();  // as long as it were open, Gloo would look again and again for what has come and whereto
}

}  // namespace sluice::comm
