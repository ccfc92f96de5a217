#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/json/json.h"
#include "models/folder/folder.h"
#include "tests/models/golden_models.h"
#include "tests/models/tensors.h"
#include "tests/temporary_folder.h"

namespace sluice::models::load_memory_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kVocab = 8192, kHidden = 1024, kInner = 4096, kLayers = 2;
constexpr int64_t kParameters =
    2 * kVocab * kHidden + kLayers * (4 * kHidden * kHidden + 3 * kInner * kHidden + 2 * kHidden) + kHidden;

// A model of 50 million parameters that are all zero, and therefore takes no room on the disk.
void write_model(const fs::path& folder, const std::string& dtype, int64_t bytes_each) {
  const Json config = {{"model_type", "llama"},       {"vocab_size", kVocab},         {"hidden_size", kHidden},
                       {"intermediate_size", kInner}, {"num_hidden_layers", kLayers}, {"num_attention_heads", 8}};
  std::ofstream(folder / "config.json") << config.dump();
  Json header = Json::object();
  int64_t offset = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t end = bytes_each;
    for (const int64_t size : shape) end *= size;
    end += offset;
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
  };
  add("model.embed_tokens.weight", {kVocab, kHidden});
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) add(at + norm + ".weight", {kHidden});
    for (const char* name : {"q", "k", "v", "o"}) add(at + "self_attn." + name + "_proj.weight", {kHidden, kHidden});
    for (const char* name : {"gate", "up"}) add(at + "mlp." + name + "_proj.weight", {kInner, kHidden});
    add(at + "mlp.down_proj.weight", {kHidden, kInner});
  }
  add("model.norm.weight", {kHidden});
  add("lm_head.weight", {kVocab, kHidden});
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(text.size() >> (8 * i) & 0xFF));
  file << text;
  file.close();
  fs::resize_file(folder / "model.safetensors", 8 + text.size() + static_cast<size_t>(offset));
}

// The largest resident size of this process so far, in bytes.
double peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    double kilobytes = 0;
    status >> kilobytes;
    return 1024 * kilobytes;
  }
  return -1;
}

// Runs in a process of its own.
[[noreturn]] void load_and_compare(const fs::path& small, const fs::path& folder, at::ScalarType dtype) {
  load_transformer(small, {.dtype = dtype});  // what torch takes once
  const double before = peak_bytes();
  const Transformer model = load_transformer(folder, {.dtype = dtype});
  const double size = static_cast<double>(kParameters) * static_cast<double>(c10::elementSize(dtype));
  const double ratio = (peak_bytes() - before) / size;
  std::fprintf(stderr, "peak / size of the model = %.3f\n", ratio);
  std::exit(parameter_count(model.weights()) == kParameters && ratio > 0.5 && ratio <= 1.1 ? 0 : 1);
}

TEST(LoadMemoryDeathTest, PeakIsTheModelInItsComputeTypeAndATenth) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // starts the program anew
  const fs::path small = golden_model("qwen2");
  const std::vector<std::tuple<const char*, int64_t, at::ScalarType>> cases{{"BF16", 2, at::kFloat}, {"F32", 4, at::kBFloat16}};
  for (const auto& [stored, bytes, dtype] : cases) {
    const TemporaryFolder folder;
    write_model(folder.path(), stored, bytes);
    EXPECT_EXIT(load_and_compare(small, folder.path(), dtype), ::testing::ExitedWithCode(0), "") << stored;
  }
}

}  // namespace
}  // namespace sluice::models::load_memory_test
