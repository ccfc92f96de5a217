#include "models/cuda/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceType.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <typeinfo>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "models/cuda/gpus_of_rank.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_attention.h"
#include "models/cuda/training_operators.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kFullWheels = "./rlhf-run --setup --cuda takes LibTorch with all that its CUDA part needs";

// libtorch_cuda.so lies beside libtorch_cpu.so, which has at::globalContext().
fs::path cuda_part_of_torch() {
  Dl_info info{};
  SLUICE_CHECK(::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) != 0, "LibTorch is in no library");
  return fs::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
}

struct Driver {
  bool there = false;
  int devices = 0;
};

// Asks the driver itself, by two functions that have been the same since its first version.
Driver driver() {
  void* const library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
  Driver found{.there = true};
  if (init == nullptr || count == nullptr || init(0) != 0 || count(&found.devices) != 0) found.devices = 0;
  return found;
}

// Of a function of the driver; null: it has none of that name.
template <class Function>
Function of_driver(const char* name) {
  void* const library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

// LibTorch's allocator then maps pages after what it has, instead of keeping blocks of sizes that nobody asks for again. Where
// something is said already, that counts.
void prefer_growing_memory() {
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr) ::setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 0);
}

}  // namespace

bool has_driver() { return ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL) != nullptr; }

int gpus_of_driver() { return driver().devices; }

int64_t memory_of_gpu(int number) {
  const auto device_of = of_driver<int (*)(int*, int)>("cuDeviceGet");
  const auto bytes_of = of_driver<int (*)(size_t*, int)>("cuDeviceTotalMem_v2");
  if (device_of == nullptr || bytes_of == nullptr || number >= driver().devices) return 0;
  int device = 0;
  size_t bytes = 0;
  return device_of(&device, number) == 0 && bytes_of(&bytes, device) == 0 ? static_cast<int64_t>(bytes) : 0;
}

std::optional<at::Device> device_named(std::string_view name) {
  if (name == "cpu") return at::Device(at::kCPU);
  const auto parts = device_name(name);
  if (!parts) return std::nullopt;
  const auto number = static_cast<at::DeviceIndex>(parts->number);
  if (parts->kind == "cuda") return at::Device(at::kCUDA, number);
  if (c10::is_privateuse1_backend_registered() && parts->kind == c10::get_privateuse1_backend())
    return at::Device(at::kPrivateUse1, number);
  return std::nullopt;
}

std::optional<MissingDevice> missing_gpu(int number) {
  const fs::path library = cuda_part_of_torch();
  if (!is_there(library)) return MissingDevice{"this LibTorch has no CUDA part (" + library.string() + ")", kFullWheels};
  const Driver found = driver();
  if (!found.there) {
    return MissingDevice{"this machine has no NVIDIA driver (" + std::string(kDriver) + ")",
                         "run it on a machine with an NVIDIA GPU and its driver"};
  }
  if (number < found.devices) return std::nullopt;
  if (const char* visible = std::getenv(kVisibleGpus); found.devices == 0 && visible != nullptr && *visible == '\0') {
    return MissingDevice{"this process sees no GPU: CUDA_VISIBLE_DEVICES is empty, as it is for ranks of a host with fewer GPUs",
                         "as many ranks on a host as it has GPUs"};
  }
  return MissingDevice{
      "this machine has " + (found.devices == 0 ? "no GPU" : plural(found.devices, "GPU")) + " that its driver can use",
      found.devices == 0 ? "run it on a machine with an NVIDIA GPU" : "cuda:0 is the first, cuda:1 the second"};
}

void use_cuda() {
  prefer_growing_memory();
  const fs::path library = cuda_part_of_torch();
  if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw UserError("the CUDA part of LibTorch cannot be loaded: " + std::string(::dlerror()), kFullWheels);
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  SLUICE_CHECK(typeid(hooks) != typeid(at::CUDAHooksInterface), "LibTorch was asked for its CUDA part before that was loaded");
  load_own_kernels();
  if (own_kernels() == nullptr) return;
  offer_paged_decode_attention();
  offer_training_operators();
}

}  // namespace sluice::models
