#include "models/cuda/own_kernels.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files/path_kind.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

fs::path library_path() {
  Dl_info info{};
  SLUICE_CHECK(::dladdr(reinterpret_cast<const void*>(&own_kernels), &info) != 0, "this code is in no library");
  return fs::path(info.dli_fname).parent_path() / "libsluice_cuda.so";
}

const OwnKernels* kernels_of(void* library) {
  const auto get = reinterpret_cast<const OwnKernels* (*)()>(::dlsym(library, "sluice_own_kernels"));
  return get == nullptr ? nullptr : get();
}

}  // namespace

void load_own_kernels() {
  const fs::path path = library_path();
  if (!is_there(path)) return;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw UserError("our CUDA kernels cannot be loaded: " + std::string(::dlerror()), "build again");
  const OwnKernels* const kernels = kernels_of(library);
  if (kernels == nullptr || kernels->version != kOwnKernelsVersion)
    throw UserError(path.string() + " is of another build than this program", "build again");
}

// The loader itself keeps what is loaded.
const OwnKernels* own_kernels() {
  void* const library = ::dlopen(library_path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const OwnKernels* const kernels = kernels_of(library);
  ::dlclose(library);  // of the reference that looking took
  return kernels;
}

}  // namespace sluice::models
