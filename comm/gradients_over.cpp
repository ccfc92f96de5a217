#include "comm/gradients_over.h"

#include <chrono>
#include <utility>

#include "comm/gradient_group.h"
#include "comm/process_group.h"
#include "comm/store_connection.h"

namespace sluice::comm {
namespace {

// Through whose connection its ranks have found each other, which lives as long.
class StoreGradients final : public engine::GradientGroup {
 public:
  StoreGradients(const Store& store, std::shared_ptr<StoreConnection> connection, const engine::World& world,
                 const std::string& model, double join_seconds, GlooGradients::Failed failed)
      : connection_(std::move(connection)),
        gradients_(connect_ranks(connection_->torch_store(), "gradients/" + model, world,
                                 {.host = store.own_address(),
                                  .to_connect = std::chrono::milliseconds(static_cast<int64_t>(join_seconds * 1000))}),
                   world.slots, std::move(failed)) {}

  void all_reduce(std::span<float* const> parts, int64_t count, std::function<void()> done) override {
    gradients_.all_reduce(parts, count, std::move(done));
  }
  void reduce_scatter(std::span<float* const> parts, int64_t count, Added added, std::function<void()> done) override {
    gradients_.reduce_scatter(parts, count, std::move(added), std::move(done));
  }
  void all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) override {
    gradients_.all_gather(values, std::move(begins), std::move(done));
  }
  void abandon() override { gradients_.abandon(); }
  void forget() override { gradients_.forget(); }

 private:
  const std::shared_ptr<StoreConnection> connection_;
  GlooGradients gradients_;
};

}  // namespace

std::unique_ptr<engine::GradientGroup> gradients_over(const Store& store, const engine::World& world, const std::string& model,
                                                      double join_seconds, std::function<void(std::exception_ptr)> failed,
                                                      const std::stop_token& give_up) {
  const std::shared_ptr<StoreConnection> connection = store.connect();
  const std::stop_callback interrupt(give_up, [connection] { connection->interrupt(); });
  return std::make_unique<StoreGradients>(store, connection, world, model, join_seconds, std::move(failed));
}

}  // namespace sluice::comm
