#include "models/folder/adapter_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "models/adapters/lora.h"
#include "models/folder/folder.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"
#include "models/layers/adapter_products.h"
#include "tests/models/golden_models.h"
#include "tests/temporary_folder.h"

namespace sluice::models::adapter_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRank = 2;

Transformer adapted(const std::string& name, const std::vector<std::string>& targets, bool random, Head head = {},
                    double alpha = 6) {
  Transformer model = load_transformer(golden_model(name), {.head = head});
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
  write_adapter(model, golden_model(GetParam()), folder.path());
  Transformer read = adapted(GetParam(), {kAllLinear}, false);
  read_adapter(read.weights(), folder.path());
  const auto before = model.weights().named(), after = read.weights().named();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].second.equal(after[i].second)) << before[i].first;
}

TEST_P(EveryFamily, IsSavedMerged) {
  const TemporaryFolder folder;
  const Transformer model = adapted(GetParam(), {kAllLinear}, true);
  write_folder(model, golden_model(GetParam()), folder.path() / "saved", {.dtype = {}, .adapter = SavedAdapter::kBoth});
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

// An adapter of one tensor as PEFT makes it: the first `rank` rows of A, whatever of the tensor B changes.
void write_as_peft(const fs::path& folder, const std::string& module, const at::Tensor& a, const at::Tensor& b) {
  const auto rank = a.size(0);
  const Json config = {{"peft_type", "LORA"}, {"r", rank}, {"lora_alpha", 3 * rank}, {"target_modules", {module}}};
  write_file_atomically(folder / "adapter_config.json", config.dump());
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const char* layer : {"0", "1"}) {
    const std::string name = std::string("base_model.model.model.layers.") + layer + "." + module + ".lora_";
    tensors.insert(tensors.end(), {{name + "A.weight", a}, {name + "B.weight", b}});
  }
  write_safetensors(folder / "adapter_model.safetensors", tensors, disk());
}

constexpr const char* kFused = "self_attn.qkv_proj";  // of phi3_su: [32 + 16 + 16, 32]

TEST(AdapterFolder, PartsBeginWithTheOneFactorOfPeft) {
  const TemporaryFolder folder;
  const at::Tensor a = at::randn({kRank, 32}), b = at::randn({64, kRank});
  write_as_peft(folder.path(), kFused, a, b);
  Transformer read = adapted("phi3_su", {"qkv_proj"}, false);
  check_adapter(read.weights(), folder.path());
  read_adapter(read.weights(), folder.path());
  for (const LayerWeights& layer : read.weights().layers) {
    int64_t row = 0;
    for (const LinearWeights* part : {&layer.query, &layer.key, &layer.value}) {
      EXPECT_TRUE(part->adapter.a.equal(a));
      EXPECT_TRUE(part->adapter.b.equal(b.narrow(0, row, part->weight.size(0))));
      EXPECT_EQ(part->adapter.scale, 3);
      row += part->weight.size(0);
    }
  }
}

TEST(AdapterFolder, OneFactorIsReadIntoAPartAloneWhereItChangesNoOther) {
  const TemporaryFolder folder;
  const at::Tensor a = at::randn({kRank, 32}), b = at::zeros({64, kRank});
  b.narrow(0, 32, 16).normal_();
  write_as_peft(folder.path(), kFused, a, b);
  Transformer key = adapted("phi3_su", {"qkv_proj[key]"}, false), query = adapted("phi3_su", {"qkv_proj[query]"}, false);
  read_adapter(key.weights(), folder.path());
  EXPECT_TRUE(key.weights().layers[1].key.adapter.b.equal(b.narrow(0, 32, 16)));
  EXPECT_THAT(message_of<UserError>([&] { check_adapter(query.weights(), folder.path()); }),
              HasSubstr("the adapter of model.layers.0.self_attn.qkv_proj changes parts of it that have none here"));
}

// Of three times our rank, but not ours: what each part needs is not told apart.
TEST(AdapterFolder, SharedFactorsOfTheJoinedRankAreRefusedWithTheRankThatTakesThem) {
  const TemporaryFolder folder;
  write_as_peft(folder.path(), kFused, at::randn({3 * kRank, 32}), at::randn({64, 3 * kRank}));
  Transformer model = adapted("phi3_su", {"qkv_proj"}, false);
  EXPECT_THAT(message_of<UserError>([&] { check_adapter(model.weights(), folder.path()); }),
              AllOf(HasSubstr("qkv_proj share their factors, which are of rank 6"), HasSubstr("rank = 6 and alpha = 18.0")));
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
  write_folder(adapted("llama_gqa", {"q_proj"}, true), golden_model("llama_gqa"), folder.path() / "saved",
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

  void configure(const Json& changes) {
    const fs::path file = folder_.path() / "adapter_config.json";
    Json config = read_json(file);
    config.update(changes);
    write_file_atomically(file, config.dump());
  }

  // What is said of the adapter once its configuration has `changes` too.
  std::string error_with(const Json& changes) {
    configure(changes);
    return error(adapted("llama_gqa", {"q_proj", "v_proj"}, false));
  }

  void expect_read_with(const Json& changes) {
    configure(changes);
    Transformer model = adapted("llama_gqa", {"q_proj", "v_proj"}, false);
    EXPECT_NO_THROW(read_adapter(model.weights(), folder_.path()));
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

TEST_F(WrongAdapter, OfNoRankIsRefused) {
  EXPECT_THAT(error_with({{"r", 0}}), HasSubstr("the rank of model.layers.0.self_attn.q_proj is 0; expected one above 0"));
}

// PEFT takes the first values of such factors off the base, when it makes them and when it loads them.
TEST_F(WrongAdapter, OfAChangedBaseIsRefused) {
  for (const char* init : {"pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga"}) {
    EXPECT_THAT(error_with({{"init_lora_weights", init}}), HasSubstr("init_lora_weights is \"" + std::string(init) + "\""));
  }
}

TEST_F(WrongAdapter, ThatComputesOtherwiseIsRefused) {
  EXPECT_THAT(error_with({{"alora_invocation_tokens", {3, 4}}}), HasSubstr("alora_invocation_tokens is [3,4]"));
}

TEST_F(WrongAdapter, WithAKeyThatNobodyKnowsIsRefusedUnlessItIsOff) {
  EXPECT_THAT(error_with({{"use_later", true}}), HasSubstr("use_later is true"));
}

TEST_F(WrongAdapter, WhosePatternIsAnExpressionIsRefused) {
  EXPECT_THAT(error_with({{"alpha_pattern", {{".*v_proj", 64}}}}), HasSubstr("the pattern \".*v_proj\" is no name of a module"));
}

TEST_F(WrongAdapter, OfAnotherRankIsRefused) {
  Transformer model = load_transformer(golden_model("llama_gqa"), {});
  add_adapters(model.weights(), {.rank = 2 * kRank, .alpha = 12, .targets = {"q_proj", "v_proj"}}, 11);
  EXPECT_THAT(error(std::move(model)), HasSubstr("lora_A.weight\" has shape [2, 32]; with this rank it would have [4, 32]"));
}

// Weights that PEFT trained as a whole (modules_to_save, biases) are in its file too.
TEST_F(WrongAdapter, WithMoreThanFactorsIsRefused) {
  const fs::path file = folder_.path() / "adapter_model.safetensors";
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  {
    const TensorFolder read = TensorFolder::of_file(file);
    for (const std::string& name : read.names()) tensors.emplace_back(name, read.read(name, read.entry(name).shape));
  }
  tensors.emplace_back("base_model.model.lm_head.weight", at::zeros({2, 2}));
  write_safetensors(file, tensors, disk());
  EXPECT_THAT(error(adapted("llama_gqa", {"q_proj", "v_proj"}, false)), HasSubstr("lm_head.weight\" is no factor of a matrix"));
}

class ReadAdapter : public WrongAdapter {};

TEST_F(ReadAdapter, WithKeysOfOtherVersionsThatAreOffIsRead) {
  expect_read_with({{"use_later", false}, {"later_config", nullptr}, {"init_lora_weights", "gaussian"}});
}

// PEFT's mark for a whole name, which is not the end of another one.
TEST_F(ReadAdapter, APatternMayBeAWholeName) {
  expect_read_with({{"alpha_pattern", {{"^v_proj", 64}}}});
  EXPECT_THAT(error_with({{"alpha_pattern", {{"^model.layers.1.self_attn.v_proj", 64}}}}),
              HasSubstr("the change of model.layers.1.self_attn.v_proj counts 32.0 times"));
}

}  // namespace
}  // namespace sluice::models::adapter_folder_test
