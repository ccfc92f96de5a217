#include "models/config/config.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "base/json/json.h"
#include "tests/golden.h"
#include "tests/models/golden_models.h"
#include "tests/temporary_folder.h"

namespace sluice::models::config_test {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The least that a config.json of a family says.
Json minimal(const std::string& model_type) {
  if (model_type == "gpt2") return {{"model_type", "gpt2"}, {"vocab_size", 100}, {"n_embd", 32}, {"n_layer", 4}, {"n_head", 4}};
  return {{"model_type", model_type}, {"vocab_size", 100},      {"hidden_size", 32},
          {"intermediate_size", 64},  {"num_hidden_layers", 4}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"head_dim", 8},          {"max_position_embeddings", 128}};
}

Json llama() {
  Json config = minimal("llama");
  config.erase("num_key_value_heads");
  config.erase("head_dim");
  config["architectures"] = {"LlamaForCausalLM"};
  return config;
}

ModelConfig read(const Json& config) {
  const TemporaryFolder folder;
  folder.write("config.json", config.dump());
  return read_config(folder.path());
}

ModelConfig with(Json config, const Json& changes) {
  config.update(changes);
  return read(config);
}

std::string error_of(Json config, const Json& changes) {
  config.update(changes);
  return message_of<UserError>([&] { read(config); });
}

// The error for a llama with one key changed.
std::string error_for(const std::string& key, const Json& value) { return error_of(llama(), {{key, value}}); }

// What transformers takes for absent keys; see tests/oracles/transformer_reference.py.
class FamilyDefaults : public ::testing::TestWithParam<const char*> {};

TEST_P(FamilyDefaults, AreThoseOfTransformers) {
  const Json defaults = read_json(golden_path("models/defaults.json"))[GetParam()];
  const ModelConfig full = read(defaults);
  Json sizes = {{"model_type", GetParam()}};
  const Json least = minimal(GetParam());
  for (const auto& [key, value] : least.items()) {
    const bool optional = key == "num_key_value_heads" || key == "head_dim" || key == "max_position_embeddings";
    if (!optional) sizes[key] = defaults[key];
  }
  const ModelConfig config = read(sizes);
  EXPECT_EQ(config.intermediate_size, full.intermediate_size);
  EXPECT_EQ(config.kv_heads, full.kv_heads);
  EXPECT_EQ(config.head_dim, full.head_dim);
  EXPECT_EQ(config.max_positions, full.max_positions);
  EXPECT_EQ(config.norm_eps, full.norm_eps);
  EXPECT_EQ(config.activation, full.activation);
  EXPECT_EQ(config.tied_embeddings, full.tied_embeddings);
  EXPECT_EQ(config.attention_scale, full.attention_scale);
  EXPECT_EQ(config.attention_softcap, full.attention_softcap);
  EXPECT_EQ(config.logit_softcap, full.logit_softcap);
  EXPECT_EQ(config.windows, full.windows);
  EXPECT_EQ(config.rope.theta, full.rope.theta);
  EXPECT_EQ(config.rope.dims, full.rope.dims);
  ASSERT_EQ(config.more_ropes.size(), full.more_ropes.size());
  for (size_t i = 0; i < full.more_ropes.size(); ++i) EXPECT_EQ(config.more_ropes[i].theta, full.more_ropes[i].theta);
  EXPECT_EQ(config.rope_of_layer, full.rope_of_layer);
  EXPECT_EQ(config.initializer_range, full.initializer_range);
  EXPECT_EQ(config.experts, full.experts);
  EXPECT_EQ(config.qkv_bias, full.qkv_bias);
}

INSTANTIATE_TEST_SUITE_P(Config, FamilyDefaults,
                         ::testing::Values("llama", "mistral", "qwen2", "qwen3", "phi3", "gpt2", "gemma2", "gemma3_text", "olmo2",
                                           "olmo3", "smollm3", "glm4", "qwen2_moe", "qwen3_moe", "mixtral"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Config, ExpertsFollowTheKeysOfTheirFamily) {
  const Json qwen = minimal("qwen3_moe"), mixtral = minimal("mixtral");
  const Json sizes = {{"num_experts", 6}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 16}, {"norm_topk_prob", true}};
  EXPECT_EQ(with(qwen, sizes).experts, (ExpertsConfig{.count = 6, .per_token = 2, .size = 16, .normalised = true}));
  EXPECT_EQ(with(mixtral, {{"num_local_experts", 4}}).experts,
            (ExpertsConfig{.count = 4, .per_token = 2, .size = 64, .normalised = true}));
  EXPECT_EQ(with(minimal("qwen2_moe"), {{"shared_expert_intermediate_size", 24}}).experts.shared_size, 24);
  EXPECT_EQ(with(qwen, {{"num_local_experts", 60}}).experts.count, 60);  // as transformers 5 writes it
  EXPECT_FALSE(read(minimal("llama")).experts.any());
}

TEST(Config, ALossOfTheRouterChangesNothing) {
  const Json changes = {{"router_aux_loss_coef", 0.02}, {"output_router_logits", true}, {"mlp_only_layers", Json::array()}};
  EXPECT_EQ(with(minimal("qwen3_moe"), changes).experts, read(minimal("qwen3_moe")).experts);
}

// As Qwen3MoeDecoderLayer of transformers asks: layer not in mlp_only_layers and (layer + 1) % decoder_sparse_step == 0.
TEST(Config, SomeLayersOfAMixtureHaveAnMlp) {
  const auto dense = [](const Json& changes, const char* family = "qwen3_moe") {
    Json all = {{"num_hidden_layers", 6}};
    all.update(changes);
    return with(minimal(family), all).experts.dense_layers;
  };
  using Layers = std::vector<int64_t>;
  EXPECT_EQ(dense(Json::object()), Layers());
  EXPECT_EQ(dense({{"mlp_only_layers", nullptr}}), Layers());
  EXPECT_EQ(dense({{"mlp_only_layers", {4, 0, 4}}}), (Layers{0, 4}));
  EXPECT_EQ(dense({{"decoder_sparse_step", 2}}, "qwen2_moe"), (Layers{0, 2, 4}));
  EXPECT_EQ(dense({{"decoder_sparse_step", 3}, {"mlp_only_layers", {5}}}), (Layers{0, 1, 3, 4, 5}));
  EXPECT_EQ(dense({{"mlp_only_layers", {-1, 6, 1000}}}), Layers()) << "numbers that no layer has mean nothing";
  const ModelConfig config = with(minimal("qwen3_moe"), {{"num_hidden_layers", 6}, {"mlp_only_layers", {0, 3}}});
  EXPECT_EQ(config.mixtures(), 4);
  EXPECT_TRUE(!config.is_mixture(0) && config.is_mixture(1) && config.is_mixture(2) && !config.is_mixture(3));
  EXPECT_EQ(config.experts.mixtures_before(2), 1);
  EXPECT_EQ(config.experts.mixtures_before(4), 2);
  EXPECT_EQ(read(minimal("llama")).mixtures(), 0);
}

TEST(Config, OfLayersWithAnMlpTheSizeIsThatOfTheFamilyUnlessItIsGiven) {
  const auto size_of = [](Json config, const Json& changes) {
    config.erase("intermediate_size");
    config.update(changes);
    return read(config).intermediate_size;
  };
  const Json step = {{"decoder_sparse_step", 2}};
  EXPECT_EQ(size_of(minimal("qwen2_moe"), step), 5632);
  EXPECT_EQ(size_of(minimal("qwen3_moe"), step), 6144);
  EXPECT_EQ(size_of(minimal("qwen3_moe"), {{"decoder_sparse_step", 2}, {"intermediate_size", 24}}), 24);
}

TEST(Config, AMixtureWithoutAMixtureIsADenseModel) {
  for (const Json& changes : {Json{{"mlp_only_layers", {0, 1}}}, Json{{"decoder_sparse_step", 3}}}) {
    Json config = minimal("qwen2_moe");
    config["num_hidden_layers"] = 2;
    const ModelConfig dense = with(config, changes);
    EXPECT_FALSE(dense.experts.any());
    EXPECT_EQ(dense.idle_parameters(), 0);
  }
}

TEST(Config, MixturesThatAreNotSupportedAreRefusedByTheirKey) {
  const auto error = [](const char* key, const Json& value, const char* family = "qwen3_moe") {
    return error_of(minimal(family), {{key, value}});
  };
  EXPECT_THAT(error("mlp_only_layers", {0}, "mixtral"), HasSubstr("mlp_only_layers is [0], which changes the model"));
  EXPECT_THAT(error("decoder_sparse_step", 2, "mixtral"), HasSubstr("decoder_sparse_step is 2, which changes the model"));
  EXPECT_THAT(error("decoder_sparse_step", 0), HasSubstr("decoder_sparse_step must be positive"));
  EXPECT_THAT(error("decoder_sparse_step", -1), HasSubstr("decoder_sparse_step must be positive"));
  for (const Json& value : {Json("0"), Json(0), Json::array({0.5}), Json::array({true})})
    EXPECT_THAT(error("mlp_only_layers", value), HasSubstr("mlp_only_layers must be a list of the numbers of layers")) << value;
  EXPECT_THAT(error("router_jitter_noise", 0.1, "mixtral"), HasSubstr("router_jitter_noise is 0.1"));
  EXPECT_THAT(error("use_sliding_window", true), HasSubstr("use_sliding_window is true"));
  EXPECT_THAT(error("num_experts_per_tok", 200), HasSubstr("num_experts_per_tok (200) is more than there are experts (128)"));
  EXPECT_THAT(error("num_experts", 5000), HasSubstr("num_experts is too large: 5000"));
  EXPECT_THAT(error("num_experts", 0), HasSubstr("num_experts must be positive"));
  EXPECT_THAT(error_of(minimal("qwen3_moe"), {{"num_experts", 6}, {"num_local_experts", 8}}),
              HasSubstr("num_experts differs from num_local_experts"));
  EXPECT_THAT(
      error_of(minimal("qwen3_moe"), {{"num_experts", 4096}, {"moe_intermediate_size", 1 << 24}, {"hidden_size", 1 << 24}}),
      HasSubstr("too large for any machine"));
}

TEST(Config, ResolvedAttentionFactorsAreThoseOfTransformers) {
  int checked = 0;
  for (const std::string& name : golden_models()) {
    const Json rotary = read_json(golden_model(name) / "expected.json")["rotary"];
    if (rotary.empty()) continue;
    const RopeConfig rope = read_config(golden_model(name)).rope;
    EXPECT_THAT(rope.attention_factor, DoubleNear(rotary["attention_factor"].get<double>(), 1e-8)) << name;
    checked += rope.attention_factor != 1.0;
  }
  EXPECT_GE(checked, 4);
}

TEST(Config, FamiliesDifferInTheirSwitches) {
  const ModelConfig qwen3 = read(minimal("qwen3")), gemma = read(minimal("gemma2")), olmo = read(minimal("olmo2"));
  const ModelConfig gpt2 = read(minimal("gpt2"));
  EXPECT_EQ(qwen3.qk_norm, QkNorm::kHead);
  EXPECT_EQ(gemma.norm, NormKind::kRmsFromOne);
  EXPECT_EQ(gemma.norm_place, NormPlace::kBoth);
  EXPECT_THAT(gemma.embedding_scale, DoubleNear(std::sqrt(32.0), 1e-12));
  EXPECT_EQ(olmo.norm_place, NormPlace::kAfter);
  EXPECT_EQ(olmo.qk_norm, QkNorm::kProjection);
  EXPECT_TRUE(gpt2.learned_positions && gpt2.qkv_bias && gpt2.attention_output_bias && gpt2.mlp_bias && !gpt2.gated_mlp);
  EXPECT_EQ(gpt2.intermediate_size, 128);
}

TEST(Config, BiasesFollowTheirKeysWhereTheFamilyHasThem) {
  const ModelConfig all = with(llama(), {{"attention_bias", true}, {"mlp_bias", true}}), none = read(llama());
  EXPECT_TRUE(all.qkv_bias && all.attention_output_bias && all.mlp_bias);
  EXPECT_FALSE(none.qkv_bias || none.attention_output_bias || none.mlp_bias);
  const ModelConfig qwen2 = read(minimal("qwen2"));
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.attention_output_bias);
  EXPECT_THAT(error_of(minimal("mistral"), {{"attention_bias", true}}), HasSubstr("attention_bias"));
}

TEST(Config, NullKeyValueHeadsAreAsManyAsQueryHeads) {
  EXPECT_EQ(with(minimal("mistral"), {{"num_key_value_heads", nullptr}}).kv_heads, 4);
}

TEST(Config, RopeIsTheSameInBothLayouts) {
  const Json scaling = {
      {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 32}};
  Json before = scaling, now = scaling;
  before["type"] = now["rope_type"] = "llama3";
  now["rope_theta"] = 5e5;
  for (const ModelConfig& config :
       {with(llama(), {{"rope_theta", 5e5}, {"rope_scaling", before}}), with(llama(), {{"rope_parameters", now}})}) {
    EXPECT_EQ(config.rope.theta, 5e5);
    EXPECT_EQ(config.rope.scaling, RopeScaling::kLlama3);
    EXPECT_EQ(config.rope.factor, 8.0);
    EXPECT_EQ(config.rope.original_positions, 32);
  }
}

TEST(Config, StretchedPositionsHoldLongerSamples) {
  const auto longest = [](const Json& scaling) { return with(llama(), {{"rope_scaling", scaling}}).max_positions; };
  EXPECT_EQ(longest({{"type", "linear"}, {"factor", 4.0}}), 512);
  EXPECT_EQ(longest({{"type", "dynamic"}, {"factor", 2.0}}), 256);
  EXPECT_EQ(longest({{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}}), 512);
  EXPECT_EQ(longest({{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32}}), 128);
}

TEST(Config, OriginalLengthAtTheTopCountsBeforeTheOneInside) {
  Json scaling = {{"type", "su"}, {"short_factor", {1, 1, 1, 1}}, {"long_factor", {2, 2, 2, 2}}};
  scaling["original_max_position_embeddings"] = 16;
  const Json inside = {{"rope_scaling", scaling}}, top = {{"rope_scaling", scaling}, {"original_max_position_embeddings", 32}};
  EXPECT_EQ(with(minimal("llama"), inside).rope.original_positions, 16);
  EXPECT_EQ(with(minimal("llama"), top).rope.original_positions, 32);
  EXPECT_EQ(with(minimal("phi3"), inside).rope.original_positions, 4096);  // its own default stands at the top
}

TEST(Config, PartialRotaryPositionsNeedAnEvenShareAndAFamilyThatHasThem) {
  EXPECT_EQ(with(minimal("phi3"), {{"partial_rotary_factor", 0.75}}).rope.dims, 6);
  EXPECT_EQ(with(minimal("phi3"), {{"partial_rotary_factor", 1.0}}).rope.dims, 0);
  EXPECT_THAT(error_of(minimal("phi3"), {{"partial_rotary_factor", 0.4}}), HasSubstr("3 of 8 dimensions"));
  EXPECT_THAT(error_of(llama(), {{"partial_rotary_factor", 0.5}}), HasSubstr("partial_rotary_factor is 0.5"));
}

TEST(Config, WrongRopeIsRefused) {
  EXPECT_THAT(error_for("rope_scaling", {{"rope_type", "mrope"}}), AllOf(HasSubstr("\"mrope\""), HasSubstr("llama3")));
  EXPECT_THAT(error_for("rope_scaling", {{"rope_type", "linear"}}), HasSubstr("rope_scaling.factor is missing"));
  EXPECT_THAT(error_for("rope_scaling", {{"type", "linear"}, {"factr", 2.0}, {"factor", 2.0}}),
              HasSubstr("did you mean factor?"));
  EXPECT_THAT(error_for("rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"mrope_section", {1, 2}}}),
              HasSubstr("mrope_section"));
  EXPECT_THAT(error_for("rope_scaling", {{"type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1}}}),
              HasSubstr("4 numbers"));
  EXPECT_THAT(error_of(llama(), {{"rope_scaling", Json::object()}, {"rope_parameters", Json::object()}}),
              HasSubstr("both given"));
  EXPECT_THAT(error_of(minimal("phi3"), {{"rope_scaling", {{"type", "yarn"}, {"factor", 2.0}}}}), HasSubstr("\"yarn\""));
}

TEST(Config, WindowOfMistralIsInEveryLayerAndNullIsNone) {
  EXPECT_THAT(with(minimal("mistral"), {{"sliding_window", 16}}).windows, ElementsAre(16, 16, 16, 16));
  EXPECT_THAT(with(minimal("mistral"), {{"sliding_window", nullptr}}).windows, IsEmpty());
  EXPECT_THAT(with(minimal("mistral"), {{"max_position_embeddings", 8192}}).windows, ElementsAre(4096, 4096, 4096, 4096));
}

TEST(Config, WindowThatNeverClosesIsNone) {
  EXPECT_THAT(with(minimal("mistral"), {{"sliding_window", 127}}).windows, Not(IsEmpty()));
  EXPECT_THAT(with(minimal("mistral"), {{"sliding_window", 128}}).windows, IsEmpty());
}

TEST(Config, WindowOfQwenIsSwitchedOnAndBeginsAtALayer) {
  const Json on = {{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 2}};
  EXPECT_THAT(with(minimal("qwen2"), on).windows, ElementsAre(0, 0, 16, 16));
  EXPECT_THAT(with(minimal("qwen2"), {{"sliding_window", 16}, {"max_window_layers", 2}}).windows, IsEmpty());
  Json types = on;
  types["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "sliding_attention"};
  EXPECT_THAT(with(minimal("qwen3"), types).windows, ElementsAre(16, 0, 0, 16));
  types["use_sliding_window"] = false;
  EXPECT_THAT(error_of(minimal("qwen3"), types), HasSubstr("sliding_window is not set"));
}

TEST(Config, WindowOfGemmaIsInEverySecondLayer) {
  EXPECT_THAT(with(minimal("gemma2"), {{"sliding_window", 16}}).windows, ElementsAre(16, 0, 16, 0));
}

TEST(Config, WindowsLeaveOutEverySoManyThLayer) {
  const Json gemma = minimal("gemma3_text");
  EXPECT_THAT(with(minimal("olmo3"), {{"sliding_window", 16}}).windows, ElementsAre(16, 16, 16, 0));
  EXPECT_THAT(with(gemma, {{"sliding_window", 16}}).windows, ElementsAre(16, 16, 16, 16));  // every sixth
  EXPECT_THAT(with(gemma, {{"sliding_window", 16}, {"sliding_window_pattern", 3}}).windows, ElementsAre(16, 16, 0, 16));
}

// Layers with a window keep their own rotary positions where the window is too long to close.
TEST(Config, LayersWithAWindowHaveRotaryPositionsOfTheirOwnBase) {
  const Json linear = {{"type", "linear"}, {"factor", 8.0}};
  for (const int64_t window : {16, 4096}) {
    const ModelConfig gemma = with(minimal("gemma3_text"), {{"sliding_window", window},
                                                            {"sliding_window_pattern", 2},
                                                            {"rope_theta", 5e5},
                                                            {"rope_local_base_freq", 2e4},
                                                            {"rope_scaling", linear}});
    EXPECT_THAT(gemma.rope_of_layer, ElementsAre(1, 0, 1, 0));
    EXPECT_EQ(gemma.rope_at(0).theta, 5e5);
    EXPECT_EQ(gemma.rope_at(0).factor, 8.0);
    EXPECT_EQ(gemma.rope_at(1).theta, 2e4);
    EXPECT_EQ(gemma.rope_at(1).scaling, RopeScaling::kNone);
    EXPECT_EQ(gemma.max_positions, 128);  // max_position_embeddings is the length after stretching
    EXPECT_EQ(gemma.windows.empty(), window == 4096);
  }
  const ModelConfig olmo = with(minimal("olmo3"), {{"rope_theta", 7e5}});
  EXPECT_EQ(olmo.rope_at(1).theta, 7e5);
}

TEST(Config, RopeOfBothKindsOfLayersMayStandInTwoObjects) {
  Json ropes = {{"full_attention", {{"rope_type", "linear"}, {"rope_theta", 5e5}, {"factor", 2.0}}},
                {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 300.0}}}};
  const ModelConfig config = with(minimal("gemma3_text"), {{"rope_parameters", ropes}});
  EXPECT_EQ(config.rope_at(0).scaling, RopeScaling::kLinear);
  EXPECT_EQ(config.rope_at(1).theta, 300.0);
  ropes["sliding_attention"]["mrope_section"] = {1, 2};
  EXPECT_THAT(error_of(minimal("gemma3_text"), {{"rope_parameters", ropes}}),
              HasSubstr("rope_parameters.sliding_attention.mrope_section"));
  EXPECT_THAT(error_of(minimal("olmo3"), {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 300.0}}}}),
              HasSubstr("expected \"full_attention\" and \"sliding_attention\""));
}

TEST(Config, SomeLayersHaveNoRotaryPositions) {
  const auto ropes = [](const Json& changes) { return with(minimal("smollm3"), changes).rope_of_layer; };
  EXPECT_THAT(ropes(Json::object()), ElementsAre(0, 0, 0, kNoRope));
  EXPECT_THAT(ropes({{"no_rope_layer_interval", 2}}), ElementsAre(0, kNoRope, 0, kNoRope));
  EXPECT_THAT(ropes({{"no_rope_layers", {0, 1, 1, 0}}}), ElementsAre(kNoRope, 0, 0, kNoRope));
  EXPECT_THAT(ropes({{"no_rope_layers", {1, 1, 1, 1}}}), IsEmpty());
  EXPECT_THAT(error_of(minimal("smollm3"), {{"no_rope_layers", {1, 0}}}), HasSubstr("no_rope_layers must be a list of 4"));
  EXPECT_THAT(error_of(minimal("smollm3"), {{"no_rope_layers", {1, 0, 2, 1}}}), HasSubstr("no_rope_layers has 2"));
  EXPECT_THAT(error_of(llama(), {{"no_rope_layers", {1, 1, 1, 0}}}), HasSubstr("no_rope_layers is not known"));
}

TEST(Config, LayersWithoutRotaryPositionsMayHaveAWindow) {
  const Json on = {{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 28}};
  EXPECT_THAT(with(minimal("smollm3"), on).windows, ElementsAre(0, 0, 0, 16));
  EXPECT_THAT(with(minimal("smollm3"), {{"sliding_window", 16}}).windows, IsEmpty());
}

TEST(Config, NeighboursArePairsInHalfOfAHead) {
  const ModelConfig config = read(minimal("glm4"));
  EXPECT_TRUE(config.rotary_neighbours && config.qkv_bias && !config.attention_output_bias);
  EXPECT_EQ(config.rotary_dims(), 4);
  EXPECT_EQ(with(minimal("glm4"), {{"partial_rotary_factor", nullptr}}).rotary_dims(), 8);
  EXPECT_FALSE(with(minimal("glm4"), {{"attention_bias", false}}).qkv_bias);
}

TEST(Config, LayerTypesThatTheFamilyDoesNotReadMustAgree) {
  const Json full = {"full_attention", "full_attention", "full_attention", "full_attention"};
  EXPECT_THAT(with(llama(), {{"layer_types", full}}).windows, IsEmpty());
  EXPECT_THAT(error_of(minimal("mistral"), {{"layer_types", full}, {"sliding_window", 16}}), HasSubstr("layer_types"));
  EXPECT_THAT(error_for("layer_types", {"full_attention"}), HasSubstr("4 entries, not 1"));
  EXPECT_THAT(error_for("layer_types", {"mamba", "mamba", "mamba", "mamba"}), HasSubstr("\"mamba\""));
}

TEST(Config, NullSoftcapIsNone) {
  const ModelConfig config = with(minimal("gemma2"), {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
  EXPECT_EQ(config.attention_softcap, 0);
  EXPECT_EQ(config.logit_softcap, 0);
}

TEST(Config, EndOfSequenceMayBeANumberOrAList) {
  EXPECT_THAT(with(llama(), {{"eos_token_id", 7}}).end_of_sequence, ElementsAre(7));
  EXPECT_THAT(with(llama(), {{"eos_token_id", {7, 9}}}).end_of_sequence, ElementsAre(7, 9));
}

TEST(Config, EndOfSequenceOfTheGenerationConfigHasTheWord) {
  const TemporaryFolder folder;
  Json config = llama();
  config["eos_token_id"] = 7;
  folder.write("config.json", config.dump());
  folder.write("generation_config.json", R"({"eos_token_id": [3, 4], "temperature": 0.6})");
  EXPECT_THAT(read_config(folder.path()).end_of_sequence, ElementsAre(3, 4));
  folder.write("generation_config.json", R"({"temperature": 0.6})");
  EXPECT_THAT(read_config(folder.path()).end_of_sequence, ElementsAre(7));
}

TEST(Config, AnEndOfSequenceBeyondTheVocabularyIsNamedWithItsFile) {
  const TemporaryFolder folder;
  Json config = llama();
  config["eos_token_id"] = 100;
  folder.write("config.json", config.dump());
  const auto error = [&] { return message_of<UserError>([&] { read_config(folder.path()); }); };
  EXPECT_THAT(error(), HasSubstr("/config.json: eos_token_id 100 is not below vocab_size (100)"));
  folder.write("generation_config.json", R"({"eos_token_id": [3, 101]})");
  EXPECT_THAT(error(), HasSubstr("/generation_config.json: eos_token_id 101 is not below vocab_size (100)"));
  folder.write("generation_config.json", R"({"eos_token_id": 3})");
  EXPECT_THAT(read_config(folder.path()).end_of_sequence, ElementsAre(3));
}

TEST(Config, HeadSizeMayDifferFromHiddenSizeByHeads) { EXPECT_EQ(with(llama(), {{"head_dim", 16}}).head_dim, 16); }

TEST(Config, MissingKeyIsNamedWithItsFile) {
  Json config = llama();
  config.erase("hidden_size");
  EXPECT_THAT(message_of<UserError>([&] { read(config); }), AllOf(HasSubstr("config.json"), HasSubstr("hidden_size is missing")));
}

TEST(Config, UnknownArchitectureIsRefused) {
  EXPECT_THAT(error_for("model_type", "mamba"),
              AllOf(HasSubstr("\"mamba\""), HasSubstr("llama, mistral, qwen2, qwen3, phi3, gpt2, gemma2, gemma3_text")));
  EXPECT_THAT(error_for("model_type", "llama4_text"), HasSubstr("\"llama4_text\" is not supported: its attention is in chunks"));
  EXPECT_THAT(error_for("architectures", {"LlamaForTokenClassification"}), HasSubstr("LlamaForTokenClassification"));
  EXPECT_THAT(error_for("architectures", {"Qwen2ForCausalLM"}), HasSubstr("not supported with model_type \"llama\""));
}

TEST(Config, UnknownKeysAreRefusedAllAtOnceUnlessTheySayNothing) {
  Json config = llama();
  for (const char* key : {"logits_scaling", "embedding_multiplier"}) config[key] = 0.5;
  config["use_mrope"] = false;
  config["quantizer"] = nullptr;
  config["pruned_heads"] = Json::object();
  config["_note"] = "kept";
  const std::string message = message_of<UserError>([&] { read(config); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("config.json: logits_scaling is not known"), HasSubstr("embedding_multiplier is not known")));
  for (const char* quiet : {"use_mrope", "quantizer", "pruned_heads", "_note"}) EXPECT_THAT(message, Not(HasSubstr(quiet)));
}

TEST(Config, MisspeltKeyIsToldTheRightOne) { EXPECT_THAT(error_for("rope_tetha", 5e5), HasSubstr("did you mean rope_theta?")); }

TEST(Config, KeysThatChangeTheMathsAreRefused) {
  EXPECT_THAT(error_for("hidden_act", "relu2"), AllOf(HasSubstr("hidden_act is \"relu2\""), HasSubstr("supported: silu")));
  EXPECT_THAT(error_for("quantization_config", {{"bits", 8}}), HasSubstr("quantization_config.bits is 8"));
  EXPECT_THAT(error_for("attention_dropout", 0.1), HasSubstr("attention_dropout is 0.1"));
  EXPECT_THAT(error_for("is_causal", false), HasSubstr("is_causal is false"));
  EXPECT_THAT(error_of(minimal("gpt2"), {{"reorder_and_upcast_attn", true}}), HasSubstr("reorder_and_upcast_attn is true"));
  EXPECT_THAT(error_of(minimal("gpt2"), {{"scale_attn_by_inverse_layer_idx", true}}),
              HasSubstr("scale_attn_by_inverse_layer_idx"));
  EXPECT_THAT(error_of(minimal("gemma2"), {{"use_bidirectional_attention", true}}), HasSubstr("use_bidirectional_attention"));
  EXPECT_THAT(error_of(minimal("gemma3_text"), {{"attn_logit_softcapping", 50.0}}), HasSubstr("attn_logit_softcapping is 50"));
}

TEST(Config, CodeOfItsOwnIsRefusedUnlessTransformersHasTakenItIn) {
  const Json taken_in = {{"auto_map", {{"AutoModelForCausalLM", "modeling_phi3.Phi3ForCausalLM"}}}};
  EXPECT_EQ(with(minimal("phi3"), taken_in).model_type, "phi3");
  EXPECT_THAT(error_of(minimal("llama"), taken_in), HasSubstr("auto_map"));
}

TEST(Config, WrongTypesAndRangesAreRefused) {
  EXPECT_THAT(error_for("hidden_size", "32"), HasSubstr("hidden_size must be an integer"));
  EXPECT_THAT(error_for("vocab_size", 0), HasSubstr("vocab_size must be positive"));
  EXPECT_THAT(error_for("vocab_size", 1e30), HasSubstr("vocab_size must be an integer"));
  EXPECT_THAT(error_for("vocab_size", uint64_t{1} << 63), HasSubstr("vocab_size is too large"));
  EXPECT_THAT(error_for("num_hidden_layers", 5000), HasSubstr("num_hidden_layers is too large"));
  EXPECT_THAT(error_for("rms_norm_eps", 0.0), HasSubstr("rms_norm_eps must be positive"));
  EXPECT_THAT(error_for("rope_theta", 1e31), HasSubstr("rope_theta is too large"));
  EXPECT_THAT(error_for("tie_word_embeddings", 1), HasSubstr("tie_word_embeddings must be true or false"));
  EXPECT_THAT(error_for("eos_token_id", "</s>"), HasSubstr("eos_token_id"));
}

TEST(Config, SizesThatTogetherAreTooLargeAreRefused) {
  EXPECT_THAT(error_of(llama(), {{"head_dim", 1 << 23}, {"num_attention_heads", 1 << 10}}),
              HasSubstr("too large for any machine"));
  EXPECT_THAT(error_of(llama(), {{"vocab_size", 1 << 24}, {"hidden_size", 1 << 24}, {"num_hidden_layers", 4096}}),
              HasSubstr("too large for any machine"));
  EXPECT_THAT(error_for("_note", std::string(9'000'000, 'x')), HasSubstr("it has more than 1.0 MB"));
}

TEST(Config, InconsistentSizesAreRefused) {
  EXPECT_THAT(error_for("num_key_value_heads", 3), HasSubstr("multiple of num_key_value_heads (3)"));
  EXPECT_THAT(error_for("head_dim", 7), HasSubstr("head_dim is 7"));
  EXPECT_THAT(error_for("hidden_size", 30), HasSubstr("multiple of num_attention_heads"));
  EXPECT_THAT(error_for("eos_token_id", 100), HasSubstr("not below vocab_size"));
}

}  // namespace
}  // namespace sluice::models::config_test
