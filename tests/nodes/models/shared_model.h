#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/ranks/parcel_pass_groups.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/passes/pass_lead.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/tiny_model.h"

// A model whose passes two ranks compute, threads of one process.
namespace sluice::nodes::testing {

inline constexpr int kPassRanks = 2;  // as many as the model has heads of keys

// Four samples, the second of which lies in both segments, and one of which has no action.
struct Samples {
  Samples() {
    for (const auto& [length, actions] : std::vector<std::pair<size_t, size_t>>{{9, 4}, {14, 9}, {5, 0}, {8, 7}}) {
      layout.add_sample(length, actions);
      for (size_t i = 0; i < length; ++i) tokens.push_back(2 + static_cast<int64_t>(tokens.size() * 17 % 90));
    }
  }
  RaggedSamples ragged() const { return all_samples({tokens}, layout); }

  std::vector<int64_t> tokens;
  engine::Layout layout;
};

// The rank that leads, and a thread for each that assists, which ends when this goes.
class SharedModel {
 public:
  SharedModel(const TinyFolder& folder, const TinyOptions& options, int ring = 1, int expert_ranks = 1) {
    for (int rank = 0; rank < kPassRanks; ++rank) {
      TinyOptions own = options;
      own.world = {rank, kPassRanks, kPassRanks};
      if (!own.device.is_cpu())
        own.device.set_index(static_cast<c10::DeviceIndex>(rank));  // one thread of a process has a backward there
      models_.push_back(tiny_model(folder.path(), own));
      groups_.push_back(
          std::make_unique<engine::ParcelPassGroups>(parcels_.rank(rank), std::vector<int>{0, 1}, ring, expert_ranks));
      models_.back()->share_passes(*groups_.back());
    }
    for (int rank = 1; rank < kPassRanks; ++rank)
      assisting_.emplace_back([&model = *models_[static_cast<size_t>(rank)]] { model.assist(unsynced_disk()); });
  }
  ~SharedModel() {
    models_.front()->dismiss();
    assisting_.clear();
    parcels_.close();
    EXPECT_TRUE(parcels_.failures().empty());
  }

  LanguageModel& leads() { return *models_.front(); }
  const std::vector<std::shared_ptr<LanguageModel>>& all() const { return models_; }

 private:
  engine::testing::ParcelsInOneProcess parcels_{kPassRanks, 3, 20};
  std::vector<std::unique_ptr<engine::ParcelPassGroups>> groups_;
  std::vector<std::shared_ptr<LanguageModel>> models_;
  std::vector<std::jthread> assisting_;
};

// On the host.
inline at::Tensor gradients_of(LanguageModel& model) {
  return trained(model).optimizer().parameters().gradient_buffer().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

// A different slope for each number, so that none stands for another.
inline at::Tensor loss_of(const std::vector<at::Tensor>& outputs) {
  at::Tensor loss = at::zeros({});
  for (size_t i = 0; i < outputs.size(); ++i)
    loss = loss + (outputs[i] * at::arange(1, outputs[i].numel() + 1, at::kFloat)).sum() * (1.0 + static_cast<double>(i));
  return loss;
}

}  // namespace sluice::nodes::testing
