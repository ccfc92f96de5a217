#include "models/train/freeze.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::models::freeze_test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kNames{"model.embed_tokens.weight", "model.layers.0.self_attn.qkv_proj.weight[query]",
                                      "model.layers.0.self_attn.qkv_proj.weight[key]", "model.layers.12.mlp.down_proj.weight",
                                      "model.norm.weight"};

TEST(Freeze, PatternsAreThoseOfAShellOverTheWholeName) {
  EXPECT_TRUE(is_frozen("model.embed_tokens.weight", {"model.norm.*", "model.embed_tokens.*"}));
  EXPECT_TRUE(is_frozen("model.layers.3.mlp.down_proj.weight", {"model.layers.[0-3].*"}));
  EXPECT_FALSE(is_frozen("model.layers.4.mlp.down_proj.weight", {"model.layers.[0-3].*"}));
  EXPECT_FALSE(is_frozen("model.layers.12.mlp.down_proj.weight", {"model.layers.?.*"}));
  EXPECT_FALSE(is_frozen("model.norm.weight", {"norm.weight"}));
}

TEST(Freeze, AllPartsOfATensorAreFrozenTogether) {
  EXPECT_TRUE(is_frozen(kNames[1], {"*.qkv_proj.weight"}));
  EXPECT_TRUE(is_frozen(kNames[2], {"*.qkv_proj.weight"}));
}

TEST(Freeze, APatternThatMatchesNothingIsRefusedWithOneThatDoes) {
  EXPECT_NO_THROW(check_freeze(kNames, {"model.layers.*"}));
  const std::string message = message_of<UserError>([] { check_freeze(kNames, {"model.embed_token.*"}); });
  EXPECT_THAT(message, HasSubstr("\"model.embed_token.*\" matches no weight"));
  EXPECT_THAT(message, HasSubstr("did you mean \"model.embed_tokens.*\"?"));
  EXPECT_THAT(message_of<UserError>([] { check_freeze(kNames, {"transformer.h.*"}); }), HasSubstr("model.embed_tokens.weight"));
}

TEST(Freeze, FreezingEverythingIsRefused) {
  EXPECT_THAT(message_of<UserError>([] {
                check_freeze(kNames, {"model.[en]*", "model.layers.*"});
              }),
              HasSubstr("nothing is left to train"));
}

TEST(Freeze, FrozenWeightsAreNotTrainable) {
  Weights weights;
  weights.embedding = at::randn({3, 2}).set_requires_grad(true);
  weights.final_norm = at::randn({2}).set_requires_grad(true);
  freeze(weights, {"emb*"});
  EXPECT_FALSE(weights.embedding.requires_grad());
  ASSERT_EQ(weights.trainable().size(), 1u);
  EXPECT_EQ(weights.trainable()[0].first, "final_norm");
}

}  // namespace
}  // namespace sluice::models::freeze_test
