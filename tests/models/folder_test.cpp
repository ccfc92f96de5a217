#include "models/folder.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "models/safetensors.h"
#include "tests/temporary_folder.h"

namespace sluice::models {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

fs::path golden(const std::string& name) { return fs::path(SLUICE_SOURCE_DIR) / "tests/golden/models" / name; }

// A copy of a golden model that a test may damage.
struct ModelCopy {
  TemporaryFolder folder;
  std::vector<std::pair<std::string, at::Tensor>> tensors;

  explicit ModelCopy(const std::string& name) : tensors(Transformer::load(golden(name), {}).weights().named()) {
    fs::copy(golden(name) / "config.json", folder.path());
  }

  std::string load_error(const LoadOptions& options = {}) {
    write_safetensors(folder.path() / "model.safetensors", tensors);
    return message_of<UserError>([&] { Transformer::load(folder.path(), options); });
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

TEST(Folder, SavedModelReadsBackEqual) {
  for (const std::string name : {"llama_gqa", "llama_tied", "qwen2"}) {
    const TemporaryFolder folder;
    const Transformer model = Transformer::load(golden(name), {});
    save_folder(model, golden(name), folder.path() / "saved");
    EXPECT_TRUE(equal(Transformer::load(folder.path() / "saved", {}).weights(), model.weights())) << name;
  }
}

TEST(Folder, SavingKeepsTheTokenizerAndUnknownKeysOfTheConfig) {
  const TemporaryFolder folder;
  fs::copy(golden("qwen2"), folder.path() / "source");
  folder.write("source/tokenizer.json", "{\"a\": 1}");
  save_folder(Transformer::load(folder.path() / "source", {}), folder.path() / "source", folder.path() / "saved");
  EXPECT_EQ(read_file(folder.path() / "saved/tokenizer.json"), "{\"a\": 1}");
  const Json config = read_json(folder.path() / "saved/config.json");
  EXPECT_EQ(config["max_window_layers"], 28);
  EXPECT_EQ(config["dtype"], "float32");
  EXPECT_FALSE(fs::exists(folder.path() / "saved.tmp"));
}

TEST(Folder, SavingOverTheSourceReplacesIt) {
  const TemporaryFolder folder;
  fs::copy(golden("llama_tied"), folder.path() / "model");
  const Transformer model = Transformer::load(folder.path() / "model", {});
  model.weights().final_norm.fill_(3.0);
  save_folder(model, folder.path() / "model", folder.path() / "model");
  EXPECT_TRUE(equal(Transformer::load(folder.path() / "model", {}).weights(), model.weights()));
}

TEST(Folder, RandomWeightsRepeatWithTheSeedAndHaveTheConfiguredSpread) {
  const LoadOptions options{.random_init = true, .seed = 5};
  const Transformer first = Transformer::load(golden("qwen2"), options), again = Transformer::load(golden("qwen2"), options);
  const Transformer other = Transformer::load(golden("qwen2"), {.random_init = true, .seed = 6});
  EXPECT_TRUE(equal(first.weights(), again.weights()));
  EXPECT_FALSE(equal(first.weights(), other.weights()));
  EXPECT_NEAR(first.weights().embedding.std().item<double>(), 0.2, 0.02);
  EXPECT_NEAR(first.weights().embedding.mean().item<double>(), 0.0, 0.02);
  EXPECT_TRUE(first.weights().final_norm.eq(1.0).all().item<bool>());
  EXPECT_TRUE(first.weights().layers[0].key_bias.eq(0.0).all().item<bool>());
  EXPECT_FALSE(first.weights().layers[0].gate.equal(first.weights().layers[1].gate));
}

TEST(Folder, TrainableWeightsNeedAGradient) {
  const Transformer model = Transformer::load(golden("qwen2"), {.trainable = true});
  for (const auto& [name, tensor] : model.weights().named()) EXPECT_TRUE(tensor.requires_grad() && tensor.is_leaf()) << name;
}

TEST(Folder, NewValueHeadIsZeroAndIsSavedAsASequenceClassifier) {
  const TemporaryFolder folder;
  const Transformer critic = Transformer::load(golden("llama_gqa"), {.head = Head::kValue});
  EXPECT_FALSE(critic.weights().head.defined());
  EXPECT_TRUE(critic.weights().value_head.eq(0.0).all().item<bool>());
  critic.weights().value_head.fill_(0.5);
  save_folder(critic, golden("llama_gqa"), folder.path() / "critic");
  EXPECT_EQ(read_json(folder.path() / "critic/config.json")["architectures"][0], "LlamaForSequenceClassification");
  const Transformer again = Transformer::load(folder.path() / "critic", {.head = Head::kValue});
  EXPECT_TRUE(equal(again.weights(), critic.weights()));
}

TEST(Folder, MissingTensorIsNamed) {
  ModelCopy model("llama_gqa");
  std::erase_if(model.tensors, [](const auto& tensor) { return tensor.first == "model.layers.1.mlp.up_proj.weight"; });
  EXPECT_THAT(model.load_error(), AllOf(HasSubstr("model.safetensors"),
                                        HasSubstr("\"model.layers.1.mlp.up_proj.weight\" of shape [40, 32] is missing")));
}

TEST(Folder, LeftOverTensorIsNamed) {
  ModelCopy model("llama_gqa");
  model.tensors.emplace_back("model.layers.2.mlp.up_proj.weight", model.tensors[1].second);
  EXPECT_THAT(model.load_error(), HasSubstr("\"model.layers.2.mlp.up_proj.weight\" belongs to no weight"));
}

TEST(Folder, ValueHeadIsLeftOverInALanguageModel) {
  ModelCopy model("llama_tied");
  model.tensors.emplace_back("score.weight", model.tensors[1].second);
  EXPECT_THAT(model.load_error(), HasSubstr("head = \"value\""));
}

TEST(Folder, TiedModelMayHoldACopyOfItsEmbeddingButNotAnotherOne) {
  ModelCopy model("llama_tied");
  model.tensors.emplace_back("lm_head.weight", model.tensors[0].second.clone());
  write_safetensors(model.folder.path() / "model.safetensors", model.tensors);
  EXPECT_NO_THROW(Transformer::load(model.folder.path(), {}));
  model.tensors.back().second.add_(1.0);
  EXPECT_THAT(model.load_error(), HasSubstr("tie_word_embeddings"));
}

}  // namespace
}  // namespace sluice::models
