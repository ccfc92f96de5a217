#include "tests/fake_device/fake_device.h"

#include <ATen/ops/empty.h>

#include <cstdlib>
#include <exception>

#include "tests/fake_device/called_operators.h"
#include "tests/fake_device/copies.h"
#include "tests/fake_device/guard.h"
#include "tests/fake_device/memory.h"
#include "tests/fake_device/operators.h"
#include "tests/fake_device/streams.h"

namespace sluice::fake {
namespace {

// What is queued when the program ends is done before LibTorch is taken down, whose allocator has to be there before for that.
void finish_before_torch() {
  at::empty({1});
  std::atexit([] {
    try {
      wait_for_all();
    } catch (const std::exception&) {
      // Nobody asks for it any more.
    }
  });
}

}  // namespace

void install() {
  [[maybe_unused]] static const bool once = [] {
    if (const char* path = std::getenv("SLUICE_FAKE_OPERATORS")) write_called_operators(path);
    install_guard();
    install_operators();
    set_schedule(1);
    finish_before_torch();
    return true;
  }();
}

void set_capacity(int64_t bytes) { set_memory_capacity(bytes); }

Counts take_counts() {
  wait_for_all();
  Counts counts = take_operator_counts();
  const Counts copies = take_copy_counts();
  counts.pageable_copies = copies.pageable_copies;
  counts.copies_to_host = copies.copies_to_host;
  counts.bytes_to_host = copies.bytes_to_host;
  counts.live_bytes = live_memory();
  counts.peak_bytes = take_memory_peak();
  return counts;
}

}  // namespace sluice::fake
