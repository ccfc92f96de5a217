#include "models/cuda/driver.h"

#include <dlfcn.h>

#include <cstddef>

namespace sluice::models {
namespace {

// Null: there is none.
void* driver_library() { return ::dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL); }

// Of a function that has been the same since the driver's first versions; null: it has none of that name.
template <class Function>
Function of_driver(const char* name) {
  void* const library = driver_library();
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

bool has_driver() { return driver_library() != nullptr; }

int gpus_of_driver() {
  const auto init = of_driver<int (*)(unsigned)>("cuInit");
  const auto count = of_driver<int (*)(int*)>("cuDeviceGetCount");
  int devices = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&devices) == 0 ? devices : 0;
}

int64_t memory_of_gpu(int number) {
  const auto device_of = of_driver<int (*)(int*, int)>("cuDeviceGet");
  const auto bytes_of = of_driver<int (*)(size_t*, int)>("cuDeviceTotalMem_v2");
  if (device_of == nullptr || bytes_of == nullptr || number >= gpus_of_driver()) return 0;
  int device = 0;
  size_t bytes = 0;
  return device_of(&device, number) == 0 && bytes_of(&bytes, device) == 0 ? static_cast<int64_t>(bytes) : 0;
}

}  // namespace sluice::models
