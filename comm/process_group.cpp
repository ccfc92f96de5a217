#include "comm/process_group.h"

#include <torch/headeronly/version.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <vector>

#include "base/error.h"
#include "base/process/no_pipe_signal.h"
#include "comm/torch_reason.h"

// What ProcessGroupGloo.hpp of this LibTorch declares, as far as we need it: that header includes Gloo's, which LibTorch comes
// without. Members have the sizes of those there, since the object is made here; all else is done by LibTorch itself.
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11,
              "compare this with the ProcessGroupGloo.hpp of that LibTorch");

namespace gloo {
class Context;
namespace rendezvous {
class Store;
}
namespace transport {
class Device;
}
}  // namespace gloo

namespace c10d {

class ProcessGroupGloo : public Backend {
 public:
  struct Options : Backend::Options {
    explicit Options(std::chrono::milliseconds timeout);

    std::vector<std::shared_ptr<gloo::transport::Device>> devices;
    int threads;
  };

  static std::shared_ptr<gloo::transport::Device> createDeviceForHostname(const std::string& hostname, bool lazy);

  ProcessGroupGloo(const c10::intrusive_ptr<Store>& store, int rank, int size, c10::intrusive_ptr<Options> options);
  ~ProcessGroupGloo() override;

 private:
  std::shared_ptr<gloo::rendezvous::Store> store_;
  c10::intrusive_ptr<Options> options_;
  std::vector<std::shared_ptr<gloo::Context>> contexts_;
  std::vector<std::thread> threads_;
  bool stop_;
  uint32_t collective_counter_;
  std::deque<c10::intrusive_ptr<Work>> queue_;
  std::vector<c10::intrusive_ptr<Work>> in_progress_;
  std::mutex mutex_;
  std::condition_variable produced_, consumed_;
  uint64_t sequence_;
  size_t id_;
  std::shared_ptr<void> status_;
};

}  // namespace c10d

namespace sluice::comm {
namespace {

using c10d::ProcessGroupGloo;

std::shared_ptr<gloo::transport::Device> device_of(const std::string& host) {
  try {
    return ProcessGroupGloo::createDeviceForHostname(host, /*lazy=*/false);  // a lazy one connects later, and waits forever
  } catch (const std::exception& error) {
    throw UserError("this rank cannot listen at '" + host + "': " + torch_reason(error),
                    "the host must be an address of this machine, and the process may need higher limits: ulimit -n, ulimit -u");
  }
}

// Waits for: all ranks. Else a quick one could be gone again before another has its connection to it. Not Gloo's barrier, of
// which LibTorch takes notes that all groups of the process share without a lock.
void meet(c10d::Store& store, int size, std::chrono::milliseconds timeout) {
  if (store.add("connected", 1) == size) store.set("all connected", "yes");
  store.wait({"all connected"}, timeout);
}

}  // namespace

std::shared_ptr<c10d::Backend> connect_ranks(c10d::Store& store, const std::string& prefix, engine::World world,
                                             const ProcessGroupOptions& options) {
  SLUICE_CHECK(0 <= world.rank && world.rank < world.size, "a rank that is none of the ranks");
  const NoPipeSignal no_signal;  // Gloo's threads, which begin here, inherit it
  auto gloo = c10::make_intrusive<ProcessGroupGloo::Options>(options.to_connect);
  gloo->devices.push_back(device_of(options.host));
  gloo->threads = 1;
  try {
    auto own = c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(&store);
    auto keys = c10::make_intrusive<c10d::PrefixStore>(prefix, std::move(own));
    auto group = c10::make_intrusive<ProcessGroupGloo>(keys, world.rank, world.size, std::move(gloo));
    meet(*keys, world.size, options.to_connect);
    auto* backend = group.get();
    return {backend, [group = std::move(group)](c10d::Backend*) mutable { group.reset(); }};
  } catch (const std::exception& error) {
    throw UserError("rank " + std::to_string(world.rank) + " could not connect with the other " + std::to_string(world.size - 1) +
                        " over '" + options.host + "': " + torch_reason(error),
                    "each rank must run, and its host must be reachable for all others");
  }
}

}  // namespace sluice::comm
