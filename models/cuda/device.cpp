#include "models/cuda/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <typeinfo>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "models/cuda/driver.h"
#include "models/cuda/gpus_of_rank.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_attention.h"
#include "models/cuda/training_operators.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFullWheels = "./rlhf-run --setup --cuda takes LibTorch with all that its CUDA part needs";

// libtorch_cuda.so lies beside libtorch_cpu.so, which has at::globalContext().
fs::path cuda_part_of_torch() {
  Dl_info info{};
  SLUICE_CHECK(::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) != 0, "LibTorch is in no library");
  return fs::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
}

// LibTorch's allocator then maps pages after what it has, instead of keeping blocks of sizes that nobody asks for again. Where
// something is said already, that counts.
void prefer_growing_memory() {
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr) ::setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 0);
}

}  // namespace

std::optional<MissingDevice> missing_gpu(int number) {
  const fs::path library = cuda_part_of_torch();
  if (!is_there(library)) return MissingDevice{"this LibTorch has no CUDA part (" + library.string() + ")", kFullWheels};
  if (!has_driver()) {
    return MissingDevice{"this machine has no NVIDIA driver (" + std::string(kDriverLibrary) + ")",
                         "run it on a machine with an NVIDIA GPU and its driver"};
  }
  const int gpus = gpus_of_driver();
  if (number < gpus) return std::nullopt;
  if (const char* visible = std::getenv(kVisibleGpus); gpus == 0 && visible != nullptr && *visible == '\0') {
    return MissingDevice{"this process sees no GPU: CUDA_VISIBLE_DEVICES is empty, as it is for ranks of a host with fewer GPUs",
                         "as many ranks on a host as it has GPUs"};
  }
  return MissingDevice{"this machine has " + (gpus == 0 ? "no GPU" : plural(gpus, "GPU")) + " that its driver can use",
                       gpus == 0 ? "run it on a machine with an NVIDIA GPU" : "cuda:0 is the first, cuda:1 the second"};
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
