// The fake devices as a plugin: rlhf-run run FILE --plugin libsluice_fake_device.so --set models.actor.device=fake:0
#include <cstdlib>
#include <string>

#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "tests/fake_device/fake_device.h"

namespace sluice::fake {
namespace {

std::optional<MissingDevice> missing(int number) {
  if (number < kDevices) return std::nullopt;
  return MissingDevice{"there are only " + std::to_string(kDevices) + " fake devices", "fake:0 is the first, fake:1 the second"};
}

// SLUICE_FAKE_SCHEDULE: a seed. SLUICE_FAKE_CAPACITY: bytes.
void use() {
  install();
  if (const char* bytes = std::getenv("SLUICE_FAKE_CAPACITY")) set_capacity(std::stoll(bytes));
  if (const char* seed = std::getenv("SLUICE_FAKE_SCHEDULE")) set_schedule(std::stoull(seed));
}

void add_devices(engine::Registry& registry) { registry.add_device_kind({.name = "fake", .missing = missing, .use = use}); }

}  // namespace
}  // namespace sluice::fake

SLUICE_PLUGIN(sluice::fake::add_devices)
