#include "models/folder/adapter_folder.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "models/adapters/lora.h"
#include "models/folder/folder.h"
#include "models/folder/safetensors.h"
#include "models/layers/adapter_products.h"
#include "tests/source_folder.h"
#include "tests/temporary_folder.h"

namespace sluice::models::adapter_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

fs::path golden(const std::string& name) { return fs::path(tests::source_folder()) / "tests/golden/models" / name; }

constexpr int64_t kRank = 2;

Transformer adapted(const std::string& name, const std::vector<std::string>& targets, bool random, Head head = {},
                    double alpha = 6) {
  Transformer model = load_transformer(golden(name), {.head = head});
  add_adapters(model.weights(), {.rank = kRank, .alpha = alpha, .targets = targets}, 11);
  if (!random) return model;
  const at::NoGradGuard no_gradient;
  for (const auto& [name_of, weight] : model.weights().trainable()) weight.normal_();
  return model;
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, AdaptersAreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const Transformer model = adapted(GetParam(), {kAllLinear}, true);
  write_adapter(model, golden(GetParam()), folder.path());
  Transformer read = adapted(GetParam(), {kAllLinear}, false);
  read_adapter(read.weights(), folder.path());
  const auto before = model.weights().named(), after = read.weights().named();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].second.equal(after[i].second)) << before[i].first;
}

TEST_P(EveryFamily, IsSavedMerged) {
  const TemporaryFolder folder;
  const Transformer model = adapted(GetParam(), {kAllLinear}, true);
  save_folder(model, golden(GetParam()), folder.path() / "saved", {.dtype = {}, .adapter = SavedAdapter::kBoth});
  EXPECT_TRUE(fs::exists(folder.path() / "saved/adapter/adapter_config.json"));
  Transformer saved = load_transformer(folder.path() / "saved", {});
  Weights weights = model.weights();
  const auto ours = adaptable_matrices(weights), theirs = adaptable_matrices(saved.weights());
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(merged_matrix(*ours[i].weight, *ours[i].adapter).equal(*theirs[i].weight)) << ours[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryFamily,
                         ::testing::Values("llama_gqa", "qwen3_biases", "phi3_su", "gpt2", "gemma2", "olmo2"));

TEST(AdapterFolder, HasTheNamesAndShapesOfPeft) {
  const TemporaryFolder folder;
  write_adapter(adapted("llama_gqa", {"q_proj", "v_proj"}, true), "base/model", folder.path());
  const TensorFolder tensors = TensorFolder::of_file(folder.path() / "adapter_model.safetensors");
  const std::string query = "base_model.model.model.layers.1.self_attn.q_proj.lora_";
  ASSERT_TRUE(tensors.contains(query + "A.weight") && tensors.contains(query + "B.weight"));
  EXPECT_EQ(tensors.entry(query + "A.weight").shape[0], kRank);
  EXPECT_EQ(tensors.entry(query + "B.weight").shape[1], kRank);
  const Json config = read_json(folder.path() / "adapter_config.json");
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["task_type"], "CAUSAL_LM");
  EXPECT_EQ(config["r"], kRank);
  EXPECT_EQ(config["lora_alpha"], 6.0);
  EXPECT_EQ(config["base_model_name_or_path"], absolute_path("base/model").string());
  EXPECT_THAT(config["target_modules"].get<std::vector<std::string>>(), ElementsAre("self_attn.q_proj", "self_attn.v_proj"));
}

// A name within its layer would mean that of every layer.
TEST(AdapterFolder, AModuleOfSomeLayersHasItsWholeName) {
  const TemporaryFolder folder;
  write_adapter(adapted("llama_gqa", {"layers.1.self_attn.q_proj", "v_proj"}, true), "base", folder.path());
  EXPECT_THAT(read_json(folder.path() / "adapter_config.json")["target_modules"].get<std::vector<std::string>>(),
              ElementsAre("model.layers.1.self_attn.q_proj", "self_attn.v_proj"));
}

// Query, key and value are one tensor of the file: one adapter of three times the rank, which counts as much.
TEST(AdapterFolder, PartsOfATensorAreOneAdapter) {
  const TemporaryFolder folder;
  write_adapter(adapted("phi3_su", {"qkv_proj", "o_proj"}, true), "base", folder.path());
  const Json config = read_json(folder.path() / "adapter_config.json");
  EXPECT_EQ(config["r"], kRank);
  EXPECT_EQ(config["rank_pattern"]["self_attn.qkv_proj"], 3 * kRank);
  EXPECT_EQ(config["alpha_pattern"]["self_attn.qkv_proj"], 18.0);
  const TensorFolder tensors = TensorFolder::of_file(folder.path() / "adapter_model.safetensors");
  EXPECT_EQ(tensors.entry("base_model.model.model.layers.0.self_attn.qkv_proj.lora_A.weight").shape[0], 3 * kRank);
}

TEST(AdapterFolder, ACriticsHeadGoesWithItsAdapters) {
  const TemporaryFolder folder;
  const Transformer critic = adapted("llama_gqa", {"q_proj"}, true, Head::kValue);
  write_adapter(critic, "base", folder.path());
  Transformer read = adapted("llama_gqa", {"q_proj"}, false, Head::kValue);
  read_adapter(read.weights(), folder.path());
  EXPECT_TRUE(read.weights().value_head.equal(critic.weights().value_head));
  EXPECT_EQ(read_json(folder.path() / "adapter_config.json")["task_type"], "SEQ_CLS");
}

TEST(AdapterFolder, AloneReplacesTheModel) {
  const TemporaryFolder folder;
  save_folder(adapted("llama_gqa", {"q_proj"}, true), golden("llama_gqa"), folder.path() / "saved",
              {.dtype = {}, .adapter = SavedAdapter::kAdapter});
  EXPECT_TRUE(fs::exists(folder.path() / "saved/adapter_model.safetensors"));
  EXPECT_FALSE(TensorFolder::is_in(folder.path() / "saved"));
}

class WrongAdapter : public ::testing::Test {
 protected:
  WrongAdapter() { write_adapter(adapted("llama_gqa", {"q_proj", "v_proj"}, true), "base", folder_.path()); }

  std::string error(Transformer model) {
    return message_of<UserError>([&] { read_adapter(model.weights(), folder_.path()); });
  }

  const TemporaryFolder folder_;
};

TEST_F(WrongAdapter, OfOtherTargetsIsRefused) {
  EXPECT_THAT(error(adapted("llama_gqa", {"q_proj"}, false)), HasSubstr("v_proj.lora_A.weight\" is of no target"));
  EXPECT_THAT(error(adapted("llama_gqa", {kAllLinear}, false)), HasSubstr("k_proj.lora_A.weight\""));
}

TEST_F(WrongAdapter, OfAnotherScaleIsRefused) {
  EXPECT_THAT(error(adapted("llama_gqa", {"q_proj", "v_proj"}, false, {}, 8)), HasSubstr("counts 3.0 times, here 4.0 times"));
}

TEST_F(WrongAdapter, OfAnotherMethodIsRefused) {
  write_file_atomically(folder_.path() / "adapter_config.json", R"({"peft_type": "IA3"})");
  EXPECT_THAT(error(adapted("llama_gqa", {"q_proj", "v_proj"}, false)), HasSubstr("not the configuration of a LoRA adapter"));
}

TEST_F(WrongAdapter, WhoseRankIsNoNumberIsRefused) {
  write_file_atomically(folder_.path() / "adapter_config.json", R"({"peft_type": "LORA", "r": "2", "lora_alpha": 6})");
  EXPECT_THAT(error(adapted("llama_gqa", {"q_proj", "v_proj"}, false)), HasSubstr("r and lora_alpha must be numbers"));
}

}  // namespace
}  // namespace sluice::models::adapter_folder_test
