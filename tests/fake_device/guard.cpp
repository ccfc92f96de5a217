#include "tests/fake_device/guard.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "tests/fake_device/fake_device.h"
#include "tests/fake_device/memory.h"
#include "tests/fake_device/streams.h"

namespace sluice::fake {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr size_t kStreams = 8;  // of a device; the first is the default one

struct Device {
  std::array<Stream, kStreams> streams;
  std::atomic<size_t> given_out = 0;
};

std::array<Device, kDevices>& devices() {
  static auto& all = *new std::array<Device, kDevices>;
  return all;
}

// What LibTorch has of each thread for each kind of device.
struct OfThread {
  c10::DeviceIndex device = 0;
  std::array<c10::StreamId, kDevices> streams{};
};

OfThread& of_thread() {
  thread_local OfThread mine;
  return mine;
}

c10::Device valid(c10::Device device) {
  TORCH_CHECK(device.index() < kDevices, "there is no device ", device);
  return {kType, device.index() < 0 ? of_thread().device : device.index()};
}

c10::Stream stream(c10::DeviceIndex device, c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, {kType, device}, id); }

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  c10::Device getDevice() const override { return {kType, of_thread().device}; }
  void setDevice(c10::Device device) const override { of_thread().device = valid(device).index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { of_thread().device = device.index(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }

  c10::Stream getStream(c10::Device device) const override { return current_stream(valid(device).index()); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(valid(device).index(), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    const c10::DeviceIndex index = valid(device).index();
    const size_t next = devices()[static_cast<size_t>(index)].given_out++ % (kStreams - 1);
    return stream(index, static_cast<c10::StreamId>(next) + 1);
  }
  void* getStreamNativeHandle(c10::Stream of) const override { return of.id() == 0 ? nullptr : &stream_of(of); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    auto& current = of_thread().streams[static_cast<size_t>(next.device_index())];
    return stream(next.device_index(), std::exchange(current, next.id()));
  }

  void record(void** event, const c10::Stream& where, c10::DeviceIndex, c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Event;
    Stream& recorded = stream_of(where);
    Event made{&recorded, recorded.last_queued()};
    if (flag == c10::EventFlag::BACKEND_DEFAULT) {  // those of CUDA tell the time then
      made.reached = std::make_shared<std::chrono::steady_clock::time_point>();
      made.piece = recorded.queue([reached = made.reached] { *reached = std::chrono::steady_clock::now(); });
    }
    *static_cast<Event*>(*event) = std::move(made);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void block(void* event, const c10::Stream& waiting) const override {
    if (event != nullptr) make_wait(stream_of(waiting), *static_cast<Event*>(event));
  }
  bool queryEvent(void* event) const override {
    const Event& of = *static_cast<Event*>(event);
    return of.stream == nullptr || of.stream->has_done(of.piece);
  }
  void synchronizeEvent(void* event) const override {
    const Event& of = *static_cast<Event*>(event);
    if (of.stream != nullptr) of.stream->wait_for(of.piece);
  }

  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    const auto *from = static_cast<const Event*>(first), *to = static_cast<const Event*>(second);
    TORCH_CHECK(from->reached && to->reached, "an event that does not tell the time");
    synchronizeEvent(first);
    synchronizeEvent(second);
    return std::chrono::duration<double, std::milli>(*to->reached - *from->reached).count();
  }

  bool queryStream(const c10::Stream& of) const override { return stream_of(of).is_idle(); }
  void synchronizeStream(const c10::Stream& of) const override { stream_of(of).wait(); }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    for (Stream& each : devices()[static_cast<size_t>(device)].streams) each.wait();
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& user) const override { note_use(data.get(), user); }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return of_thread().device; }
  void setCurrentDevice(c10::DeviceIndex device) const override { of_thread().device = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return std::exchange(of_thread().device, device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  // Nothing is drawn on the devices; at::manual_seed() seeds what it is given.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const auto& unused = *new at::Generator(at::detail::createCPUGenerator());
    return unused;
  }
  c10::Device getDeviceFromPtr(void* data) const override { return {kType, device_of(data)}; }
};

}  // namespace

c10::Stream current_stream(c10::DeviceIndex device) { return stream(device, of_thread().streams[static_cast<size_t>(device)]); }

Stream& stream_of(c10::Stream stream) {
  return devices()[static_cast<size_t>(stream.device_index())].streams[static_cast<size_t>(stream.id())];
}

void set_schedule(uint64_t seed) {
  for (Device& device : devices()) {
    for (Stream& each : device.streams) each.set_schedule(seed++);
  }
}

void wait_for_all() {
  for (Device& device : devices()) {
    for (Stream& each : device.streams) each.wait();
  }
}

void install_guard() {
  c10::register_privateuse1_backend("fake");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::impl::registerDeviceGuard(kType, new Guard);
  c10::SetAllocator(kType, &device_allocator());
}

}  // namespace sluice::fake
