#include "models/folder/folder.h"
#include "models/layers/feed_forward/mlp.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/numbers/crc32c.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/models/golden_models.h"
#include "tests/models/tensors.h"
#include "tests/temporary_folder.h"

namespace sluice::models::folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A copy of a golden model that a test may damage.
struct ModelCopy {
  TemporaryFolder folder;
  std::vector<std::pair<std::string, at::Tensor>> tensors;

  explicit ModelCopy(const std::string& name) {
    fs::copy(golden_model(name) / "config.json", folder.path());
    const TensorFolder stored(golden_model(name));
    for (const std::string& tensor : stored.names())
      tensors.emplace_back(tensor, stored.read(tensor, stored.entry(tensor).shape));
  }

  at::Tensor& operator[](const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.first == name; })->second;
  }

  std::string load_error(const LoadOptions& options = {}) {
    write_safetensors(folder.path() / "model.safetensors", tensors);
    return message_of<UserError>([&] { load_transformer(folder.path(), options); });
  }
};

bool equal(const Weights& a, const Weights& b) {
  const auto left = a.named(), right = b.named();
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i].first != right[i].first || !left[i].second.equal(right[i].second)) return false;
  }
  return true;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryModel, HasTheTensorsThatTransformersTrains) {
  const Transformer model = load_transformer(golden_model(GetParam()), {});
  const Json norms = read_json(golden_model(GetParam()) / "expected.json")["gradient_norms"];
  std::set<std::string> names, expected;
  for (const auto& [name, tensor] : model.weights().named()) names.insert(name);
  for (const auto& [name, norm] : norms.items()) expected.insert(name);
  EXPECT_EQ(names, expected);
}

TEST_P(EveryModel, IsSavedAsTheSameTensors) {
  const TemporaryFolder folder;
  write_folder(load_transformer(golden_model(GetParam()), {}), golden_model(GetParam()), folder.path() / "saved", {});
  const TensorFolder before(golden_model(GetParam())), after(folder.path() / "saved");
  for (const std::string& name : after.names()) {
    const std::string bare = name.starts_with("transformer.") ? name.substr(12) : name;
    const std::string source = before.contains(name) ? name : bare;
    ASSERT_TRUE(before.contains(source)) << name;
    EXPECT_TRUE(after.read(name, after.entry(name).shape).equal(before.read(source, after.entry(name).shape))) << name;
  }
  EXPECT_TRUE(
      equal(load_transformer(folder.path() / "saved", {}).weights(), load_transformer(golden_model(GetParam()), {}).weights()));
}

TEST_P(EveryModel, IsTheSameInShards) {
  const TemporaryFolder folder;
  const Transformer model = load_transformer(golden_model(GetParam()), {});
  write_folder(model, golden_model(GetParam()), folder.path() / "saved", {.max_shard_bytes = 20'000});
  EXPECT_FALSE(fs::exists(folder.path() / "saved/model.safetensors"));
  EXPECT_TRUE(fs::exists(folder.path() / "saved/model.safetensors.index.json"));
  EXPECT_TRUE(equal(load_transformer(folder.path() / "saved", {}).weights(), model.weights()));
}

TEST_P(EveryModel, TakesAValueHead) {
  const TemporaryFolder folder;
  const Transformer critic = load_transformer(golden_model(GetParam()), {.head = Head::kValue});
  critic.weights().value_head.fill_(0.5);
  write_folder(critic, golden_model(GetParam()), folder.path() / "critic", {});
  EXPECT_TRUE(equal(load_transformer(folder.path() / "critic", {.head = Head::kValue}).weights(), critic.weights()));
  EXPECT_FALSE(TensorFolder(folder.path() / "critic").contains("lm_head.weight"));
}

INSTANTIATE_TEST_SUITE_P(Folder, EveryModel, ::testing::ValuesIn(golden_models()), [](const auto& info) { return info.param; });

TEST(Folder, ShardsNameTheirSizeAndPlaces) {
  const TemporaryFolder folder;
  const Transformer model = load_transformer(golden_model("qwen2"), {});
  write_folder(model, golden_model("qwen2"), folder.path() / "saved", {.max_shard_bytes = 30'000});
  const Json index = read_json(folder.path() / "saved/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], 4 * parameter_count(model.weights()));
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "saved")) files += entry.path().extension() == ".safetensors";
  char last[64];
  std::snprintf(last, sizeof last, "model-%05zu-of-%05zu.safetensors", files, files);
  EXPECT_TRUE(fs::exists(folder.path() / "saved" / last)) << last;
  EXPECT_EQ(index["weight_map"]["model.norm.weight"], last);
}

TEST(Folder, HalfPrecisionIsReadAndWrittenWithoutLoss) {
  const TemporaryFolder folder;
  const Transformer model = load_transformer(golden_model("qwen2"), {.dtype = at::kBFloat16});
  EXPECT_EQ(model.weights().layers[0].feed_forward[Mlp::kGate].weight.scalar_type(), at::kBFloat16);
  write_folder(model, golden_model("qwen2"), folder.path() / "saved", {});
  EXPECT_EQ(TensorFolder(folder.path() / "saved").entry("model.norm.weight").dtype, "BF16");
  EXPECT_EQ(read_json(folder.path() / "saved/config.json")["dtype"], "bfloat16");
  EXPECT_TRUE(
      equal(load_transformer(folder.path() / "saved", {}).weights(), load_transformer(golden_model("qwen2"), {}).weights()));
}

TEST(Folder, SavingRoundsToTheAskedType) {
  const TemporaryFolder folder;
  const Transformer model = load_transformer(golden_model("llama_gqa"), {});
  write_folder(model, golden_model("llama_gqa"), folder.path() / "saved", {.dtype = at::kHalf});
  const at::Tensor gate = load_transformer(folder.path() / "saved", {}).weights().layers[1].feed_forward[Mlp::kGate].weight;
  EXPECT_TRUE(gate.equal(model.weights().layers[1].feed_forward[Mlp::kGate].weight.to(at::kHalf).to(at::kFloat)));
}

TEST(Folder, EveryTensorIsSavedWithItsChecksum) {
  const TemporaryFolder folder;
  write_folder(load_transformer(golden_model("gpt2"), {}), golden_model("gpt2"), folder.path() / "saved", {});
  const TensorFolder tensors(folder.path() / "saved");
  for (const std::string& name : tensors.names()) {
    uint32_t checksum = 0;
    tensors.for_each_bytes(name, [&](std::string_view bytes) { checksum = crc32c(bytes, checksum); });
    EXPECT_EQ(tensors.entry(name).checksum, checksum) << name;
  }
}

TEST(Folder, IsWholeOnADiskThatFailsAtAnyOperationOrTheFailureIsTold) {
  const TemporaryFolder folder;
  const Transformer model = load_transformer(golden_model("llama_tied"), {});
  const auto save = [&](const std::string& name, FileSystem& files) {
    write_folder(model, golden_model("llama_tied"), folder.path() / name, {.max_shard_bytes = 30'000}, files);
  };
  FaultyFileSystem counting({}, unsynced_disk());
  save("counted", counting);
  for (const Fault::Kind kind : {Fault::Kind::kFails, Fault::Kind::kFailsForGood, Fault::Kind::kDiskIsFull}) {
    for (int64_t at = 0; at < counting.operations(); ++at) {
      const std::string name = std::to_string(static_cast<int>(kind)) + "_" + std::to_string(at);
      FaultyFileSystem files({.kind = kind, .at = at, .error = ENOSPC}, unsynced_disk());
      try {
        save(name, files);
        EXPECT_TRUE(equal(load_transformer(folder.path() / name, {}).weights(), model.weights())) << name;
      } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr(folder.path().string())) << name;
      }
    }
  }
}

TEST(Folder, SavingKeepsTheTokenizerAndUnknownKeysOfTheConfig) {
  const TemporaryFolder folder;
  fs::copy(golden_model("qwen2"), folder.path() / "source");
  folder.write("source/tokenizer.json", "{\"a\": 1}");
  write_folder(load_transformer(folder.path() / "source", {}), folder.path() / "source", folder.path() / "saved", {});
  EXPECT_EQ(read_file(folder.path() / "saved/tokenizer.json"), "{\"a\": 1}");
  const Json config = read_json(folder.path() / "saved/config.json");
  EXPECT_EQ(config["max_window_layers"], 28);
  EXPECT_EQ(config["dtype"], "float32");
}

TEST(Folder, RandomWeightsRepeatWithTheSeedAndHaveTheConfiguredSpread) {
  const LoadOptions options{.random_init = true, .seed = 5};
  const Transformer first = load_transformer(golden_model("qwen2"), options),
                    again = load_transformer(golden_model("qwen2"), options);
  const Transformer other = load_transformer(golden_model("qwen2"), {.random_init = true, .seed = 6});
  EXPECT_TRUE(equal(first.weights(), again.weights()));
  EXPECT_FALSE(equal(first.weights(), other.weights()));
  EXPECT_NEAR(first.weights().embedding.std().item<double>(), 0.2, 0.02);
  EXPECT_NEAR(first.weights().embedding.mean().item<double>(), 0.0, 0.02);
  EXPECT_TRUE(first.weights().final_norm.eq(1.0).all().item<bool>());
  EXPECT_TRUE(first.weights().layers[0].key.bias.eq(0.0).all().item<bool>());
  EXPECT_FALSE(
      first.weights().layers[0].feed_forward[Mlp::kGate].weight.equal(first.weights().layers[1].feed_forward[Mlp::kGate].weight));
}

TEST(Folder, TrainableWeightsNeedAGradient) {
  const Transformer model = load_transformer(golden_model("qwen2"), {.trainable = true});
  for (const auto& [name, tensor] : model.weights().named()) EXPECT_TRUE(tensor.requires_grad() && tensor.is_leaf()) << name;
}

TEST(Folder, OperandsOfAFrozenModelAreLoadedInItsPrecision) {
  const LoadOptions options{.compute = {Precision::kBfloat16}, .narrow_operands = true};
  for (const char* name : {"llama_tied", "llama_gqa"}) {
    const Weights weights = load_transformer(golden_model(name), options).weights();
    EXPECT_EQ(weights.head.is_same(weights.embedding), std::string(name) == "llama_tied");
    for (const auto& [key, tensor] : weights.named())
      EXPECT_EQ(tensor.scalar_type(), tensor.dim() > 1 ? at::kBFloat16 : at::kFloat) << key;
  }
  EXPECT_EQ(load_transformer(golden_model("gpt2"), options).weights().positions.scalar_type(), at::kFloat);
}

TEST(Folder, NewValueHeadIsZeroAndIsSavedAsASequenceClassifier) {
  const TemporaryFolder folder;
  const Transformer critic = load_transformer(golden_model("llama_gqa"), {.head = Head::kValue});
  EXPECT_FALSE(critic.weights().head.defined());
  EXPECT_TRUE(critic.weights().value_head.eq(0.0).all().item<bool>());
  critic.weights().value_head.fill_(0.5);
  write_folder(critic, golden_model("llama_gqa"), folder.path() / "critic", {});
  EXPECT_EQ(read_json(folder.path() / "critic/config.json")["architectures"][0], "LlamaForSequenceClassification");
  const Transformer again = load_transformer(folder.path() / "critic", {.head = Head::kValue});
  EXPECT_TRUE(equal(again.weights(), critic.weights()));
}

TEST(Folder, MissingTensorIsNamed) {
  ModelCopy model("llama_gqa");
  std::erase_if(model.tensors, [](const auto& tensor) { return tensor.first == "model.layers.1.mlp.up_proj.weight"; });
  EXPECT_THAT(model.load_error(), AllOf(HasSubstr("model.safetensors"),
                                        HasSubstr("\"model.layers.1.mlp.up_proj.weight\" of shape [40, 32] is missing")));
}

TEST(Folder, AllWrongTensorsAreToldTogetherUpToTwenty) {
  ModelCopy model("llama_gqa");
  model["model.norm.weight"] = model["model.norm.weight"].narrow(0, 0, 7).clone();
  std::erase_if(model.tensors, [](const auto& tensor) { return tensor.first == "lm_head.weight"; });
  model.tensors.emplace_back("model.norm.bias", model["model.norm.weight"]);
  EXPECT_THAT(model.load_error(), AllOf(HasSubstr("3 tensors"), HasSubstr("has shape [7]; config.json asks for [32]"),
                                        HasSubstr("\"lm_head.weight\" of shape [48, 32] is missing"),
                                        HasSubstr("\"model.norm.bias\" belongs to no weight")));
  for (int i = 0; i < 30; ++i) model.tensors.emplace_back("extra." + std::to_string(i), model["model.norm.weight"]);
  EXPECT_THAT(model.load_error(), AllOf(HasSubstr("33 tensors"), HasSubstr("extra.16"), HasSubstr("and 13 more")));
  EXPECT_THAT(model.load_error(), ::testing::Not(HasSubstr("extra.17")));
}

TEST(Folder, TensorsWithoutThePrefixOfTheFamilyAreRead) {
  ModelCopy model("qwen2");
  for (auto& [name, tensor] : model.tensors) name = name.substr(std::string("model.").size());
  write_safetensors(model.folder.path() / "model.safetensors", model.tensors);
  EXPECT_TRUE(equal(load_transformer(model.folder.path(), {}).weights(), load_transformer(golden_model("qwen2"), {}).weights()));
}

TEST(Folder, BuffersThatCanBeComputedAreSkipped) {
  ModelCopy model("llama_gqa");
  model.tensors.emplace_back("model.layers.0.self_attn.rotary_emb.inv_freq", model["model.norm.weight"]);
  write_safetensors(model.folder.path() / "model.safetensors", model.tensors);
  EXPECT_NO_THROW(load_transformer(model.folder.path(), {}));
}

TEST(Folder, FreshNormsOfGemmaCountFromOne) {
  const Transformer model = load_transformer(golden_model("gemma2"), {.random_init = true});
  EXPECT_TRUE(model.weights().final_norm.eq(0.0).all().item<bool>());
}

TEST(Folder, LeftOverTensorIsNamed) {
  ModelCopy model("llama_gqa");
  model.tensors.emplace_back("model.layers.2.mlp.up_proj.weight", model.tensors[1].second);
  EXPECT_THAT(model.load_error(), HasSubstr("\"model.layers.2.mlp.up_proj.weight\" belongs to no weight"));
}

TEST(Folder, ACriticIsNoLanguageModel) {
  const TemporaryFolder folder;
  write_folder(load_transformer(golden_model("llama_tied"), {.head = Head::kValue}), golden_model("llama_tied"),
               folder.path() / "critic", {});
  EXPECT_THAT(message_of<UserError>([&] { load_transformer(folder.path() / "critic", {}); }), HasSubstr("head = \"value\""));
}

TEST_P(EveryModel, WithBothHeadsIsSavedAndLoadedWhole) {
  const TemporaryFolder folder;
  const Transformer both = load_transformer(golden_model(GetParam()), {.head = Head::kPolicyAndValue});
  both.weights().value_head.fill_(0.5);
  write_folder(both, golden_model(GetParam()), folder.path() / "both", {});
  EXPECT_TRUE(equal(load_transformer(folder.path() / "both", {.head = Head::kPolicyAndValue}).weights(), both.weights()));
  const Transformer policy = load_transformer(folder.path() / "both", {});
  EXPECT_TRUE(equal(policy.weights(), load_transformer(golden_model(GetParam()), {}).weights()));
}

TEST(Folder, TiedModelMayHoldACopyOfItsEmbeddingButNotAnotherOne) {
  ModelCopy model("llama_tied");
  model.tensors.emplace_back("lm_head.weight", model.tensors[0].second.clone());
  write_safetensors(model.folder.path() / "model.safetensors", model.tensors);
  EXPECT_NO_THROW(load_transformer(model.folder.path(), {}));
  model.tensors.back().second.add_(1.0);
  EXPECT_THAT(model.load_error(), HasSubstr("tie_word_embeddings"));
}

TEST(Folder, AHeadThatIsMissingMayBeTheEmbedding) {
  ModelCopy model("llama_gqa");
  std::erase_if(model.tensors, [](const auto& tensor) { return tensor.first == "lm_head.weight"; });
  EXPECT_THAT(model.load_error(), HasSubstr("set tie_word_embeddings to true"));
}

}  // namespace
}  // namespace sluice::models::folder_test
