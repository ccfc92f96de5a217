#include "comm/gradients_over.h"

#include <c10/util/Exception.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "comm/gloo_watch.h"
#include "comm/gradient_group.h"
#include "comm/link_lost.h"
#include "comm/nccl_library.h"
#include "comm/nccl_over.h"
#include "comm/process_group.h"
#include "comm/store_connection.h"
#include "comm/torch_reason.h"

namespace sluice::comm {
namespace {

std::chrono::milliseconds seconds(double count) { return std::chrono::milliseconds(static_cast<int64_t>(count * 1000)); }

template <class Error>
std::exception_ptr not_exchanged(const std::string& model, const std::string& reason, const std::string& help) {
  return std::make_exception_ptr(Error(
      "gradients or weights of model '" + model + "' could not be exchanged with the other ranks that train: " + reason, help));
}

}  // namespace

std::exception_ptr failure_of_gradients(const std::string& model, const std::exception_ptr& error) {
  const std::string help = "look at the network between the machines, and at what the other ranks said last";
  try {
    std::rethrow_exception(error);
  } catch (const UserError& told) {
    return not_exchanged<UserError>(model, told.message(), told.help());
  } catch (const c10::Error& torch) {
    return not_exchanged<LinkLost>(model, torch_reason(torch), help);
  } catch (const std::runtime_error& gloo) {
    return not_exchanged<LinkLost>(model, torch_reason(gloo), help);
  } catch (const std::exception& other) {
    if (!is_of_gloo(other)) return error;
    return not_exchanged<UserError>(model, "a message came damaged: " + torch_reason(other), help);
  } catch (...) {
    return error;
  }
}

namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

// Through whose connection its ranks have found each other, which lives as long.
class StoreGradients final : public engine::GradientGroup {
 public:
  StoreGradients(const Store& store, std::shared_ptr<StoreConnection> connection, const engine::World& world,
                 const std::string& model, double join_seconds, GlooGradients::Failed failed)
      : connection_(std::move(connection)),
        world_(world),
        prefix_("devices/" + model),
        join_seconds_(join_seconds),
        watch_([model, failed](const std::exception_ptr& error) {
          const std::exception_ptr told = failure_of_gradients(model, error);
          failed(told);
          return text_of(told);
        }),
        gradients_(connect_ranks(connection_->torch_store(), "gradients/" + model, world,
                                 {.host = store.own_address(), .to_connect = seconds(join_seconds)}),
                   world.slots, [model, failed = std::move(failed)](std::exception_ptr error) {
                     failed(failure_of_gradients(model, error));
                   }) {}

  void all_reduce(std::span<float* const> parts, int64_t count, std::function<void()> done) override {
    gradients_.all_reduce(parts, count, std::move(done));
  }
  void reduce_scatter(std::span<float* const> parts, int64_t count, Added added, std::function<void()> done) override {
    gradients_.reduce_scatter(parts, count, std::move(added), std::move(done));
  }
  void all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) override {
    gradients_.all_gather(values, std::move(begins), std::move(done));
  }
  void exchange(std::vector<Stretch> out, std::vector<Stretch> in, std::function<void()> done) override {
    gradients_.exchange(std::move(out), std::move(in), std::move(done));
  }
  engine::DeviceExchange* device_exchange(const std::string& device) override {
    const bool on_gpu = device.starts_with("cuda:");
    auto made = nccl_over(*connection_, prefix_, world_, on_gpu ? c10::Device(device) : c10::Device(c10::kCPU),
                          on_gpu ? NcclLibrary::load() : nullptr, Clock::now() + seconds(join_seconds_));
    const std::lock_guard lock(mutex_);
    devices_ = std::move(made);
    if (devices_ && abandoned_) devices_->abandon();
    return devices_.get();
  }
  void abandon() override {
    abandon_devices();
    gradients_.abandon();
  }
  void forget() override {
    abandon_devices();
    gradients_.forget();
  }

 private:
  // On whatever thread learns that the run is over, maybe while devices are being connected.
  void abandon_devices() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    if (devices_) devices_->abandon();
  }

  const std::shared_ptr<StoreConnection> connection_;
  const engine::World world_;
  const std::string prefix_;
  const double join_seconds_;
  std::mutex mutex_;                                 // of the next two
  std::unique_ptr<engine::DeviceExchange> devices_;  // null: none, or nobody has asked
  bool abandoned_ = false;
  const GlooWatch watch_;  // before Gloo's threads begin
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
