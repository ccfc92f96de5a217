#include "nodes/models/gradients/device_transport.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "nodes/models/gradients/gradient_buckets.h"
#include "tests/nodes/devices_in_threads.h"
#include "tests/nodes/gradients_in_one_process.h"

namespace sluice::nodes::device_transport_test {
namespace {

using models::AdamW;
using testing::DevicesInThreads;
using testing::GradientsInOneProcess;

/// One at a time.
class Locked final : public engine::GradientGroup {
 public:
  Locked(engine::GradientGroup& group, std::mutex& mutex) : group_(group), mutex_(mutex) {}

  void all_reduce(std::span<float* const>, int64_t, std::function<void()>) override { throw InternalError("over the host"); }
  void reduce_scatter(std::span<float* const>, int64_t, Added, std::function<void()>) override {
    throw InternalError("over the host");
  }
  void exchange(std::vector<Stretch>, std::vector<Stretch>, std::function<void()>) override {
    throw InternalError("over the host");
  }
  void all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) override {
    const std::lock_guard lock(mutex_);
    group_.all_gather(values, std::move(begins), std::move(done));
  }

 private:
  engine::GradientGroup& group_;
  std::mutex& mutex_;
};

struct Case {
  int ranks, slots;
  bool sharded;
};

// Of one rank: the weights of all, and gradients for its slots that the slots alone decide.
struct OfRank {
  at::Tensor matrix, vector;
  AdamW optimizer;

  OfRank(const Case& of, int rank, const at::Tensor& first, const at::Tensor& second, double clip)
      : matrix(first.clone().set_requires_grad(true)),
        vector(second.clone().set_requires_grad(true)),
        optimizer({{"matrix", matrix}, {"vector", vector}}, {.learning_rate = 1e-2, .weight_decay = 0.1, .clip_grad_norm = clip},
                  {.slots = of.slots,
                   .mine = engine::World{rank, of.ranks, of.slots}.mine(),
                   .owner = of.sharded ? rank : 0,
                   .owners = of.sharded ? of.ranks : 1,
                   .floats_of_bucket = 2 * kFloatsOfABlock}) {}

  void add_gradients(const Case& of, int rank, uint64_t step) {
    const SlotRange mine = engine::World{rank, of.ranks, of.slots}.mine();
    for (int slot = mine.first; slot < mine.last; ++slot) {
      optimizer.parameters().enter_slot(slot);
      RandomStream random(step, static_cast<uint64_t>(slot));
      for (const at::Tensor& weight : {matrix, vector}) {
        auto* gradient = weight.grad().mutable_data_ptr<float>();
        for (int64_t i = 0; i < weight.numel(); ++i) gradient[i] += static_cast<float>(random.uniform() - 0.5);
      }
    }
  }
};

class DeviceTransports : public ::testing::TestWithParam<Case> {
 protected:
  // Steps of all ranks; what each has at last.
  std::vector<at::Tensor> weights_of_all(const Case& of, double clip) {
    GradientsInOneProcess groups(of.ranks, of.slots);
    std::mutex mutex;
    DevicesInThreads devices(of.ranks);
    std::vector<at::Tensor> weights(static_cast<size_t>(of.ranks));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < of.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        OfRank mine(of, rank, matrix_, vector_, clip);
        Locked host(*groups.rank(rank), mutex);
        GradientBuckets buckets(mine.optimizer, std::make_unique<DeviceTransport>(mine.optimizer, devices.rank(rank), host,
                                                                                  engine::World{rank, of.ranks, of.slots}));
        const auto wait_for = [](const std::function<void(const std::function<void()>&)>& begin) {
          std::promise<void> done;
          begin([&] { done.set_value(); });
          done.get_future().wait();
        };
        for (uint64_t step = 0; step < 3; ++step) {
          mine.add_gradients(of, rank, step);
          wait_for([&](const auto& done) { buckets.add_up(done); });
          mine.optimizer.step(0.25);
          wait_for([&](const auto& done) { buckets.bring_weights(done); });
        }
        weights[static_cast<size_t>(rank)] = mine.optimizer.parameters().weight_buffer().clone();
      });
    }
    threads.clear();
    sent_ = devices.floats_of(0);
    return weights;
  }

  // One rank with all slots.
  at::Tensor weights_of_one(int slots, double clip) {
    const Case alone{1, slots, false};
    OfRank one(alone, 0, matrix_, vector_, clip);
    for (uint64_t step = 0; step < 3; ++step) {
      one.add_gradients(alone, 0, step);
      one.optimizer.parameters().add_up_slots({0, one.optimizer.parameters().size()});
      one.optimizer.step(0.25);
    }
    floats_ = one.optimizer.parameters().size();
    return one.optimizer.parameters().weight_buffer().clone();
  }

  const at::Tensor matrix_ = at::randn({300, 401}), vector_ = at::randn({77});
  int64_t sent_ = 0, floats_ = 0;
};

TEST_P(DeviceTransports, HaveTheBitsOfOneRank) {
  const at::Tensor expected = weights_of_one(GetParam().slots, 0);
  for (const at::Tensor& weights : weights_of_all(GetParam(), 0)) EXPECT_TRUE(at::equal(weights, expected));
}

// Squares are added up in another order than the host has.
TEST_P(DeviceTransports, ClipByTheNormOfAllRanks) {
  const at::Tensor expected = weights_of_one(GetParam().slots, 0.5);
  const std::vector<at::Tensor> all = weights_of_all(GetParam(), 0.5);
  for (const at::Tensor& weights : all) {
    EXPECT_LT((weights - expected).abs().max().item<float>(), 1e-6);
    EXPECT_TRUE(at::equal(weights, all.front()));
  }
}

// Gradients once to who owns them, for each subtree of the rank's slots, and weights, or sums, once back.
TEST_P(DeviceTransports, SendNoMoreThanARing) {
  const auto [ranks, slots, sharded] = GetParam();
  weights_of_one(slots, 0);
  weights_of_all(GetParam(), 0);
  const auto subtrees = static_cast<double>(subtrees_of(slots, engine::World{0, ranks, slots}.mine()).size());
  const double part = static_cast<double>(ranks - 1) / ranks, blocks = 2.0 * kFloatsOfABlock * 8;  // parts are whole blocks
  EXPECT_LE(static_cast<double>(sent_), 3 * ((subtrees + 1) * part * static_cast<double>(floats_) + (subtrees + 1) * blocks));
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceTransports,
                         ::testing::Values(Case{2, 2, true}, Case{2, 2, false}, Case{2, 6, true}, Case{3, 3, true},
                                           Case{3, 6, false}, Case{4, 4, true}, Case{4, 12, true}),
                         [](const auto& info) {
                           const Case& of = info.param;
                           return std::to_string(of.ranks) + "Ranks" + std::to_string(of.slots) + "Slots" +
                                  (of.sharded ? "SharedOut" : "");
                         });

}  // namespace
}  // namespace sluice::nodes::device_transport_test
