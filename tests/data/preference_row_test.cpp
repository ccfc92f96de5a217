#include "data/preference_row.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::data::preference_row_test {
namespace {

using testing::HasSubstr;

constexpr const char* kSky = R"({"role": "user", "content": "What color is the sky?"})";
constexpr const char* kBlue = R"({"role": "assistant", "content": "It is blue."})";
constexpr const char* kGreen = R"({"role": "assistant", "content": "It is green."})";

Json list(const std::vector<std::string>& messages) {
  Json list = Json::array();
  for (const std::string& message : messages) list.push_back(Json::parse(message));
  return list;
}

class PreferencePairTest : public testing::Test {
 protected:
  PreferencePair pair(const Json& row, const PreferenceFields& names = {}) {
    const JsonlReader reader({folder_.write("pairs.jsonl", row.dump() + "\n")}, preference_fields(names));
    return preference_pair(reader.values(0), names);
  }

  std::string error(const Json& row) {
    return message_of<UserError>([&] { pair(row); });
  }

  TemporaryFolder folder_;
};

TEST(SplitCommonPrompt, OfConversationsItIsTheMessagesThatAreAlike) {
  const PreferencePair pair = split_common_prompt(list({kSky, kBlue}), list({kSky, kGreen}));
  EXPECT_EQ(pair.prompt, list({kSky}));
  EXPECT_EQ(pair.chosen, list({kBlue}));
  EXPECT_EQ(pair.rejected, list({kGreen}));
}

TEST(SplitCommonPrompt, MembersMayBeInAnotherOrder) {
  const Json other = list({R"({"content": "What color is the sky?", "role": "user"})", kGreen});
  EXPECT_EQ(split_common_prompt(list({kSky, kBlue}), other).prompt, list({kSky}));
}

TEST(SplitCommonPrompt, EqualConversationsKeepTheirLastMessage) {
  const PreferencePair pair = split_common_prompt(list({kSky, kBlue}), list({kSky, kBlue}));
  EXPECT_EQ(pair.prompt, list({kSky}));
  EXPECT_EQ(pair.chosen, list({kBlue}));
}

TEST(SplitCommonPrompt, AShorterConversationKeepsItsLastMessage) {
  const PreferencePair pair = split_common_prompt(list({kSky, kBlue, kSky, kGreen}), list({kSky, kBlue}));
  EXPECT_EQ(pair.prompt, list({kSky}));
  EXPECT_EQ(pair.chosen, list({kBlue, kSky, kGreen}));
}

TEST(SplitCommonPrompt, NothingInCommonIsNoPrompt) {
  EXPECT_TRUE(split_common_prompt(list({kSky}), list({kBlue})).prompt.is_null());
}

TEST(SplitCommonPrompt, OfStringsItEndsBeforeTheSpace) {
  const PreferencePair pair = split_common_prompt("Q: sky? A: It is blue.", "Q: sky? A: It is green.");
  EXPECT_EQ(pair.prompt, "Q: sky? A: It is");
  EXPECT_EQ(pair.chosen, " blue.");
  EXPECT_EQ(pair.rejected, " green.");
}

TEST(SplitCommonPrompt, ACharacterIsNotCut) {
  const PreferencePair pair = split_common_prompt("x\u00e4", "x\u00f6");  // c3 a4, c3 b6
  EXPECT_EQ(pair.prompt, "x");
  EXPECT_EQ(pair.chosen, "\u00e4");
}

TEST_F(PreferencePairTest, AnExplicitPromptIsTakenAsItIs) {
  const PreferencePair found = pair({{"prompt", "2 + 2 = "}, {"chosen", "4"}, {"rejected", "5"}});
  EXPECT_EQ(found.prompt, "2 + 2 = ");
  EXPECT_EQ(found.chosen, "4");
}

TEST_F(PreferencePairTest, AStringPromptBesideConversationsIsPassedOver) {
  const Json row{{"prompt", "What color is the sky?"}, {"chosen", list({kSky, kBlue})}, {"rejected", list({kSky, kGreen})}};
  EXPECT_EQ(pair(row).prompt, list({kSky}));
}

TEST_F(PreferencePairTest, AMessagesPromptBesideConversationsIsTaken) {
  const Json row{{"prompt", list({kSky})}, {"chosen", list({kBlue})}, {"rejected", list({kGreen})}};
  EXPECT_EQ(pair(row).prompt, list({kSky}));
}

TEST_F(PreferencePairTest, FieldsHaveOtherNamesAndMayLieDeeper) {
  const Json row{{"q", "2 + 2 = "}, {"answers", {{"good", "4"}, {"bad", 5}}}};
  const PreferencePair found = pair(row, {.prompt = "q", .chosen = "answers.good", .rejected = "answers.bad"});
  EXPECT_EQ(found.prompt, "2 + 2 = ");
  EXPECT_EQ(found.rejected, "5");
}

TEST_F(PreferencePairTest, TwoFormsInOneRowAreRefused) {
  EXPECT_THAT(error({{"chosen", "a"}, {"rejected", list({kBlue})}}), HasSubstr("of chosen and rejected one is a string"));
}

TEST_F(PreferencePairTest, ARowWithoutAPromptIsRefused) {
  EXPECT_THAT(error({{"chosen", list({kBlue})}, {"rejected", list({kGreen})}}), HasSubstr("have no common beginning"));
}

TEST_F(PreferencePairTest, AMissingFieldIsRefused) {
  EXPECT_THAT(error({{"chosen", "a"}, {"reject", "b"}}), HasSubstr("rejected_field = \"reject\"?"));
}

}  // namespace
}  // namespace sluice::data::preference_row_test
