#pragma once

#include <cstdint>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

namespace sluice::comm::testing {

/// Another backend, of which a bit is another one in the last float of what comes with `floats` floats.
class DamagingBackend final : public c10d::Backend {
 public:
  DamagingBackend(std::shared_ptr<c10d::Backend> backend, int64_t floats)
      : Backend(backend->getRank(), backend->getSize()), backend_(std::move(backend)), floats_(floats) {}

  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int rank, int tag) override {
    return backend_->send(tensors, rank, tag);
  }

  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int rank, int tag) override {
    auto work = backend_->recv(tensors, rank, tag);
    const at::Tensor& tensor = tensors.front();
    if (tensor.numel() != floats_) return work;
    return c10::make_intrusive<DamagedWork>(std::move(work), tensor.data_ptr<float>() + floats_ - 1);
  }

 private:
  class DamagedWork final : public c10d::Work {
   public:
    DamagedWork(c10::intrusive_ptr<c10d::Work> work, float* last) : work_(std::move(work)), last_(last) {}

    bool wait(std::chrono::milliseconds timeout) override {
      const bool is_done = work_->wait(timeout);
      *reinterpret_cast<unsigned char*>(last_) ^= 1;
      return is_done;
    }
    void abort() override { work_->abort(); }

   private:
    const c10::intrusive_ptr<c10d::Work> work_;
    float* const last_;
  };

  const std::shared_ptr<c10d::Backend> backend_;
  const int64_t floats_;
};

}  // namespace sluice::comm::testing
