#include "nodes/models/gradients/common_meeting.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace sluice::nodes {
namespace {

constexpr std::chrono::microseconds kLooks{100};  // between two looks: what is waited for takes milliseconds

}  // namespace

CommonMeeting::CommonMeeting(const std::string& name, engine::CommonMemory& memory)
    : memory_(memory), counter_(memory.get(name, sizeof(int64_t))) {}

void CommonMeeting::wait() {
  const std::atomic_ref come(*reinterpret_cast<int64_t*>(counter_.get()));
  come.fetch_add(1, std::memory_order_acq_rel);
  const int64_t all = ++meetings_ * memory_.ranks().count();
  while (come.load(std::memory_order_acquire) < all) {
    if (memory_.is_over() || has_given_up_.load(std::memory_order_relaxed))
      throw UserError("another rank is lost, with which this one has memory in common");
    std::this_thread::sleep_for(kLooks);
  }
}

}  // namespace sluice::nodes
