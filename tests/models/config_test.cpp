#include "models/config.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/json.h"
#include "tests/temporary_folder.h"

namespace sluice::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Json llama() {
  return {{"model_type", "llama"},    {"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 100},        {"hidden_size", 32},
          {"intermediate_size", 64},  {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"max_position_embeddings", 128}};
}

Json qwen2() {
  Json config = llama();
  config["model_type"] = "qwen2";
  config["architectures"] = {"Qwen2ForCausalLM"};
  config["num_key_value_heads"] = 2;
  return config;
}

ModelConfig read(const Json& config) {
  const TemporaryFolder folder;
  folder.write("config.json", config.dump());
  return read_config(folder.path());
}

// The error for a llama with one key changed.
std::string error_for(const std::string& key, const Json& value) {
  Json config = llama();
  config[key] = value;
  return message_of<UserError>([&] { read(config); });
}

TEST(Config, AbsentKeysTakeTheDefaultsOfLlama) {
  const ModelConfig config = read(llama());
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_FALSE(config.qkv_bias);
}

TEST(Config, Qwen2HasBiasesOnQueryKeyAndValue) { EXPECT_TRUE(read(qwen2()).qkv_bias); }

TEST(Config, RopeThetaIsFoundInBothLayouts) {
  Json top = llama(), nested = llama();
  top["rope_theta"] = 5e5;
  nested["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  EXPECT_EQ(read(top).rope.theta, 5e5);
  EXPECT_EQ(read(nested).rope.theta, 5e5);
}

TEST(Config, EndOfSequenceMayBeANumberOrAList) {
  Json one = llama(), many = llama();
  one["eos_token_id"] = 7;
  many["eos_token_id"] = {7, 9};
  EXPECT_THAT(read(one).end_of_sequence, ElementsAre(7));
  EXPECT_THAT(read(many).end_of_sequence, ElementsAre(7, 9));
}

TEST(Config, EndOfSequenceComesFromTheGenerationConfigWhereConfigHasNone) {
  const TemporaryFolder folder;
  folder.write("config.json", llama().dump());
  folder.write("generation_config.json", R"({"eos_token_id": [3, 4]})");
  EXPECT_THAT(read_config(folder.path()).end_of_sequence, ElementsAre(3, 4));
}

TEST(Config, HeadSizeMayDifferFromHiddenSizeByHeads) {
  Json config = llama();
  config["head_dim"] = 16;
  EXPECT_EQ(read(config).head_dim, 16);
}

TEST(Config, WindowThatNeverClosesHasNoEffect) {
  Json mistral = qwen2();
  mistral["model_type"] = "mistral";
  mistral["architectures"] = {"MistralForCausalLM"};
  mistral["sliding_window"] = 128;
  EXPECT_EQ(read(mistral).model_type, "mistral");
  mistral["sliding_window"] = 127;
  EXPECT_THAT(message_of<UserError>([&] { read(mistral); }), HasSubstr("sliding_window is 127"));
}

TEST(Config, SwitchedOffWindowOfQwen2HasNoEffect) {
  Json config = qwen2();
  config["sliding_window"] = 16;
  config["use_sliding_window"] = false;
  EXPECT_EQ(read(config).model_type, "qwen2");
  config["use_sliding_window"] = true;
  EXPECT_THAT(message_of<UserError>([&] { read(config); }), HasSubstr("use_sliding_window"));
}

TEST(Config, MissingKeyIsNamedWithItsFile) {
  Json config = llama();
  config.erase("hidden_size");
  EXPECT_THAT(message_of<UserError>([&] { read(config); }), AllOf(HasSubstr("config.json"), HasSubstr("hidden_size is missing")));
}

TEST(Config, UnknownArchitectureIsRefused) {
  EXPECT_THAT(error_for("model_type", "mamba"), AllOf(HasSubstr("\"mamba\""), HasSubstr("llama, mistral, qwen2")));
  EXPECT_THAT(error_for("architectures", {"LlamaForTokenClassification"}), HasSubstr("LlamaForTokenClassification"));
}

TEST(Config, KeysThatChangeTheMathsAreRefused) {
  EXPECT_THAT(error_for("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}),
              HasSubstr("rope_scaling asks for \"llama3\""));
  EXPECT_THAT(error_for("rope_parameters", {{"rope_type", "yarn"}}), HasSubstr("rope_parameters asks for \"yarn\""));
  EXPECT_THAT(error_for("attention_bias", true), HasSubstr("attention_bias is true"));
  EXPECT_THAT(error_for("mlp_bias", true), HasSubstr("mlp_bias is true"));
  EXPECT_THAT(error_for("hidden_act", "gelu"), HasSubstr("hidden_act is \"gelu\""));
  EXPECT_THAT(error_for("layer_types", {"full_attention", "sliding_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(error_for("quantization_config", {{"bits", 4}}), HasSubstr("quantization_config"));
}

TEST(Config, WrongTypesAndRangesAreRefused) {
  EXPECT_THAT(error_for("hidden_size", "32"), HasSubstr("hidden_size must be an integer"));
  EXPECT_THAT(error_for("vocab_size", 0), HasSubstr("vocab_size must be positive"));
  EXPECT_THAT(error_for("vocab_size", 1e30), HasSubstr("vocab_size must be an integer"));
  EXPECT_THAT(error_for("vocab_size", uint64_t{1} << 63), HasSubstr("vocab_size is too large"));
  EXPECT_THAT(error_for("num_hidden_layers", 5000), HasSubstr("num_hidden_layers is too large"));
  EXPECT_THAT(error_for("rms_norm_eps", 0.0), HasSubstr("rms_norm_eps must be positive"));
  EXPECT_THAT(error_for("tie_word_embeddings", 1), HasSubstr("tie_word_embeddings must be true or false"));
  EXPECT_THAT(error_for("eos_token_id", "</s>"), HasSubstr("eos_token_id"));
}

TEST(Config, InconsistentSizesAreRefused) {
  EXPECT_THAT(error_for("num_key_value_heads", 3), HasSubstr("multiple of num_key_value_heads (3)"));
  EXPECT_THAT(error_for("head_dim", 7), HasSubstr("head_dim is 7"));
  EXPECT_THAT(error_for("hidden_size", 30), HasSubstr("multiple of num_attention_heads"));
  EXPECT_THAT(error_for("eos_token_id", 100), HasSubstr("not below vocab_size"));
}

}  // namespace
}  // namespace sluice::models
