// A step that is the same again and again, but for the numbers that it reads, is recorded once and played: the host enqueues it
// in one call (CUDA graphs).

#include "models/cuda/launch.h"
#include "models/cuda/step_parts.h"

namespace sluice::models {
namespace {

const char* text_of(cudaError_t error) { return error == cudaSuccess ? nullptr : cudaGetErrorString(error); }

}  // namespace

// Relaxed: what other threads do on the device meanwhile is theirs.
const char* begin_recording(int32_t device, void** stream) {
  cudaStream_t recorded = nullptr;
  cudaError_t error = cudaSuccess;
  const char* const failure = gpu::launched(device, [&] {
    error = cudaStreamCreateWithFlags(&recorded, cudaStreamNonBlocking);
    if (error != cudaSuccess) return;
    error = cudaStreamBeginCapture(recorded, cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess) cudaStreamDestroy(recorded);
  });
  if (failure != nullptr || error != cudaSuccess) return failure != nullptr ? failure : text_of(error);
  *stream = recorded;
  return nullptr;
}

const char* end_recording(int32_t device, void* stream, void** recording) {
  const auto recorded = static_cast<cudaStream_t>(stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t playable = nullptr;
  cudaError_t error = cudaSuccess;
  const char* const failure = gpu::launched(device, [&] {
    error = cudaStreamEndCapture(recorded, &graph);
    if (error == cudaSuccess) error = cudaGraphInstantiate(&playable, graph, 0);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaStreamDestroy(recorded);
  });
  if (failure != nullptr || error != cudaSuccess) return failure != nullptr ? failure : text_of(error);
  *recording = playable;
  return nullptr;
}

const char* play(int32_t device, void* recording, void* stream) {
  return gpu::launched(device,
                       [&] { cudaGraphLaunch(static_cast<cudaGraphExec_t>(recording), static_cast<cudaStream_t>(stream)); });
}

void forget(void* recording) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(recording)); }

}  // namespace sluice::models
