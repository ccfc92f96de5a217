#include "tests/fake_device/memory.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/fake_device/fake_device.h"
#include "tests/fake_device/streams.h"

namespace sluice::fake {
namespace {

constexpr size_t kArena = size_t{64} << 30;  // addresses of a device; pages come as they are touched
constexpr size_t kLeast = 512;
constexpr int kUnwritten = 0xFF;  // every float NaN, every integer -1

struct Block {
  size_t bytes = 0;
  c10::Stream stream;
  std::vector<Event> users;  // on other streams
};

class Arena {
 public:
  Arena() {
    const int file = ::memfd_create("fake device", 0);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(kArena)) != 0) std::abort();
    base_ = static_cast<char*>(::mmap(nullptr, kArena, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0));
    twin_ = static_cast<char*>(::mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
    ::close(file);
    if (base_ == MAP_FAILED || twin_ == MAP_FAILED) std::abort();
  }

  bool has(const char* address) const { return base_ <= address && address < base_ + kArena; }
  char* twin(const char* address) const { return twin_ + (address - base_); }

  char* take(size_t bytes, c10::Stream stream) {
    auto& unused = unused_[{stream.id(), bytes}];
    char* address = nullptr;
    if (!unused.empty()) {
      address = unused.back();
      unused.pop_back();
    } else {
      if (next_ + bytes > kArena) std::abort();
      address = base_ + next_;
      next_ += bytes;
    }
    blocks_.emplace(address, Block{.bytes = bytes, .stream = stream, .users = {}});
    return address;
  }

  Block give_back(char* address) {
    const auto found = blocks_.find(address);
    Block block = std::move(found->second);
    blocks_.erase(found);
    unused_[{block.stream.id(), block.bytes}].push_back(address);
    return block;
  }

  Block& block_at(const char* address) { return std::prev(blocks_.upper_bound(address))->second; }

 private:
  char *base_ = nullptr, *twin_ = nullptr;
  size_t next_ = 0;
  std::map<const char*, Block, std::less<>> blocks_;
  std::map<std::pair<c10::StreamId, size_t>, std::vector<char*>> unused_;
};

struct Memory {
  std::mutex mutex;
  std::array<Arena, kDevices> arenas;
  std::map<const char*, size_t, std::less<>> pinned;
  int64_t live = 0, peak = 0, capacity = int64_t{1} << 40;
  std::array<c10::CachingAllocator::Stat, kDevices> of_device;  // bytes

  Arena* arena_of(const void* address) {
    for (Arena& arena : arenas) {
      if (arena.has(static_cast<const char*>(address))) return &arena;
    }
    return nullptr;
  }
};

// Streams and LibTorch's own statics use it until the process ends.
Memory& memory() {
  static Memory& all = *new Memory;
  return all;
}

void make_unwritten(const c10::Stream& stream, char* twin, size_t bytes) {
  stream_of(stream).queue([twin, bytes] { std::memset(twin, kUnwritten, bytes); });
}

void give_back(void* address) {
  if (address == nullptr) return;
  Memory& all = memory();
  std::unique_lock lock(all.mutex);
  Arena& arena = *all.arena_of(address);
  const Block block = arena.give_back(static_cast<char*>(address));
  all.live -= static_cast<int64_t>(block.bytes);
  all.of_device[static_cast<size_t>(&arena - all.arenas.data())].decrease(block.bytes);
  for (const Event& user : block.users) make_wait(stream_of(block.stream), user);
  // Under the lock: whoever takes the block next queues after this.
  make_unwritten(block.stream, arena.twin(static_cast<char*>(address)), block.bytes);
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override { note_use(data.get(), stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)] =
        all.of_device.at(static_cast<size_t>(device));
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    all.of_device.at(static_cast<size_t>(device)).reset_peak();
  }
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device = c10::impl::getDeviceGuardImpl(c10::DeviceType::PrivateUse1)->getDevice();
    if (bytes == 0) return {nullptr, nullptr, give_back, device};
    const size_t size = std::bit_ceil(std::max(bytes, kLeast));
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    TORCH_CHECK_WITH(OutOfMemoryError, all.live + static_cast<int64_t>(size) <= all.capacity,
                     "fake device out of memory. Tried to allocate ", bytes, " bytes. Device ", static_cast<int>(device.index()),
                     " has ", all.capacity, " bytes, of which ", all.live, " are in use");
    all.live += static_cast<int64_t>(size);
    all.peak = std::max(all.peak, all.live);
    all.of_device[static_cast<size_t>(device.index())].increase(size);
    Arena& arena = all.arenas[static_cast<size_t>(device.index())];
    const c10::Stream stream = current_stream(device.index());
    char* const address = arena.take(size, stream);
    make_unwritten(stream, arena.twin(address), size);
    return {address, address, give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return give_back; }
  void copy_data(void*, const void*, std::size_t) const override { std::abort(); }
};

void give_back_pinned(void* address) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  all.pinned.erase(static_cast<const char*>(address));
  std::free(address);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    constexpr size_t kLine = 64;
    const size_t size = (std::max(bytes, kLine) + kLine - 1) / kLine * kLine;
    void* const address = std::aligned_alloc(kLine, size);
    std::memset(address, kUnwritten, size);
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    all.pinned.emplace(static_cast<const char*>(address), size);
    return {address, address, give_back_pinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return give_back_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

c10::Allocator& device_allocator() {
  static DeviceAllocator& only = *new DeviceAllocator;
  return only;
}

c10::Allocator& pinned_allocator() {
  static PinnedAllocator& only = *new PinnedAllocator;
  return only;
}

bool is_pinned(const void* address) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto after = all.pinned.upper_bound(static_cast<const char*>(address));
  if (after == all.pinned.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return static_cast<const char*>(address) < begin + bytes;
}

char* twin_of(const void* address) {
  const Arena* arena = memory().arena_of(address);
  TORCH_CHECK(arena != nullptr, "an address that no fake device has");
  return arena->twin(static_cast<const char*>(address));
}

c10::DeviceIndex device_of(const void* address) {
  Memory& all = memory();
  for (size_t i = 0; i < all.arenas.size(); ++i) {
    if (all.arenas[i].has(static_cast<const char*>(address))) return static_cast<c10::DeviceIndex>(i);
  }
  TORCH_CHECK(false, "an address that no fake device has");
}

void note_use(const void* address, c10::Stream stream) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  Arena* const arena = all.arena_of(address);
  if (arena == nullptr) return;
  Stream& user = stream_of(stream);
  arena->block_at(static_cast<const char*>(address)).users.push_back({&user, user.last_queued()});
}

void set_memory_capacity(int64_t bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().capacity = bytes;
}

int64_t live_memory() {
  const std::lock_guard lock(memory().mutex);
  return memory().live;
}

int64_t take_memory_peak() {
  const std::lock_guard lock(memory().mutex);
  return std::exchange(memory().peak, memory().live);
}

at::Tensor host_view(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  const auto options = at::TensorOptions(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(twin_of(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(), options);
}

}  // namespace sluice::fake
