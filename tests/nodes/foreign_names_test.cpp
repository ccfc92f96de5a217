#include "engine/contract/params/foreign_names.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>

#include "base/text/strings.h"
#include "engine/contract/key_help.h"
#include "nodes/builtin.h"
#include "tests/source_folder.h"

namespace sluice::nodes::foreign_names_test {
namespace {

using engine::ForeignKey;
using engine::ForeignType;
using ::testing::HasSubstr;
using ::testing::Not;

class ForeignNames : public ::testing::Test {
 protected:
  void SetUp() override { register_builtin(registry_); }

  bool is_type(const std::string& name) const {
    const size_t colon = name.find(':');
    if (colon == std::string::npos) return registry_.find(name) != nullptr;
    return registry_.find_component(name.substr(0, colon), name.substr(colon + 1)) != nullptr;
  }

  engine::Registry registry_;
};

bool is_pipeline(const std::string& name) {
  return std::filesystem::exists(std::filesystem::path(tests::source_folder()) / "pipelines" / name);
}

// A key that is renamed has to be renamed in the table too.
TEST_F(ForeignNames, EveryKeyOfOursIsThere) {
  for (const ForeignKey& row : engine::foreign_keys()) {
    if (!row.of.empty()) {
      EXPECT_TRUE(engine::has_key(row.of, row.key, registry_)) << row.name << " -> " << row.of << " " << row.key;
    }
  }
}

TEST_F(ForeignNames, EveryTypeAndPipelineThatASentenceNamesIsThere) {
  for (const ForeignType& row : engine::foreign_types()) {
    for (const std::string& name : split(row.names, ' ')) {
      if (!name.empty()) {
        EXPECT_TRUE(is_type(name) || is_pipeline(name)) << row.name << " -> " << name;
      }
    }
  }
}

// So that the test above looks at what people read.
TEST_F(ForeignNames, ASentenceNamesWhatItsRowSays) {
  for (const ForeignType& row : engine::foreign_types()) {
    for (const std::string& name : split(row.names, ' '))
      EXPECT_THAT(std::string(row.says), HasSubstr(name.substr(name.find(':') + 1))) << row.name;
  }
}

TEST_F(ForeignNames, EveryPipelineThatAKeyNamesIsThere) {
  const std::regex pipeline("pipelines/(\\w+\\.toml)");
  for (const ForeignKey& row : engine::foreign_keys()) {
    std::smatch found;
    const std::string says(row.says);
    if (std::regex_search(says, found, pipeline)) {
      EXPECT_TRUE(is_pipeline(found[1])) << says;
    }
  }
}

TEST_F(ForeignNames, WhatIsNowhereSaysWhatDoesTheJob) {
  for (const ForeignKey& row : engine::foreign_keys()) {
    if (row.of.empty()) {
      EXPECT_FALSE(row.says.empty()) << row.name;
    }
  }
}

TEST_F(ForeignNames, NoForeignTypeIsOneOfOurs) {
  for (const ForeignType& row : engine::foreign_types()) {
    EXPECT_FALSE(is_type(row.as == "node" ? std::string(row.name) : std::string(row.as) + ":" + std::string(row.name)))
        << row.name;
  }
}

TEST_F(ForeignNames, NoRowIsThereTwice) {
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> keys;
  for (const ForeignKey& row : engine::foreign_keys()) EXPECT_TRUE(keys.emplace(row.name, row.of, row.key).second) << row.name;
  std::set<std::pair<std::string_view, std::string_view>> types;
  for (const ForeignType& row : engine::foreign_types()) EXPECT_TRUE(types.emplace(row.name, row.as).second) << row.name;
}

TEST_F(ForeignNames, NamesAreFoundHoweverTheyAreWritten) {
  for (const char* name : {"num_generations", "num-generations", "--num_generations", "NUM_GENERATIONS"}) {
    EXPECT_EQ(engine::foreign_keys(name).size(), 1u) << name;
  }
}

TEST_F(ForeignNames, NamesThatPeopleBringFromTrlVerlAndAxolotlAreThere) {
  for (const char* name : {"lr_scheduler", "warmup_ratio", "model_name_or_path", "lora_r", "r", "num_generations",
                           "per_device_train_batch_size", "kl_coef", "beta", "gamma", "cliprange", "max_completion_length"}) {
    EXPECT_FALSE(engine::foreign_keys(name).empty()) << name;
  }
}

TEST_F(ForeignNames, WhatOthersSayOfRanksAndTrackersIsAKeyHere) {
  for (const auto& [name, table] : std::map<std::string, std::string>{{"deepspeed", "[cluster]"},
                                                                      {"fsdp_config", "[cluster]"},
                                                                      {"ulysses_sequence_parallel_size", "[cluster]"},
                                                                      {"report_to", "[log]"},
                                                                      {"use_wandb", "[log]"},
                                                                      {"project_name", "[log]"}}) {
    const auto rows = engine::foreign_keys(name);
    ASSERT_EQ(rows.size(), 1u) << name;
    EXPECT_EQ(rows.front().of, table) << name;
  }
}

TEST_F(ForeignNames, GrpoAsAnObjectiveIsNotTakenForGspo) {
  const auto rows = engine::foreign_types();
  const auto row =
      std::ranges::find_if(rows, [](const ForeignType& type) { return type.name == "grpo" && type.as == "objective"; });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->says, "GRPO is the node type \"grpo\" with objective \"ppo_clip\": see pipelines/grpo.toml");
}

engine::KeyHelp help(const engine::Registry& registry, const std::string& key, const std::vector<std::string>& known) {
  return engine::help_for_unknown_key(key, known, "the table", registry);
}

TEST_F(ForeignNames, AKeyOfThisTableIsNamedAtTheCaret) {
  const engine::KeyHelp found = help(registry_, "max_completion_length", {"model", "max_new_tokens"});
  EXPECT_EQ(found.caret, "here this is max_new_tokens");
  EXPECT_EQ(found.meant, "max_new_tokens");
}

TEST_F(ForeignNames, KeysOfDataOfVerlAndAxolotlAreNamed) {
  const std::vector<std::string> known{"path", "prompt_field", "messages_field", "too_long", "completion_field"};
  for (const auto& [key, ours] : std::map<std::string, std::string>{{"filter_overlong_prompts", "too_long"},
                                                                    {"truncation", "too_long"},
                                                                    {"field_messages", "messages_field"},
                                                                    {"field_output", "completion_field"},
                                                                    {"data", "path"}})
    EXPECT_EQ(help(registry_, key, known).meant, ours) << key;
  for (const char* key : {"train_on_inputs", "val_set_size", "use_remove_padding", "ds_type"})
    EXPECT_THAT(help(registry_, key, known).help, Not(HasSubstr("it has path"))) << key;
  EXPECT_EQ(help(registry_, "path", {"checkpoint", "head"}).meant, "checkpoint");
}

TEST_F(ForeignNames, AKeyOfAnotherTableIsNamedWithItsPlace) {
  EXPECT_EQ(help(registry_, "num_generations", {"iterations"}).help,
            "here num_generations is samples_per_prompt in a node of type \"generate\"");
}

TEST_F(ForeignNames, AKeyOfOursInTheWrongTableIsNamedWithItsPlace) {
  EXPECT_EQ(help(registry_, "learning_rate", {"iterations"}).help, "learning_rate stands in [models.NAME.optimizer]");
  EXPECT_EQ(help(registry_, "nll_coefficient", {"iterations"}).help, "nll_coefficient stands in a node of type \"train_dpo\"");
}

TEST_F(ForeignNames, AProgramWithoutTheTypeIsNotToldOfIt) {
  const engine::Registry nothing;
  EXPECT_EQ(help(nothing, "num_generations", {"a"}).help, "it has a");
}

}  // namespace
}  // namespace sluice::nodes::foreign_names_test
