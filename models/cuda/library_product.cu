// Products of a step: those of few rows by our kernel, the others by cuBLAS. LibTorch's CUDA part has loaded that by now; it is
// asked for by name, so that nothing of it is needed where this is built or packed.

#include <cublas_api.h>
#include <dlfcn.h>

#include <memory>
#include <string>
#include <type_traits>

#include "models/cuda/launch.h"
#include "models/cuda/step_parts.h"

namespace sluice::models {
namespace {

// One of several functions of its name.
using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*,
                                cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
                                cublasComputeType_t, cublasGemmAlgo_t);

struct Library {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  Gemm gemm = nullptr;

  cublasHandle_t handle = nullptr;
  void* memory = nullptr;
  size_t bytes = 0;

  ~Library() {
    if (handle != nullptr) destroy(handle);
  }
};

bool find(Library& library) {
  const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const loaded = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return false;
  const auto get = [&](auto& function, const char* of) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(loaded, of));
    return function != nullptr;
  };
  return get(library.create, "cublasCreate_v2") && get(library.destroy, "cublasDestroy_v2") &&
         get(library.set_stream, "cublasSetStream_v2") && get(library.set_workspace, "cublasSetWorkspace_v2") &&
         get(library.set_math_mode, "cublasSetMathMode") && get(library.gemm, "cublasGemmEx");
}

constexpr const char* kRefused = "cuBLAS refused a product";

// Column by column, as cuBLAS counts: y^T = w x^T.
const char* multiply(const Library& library, const StepProductArguments& in) {
  const float one = 1, none = 0;
  // Memory is forgotten with the stream.
  if (library.set_stream(library.handle, static_cast<cudaStream_t>(in.stream)) != CUBLAS_STATUS_SUCCESS ||
      library.set_workspace(library.handle, library.memory, library.bytes) != CUBLAS_STATUS_SUCCESS)
    return kRefused;
  const cublasStatus_t status =
      library.gemm(library.handle, CUBLAS_OP_T, CUBLAS_OP_N, in.outputs, in.rows, in.inputs, &one, in.w, CUDA_R_16BF, in.inputs,
                   in.x, CUDA_R_16BF, in.inputs, &none, in.y, CUDA_R_32F, in.apart, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : kRefused;
}

}  // namespace

const char* open_library(int32_t device, void* memory, int64_t bytes, void** library) {
  auto opened = std::make_unique<Library>();
  if (!find(*opened)) return "cuBLAS, which LibTorch uses, is not there";
  opened->memory = memory, opened->bytes = static_cast<size_t>(bytes);
  bool done = false;
  const char* const failure = gpu::launched(device, [&] {
    done = opened->create(&opened->handle) == CUBLAS_STATUS_SUCCESS &&
           opened->set_math_mode(opened->handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == CUBLAS_STATUS_SUCCESS;
  });
  if (failure != nullptr) return failure;
  if (!done) return "cuBLAS could not be started";
  *library = opened.release();
  return nullptr;
}

void close_library(void* library) { delete static_cast<Library*>(library); }

const char* product(const StepProductArguments& in) {
  if (in.rows == 0) return nullptr;
  const char* refused = nullptr;
  const char* const failure = gpu::launched(in.device, [&] {
    if (is_skinny(in)) return launch_skinny_product(in);
    if (in.library == nullptr) return static_cast<void>(refused = "a product of many rows without the library");
    refused = multiply(*static_cast<const Library*>(in.library), in);
  });
  return failure != nullptr ? failure : refused;
}

// Matrices that lie beside each other are one.
const char* gated_product(const GatedProductArguments& in) {
  const GateArguments& of = in.of;
  StepProductArguments product_of{.x = in.x,
                                  .w = in.up,
                                  .y = in.projected,
                                  .rows = of.rows,
                                  .inputs = in.inputs,
                                  .outputs = of.size,
                                  .apart = of.gated ? 2 * of.size : of.size,
                                  .library = in.library,
                                  .device = of.device,
                                  .stream = of.stream};
  if (of.rows == 0) return nullptr;
  if (is_skinny(product_of)) return gpu::launched(of.device, [&] { launch_skinny_gated(in); });
  const char* failure = nullptr;
  const bool beside = of.gated && static_cast<const char*>(in.gate) + int64_t{2} * of.size * in.inputs == in.up;
  if (of.gated && !beside) {
    product_of.w = in.gate;
    failure = product(product_of);
    product_of.w = in.up, product_of.y = in.projected + of.size;
  } else if (of.gated) {
    product_of.w = in.gate, product_of.outputs = 2 * of.size;
  }
  if (failure == nullptr) failure = product(product_of);
  return failure != nullptr ? failure : gate(of);
}

}  // namespace sluice::models
