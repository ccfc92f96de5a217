#include "models/folder/safetensors_writer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <thread>

#include "models/folder/safetensors.h"
#include "models/layers/adapter_products.h"
#include "models/memory/tensor_memory.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::models::safetensors_writer_test {
namespace {

constexpr int64_t kOutputs = 9000, kInputs = 1003;  // 36 MB: some pieces, the last of which is no whole one

Adapter adapter_of(int64_t outputs, int64_t inputs) {
  return {.a = at::randn({5, inputs}), .b = at::randn({outputs, 5}), .scale = 0.7};
}

// Each tensor as a whole.
at::Tensor whole(const OutputTensor& tensor, at::ScalarType dtype) {
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < tensor.parts.size(); ++i)
    parts.push_back(merged_matrix(tensor.parts[i], tensor.adapters.empty() ? Adapter() : tensor.adapters[i]));
  const at::Tensor joined = at::cat(parts);
  return (tensor.transposed ? joined.t() : joined).to(dtype).contiguous();
}

std::vector<OutputTensor> large_tensors() {
  const at::Tensor one = at::randn({kOutputs, kInputs}), other = at::randn({kInputs, kOutputs / 3});
  return {{.name = "plain", .parts = {one}},
          {.name = "merged", .parts = {one}, .adapters = {adapter_of(kOutputs, kInputs)}},
          {.name = "of parts", .parts = {one, one.narrow(0, 0, 77)}, .adapters = {Adapter(), adapter_of(77, kInputs)}},
          {.name = "transposed",
           .parts = {other, other},
           .adapters = {adapter_of(kInputs, kOutputs / 3), Adapter()},
           .transposed = true},
          {.name = "row", .parts = {one.narrow(0, 5, 1).reshape({kInputs})}}};
}

// A tensor that is written in pieces has the bits of one that is not.
TEST(SafetensorsWriter, WritesLargeTensorsAsTheyAre) {
  const TemporaryFolder folder;
  const at::NoGradGuard no_gradient;
  const std::vector<OutputTensor> tensors = large_tensors();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    write_model_files(folder.path(), tensors, {.dtype = dtype}, unsynced_disk());
    const TensorFolder written(folder.path());
    for (const OutputTensor& tensor : tensors) {
      const at::Tensor expected = whole(tensor, dtype);
      EXPECT_TRUE(written.read(tensor.name, expected.sizes()).equal(expected.to(at::kFloat))) << tensor.name;
      EXPECT_EQ(written.damage_of(tensor.name), "") << tensor.name;
    }
  }
}

TEST(SafetensorsWriter, TakesNoMoreThanSomeMegabytes) {
  const TemporaryFolder folder;
  std::thread([&] {
    const std::vector<OutputTensor> tensors = large_tensors();
    TensorMemory memory;
    memory.watch_this_thread();
    write_model_files(folder.path(), tensors, {.dtype = at::kBFloat16}, unsynced_disk());
    EXPECT_LT(memory.take_peak(), 40'000'000);
    EXPECT_EQ(memory.live(), 0);
  }).join();
}

}  // namespace
}  // namespace sluice::models::safetensors_writer_test
