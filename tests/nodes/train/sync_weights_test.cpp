#include "nodes/train/sync_weights.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::sync_weights_test {
namespace {

using testing::first_embedding;
using testing::shift_weights;
using testing::tiny_model;
using testing::TinyFolder;

TEST(SyncWeights, EndOfIterationPublishesTheLiveWeightsAsTheNextVersion) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}, .readable_versions = 2});
  engine::NodeResources resources{.node = "sync", .models = {{"actor", model}}};
  SyncWeights sync({.model = "actor"}, resources);

  const float before = model->forward().transformer().weights().embedding.const_data_ptr<float>()[0];
  shift_weights(*model, 1.0f);
  sync.begin_iteration({.index = 0});
  EXPECT_THROW(model->sampled().at(1), InternalError);
  sync.end_iteration({.index = 0});
  EXPECT_EQ(first_embedding(model->sampled().at(0)), before);
  EXPECT_EQ(first_embedding(model->sampled().at(1)), before + 1.0f);
}

TEST(SyncWeights, ReadsNoColumnsAndPublishesItsModel) {
  const engine::NodeNeeds needs = testing::needs_of<SyncWeights>(SyncWeightsParams{.model = "actor"});
  EXPECT_TRUE(needs.reads.empty());
  ASSERT_EQ(needs.models.size(), 1u);
  EXPECT_EQ(needs.models[0].use, engine::ModelUse::kPublishes);
}

}  // namespace
}  // namespace sluice::nodes::sync_weights_test
