#include "engine/contract/params/named_file.h"

#include <gmock/gmock.h>

#include "engine/contract/params/param_set.h"
#include "tests/engine/spec_builder.h"

namespace sluice::engine::named_file_test {
namespace {

struct Params {
  std::vector<std::filesystem::path> data;
  std::filesystem::path tools;
  std::string other;
};

// Line and column of what a message is about, in the table of a node with these keys; "": none of them.
std::string place(const std::string& keys, const std::string& message) {
  ParamSet<Params> params;
  params.param("data", &Params::data);
  params.param("tools", &Params::tools);
  params.param("other", &Params::other);
  const PipelineSpec spec = testing::spec_of("[nodes.n]\ntype = \"t\"\n" + keys);
  const SourceSpan where = place_named_in(message, named_files(spec.nodes.front().params, params.erased()));
  return where.known() ? std::to_string(where.line) + ":" + std::to_string(where.column) : "";
}

TEST(NamedFile, IsThePlaceOfAMessageThatNamesIt) {
  const std::string keys = "other = \"x.py\"\ntools = \"tools.json\"\ndata = \"rows/a.jsonl\"\n";
  EXPECT_EQ(place(keys, "rows/a.jsonl holds no rows"), "5:8");
  EXPECT_EQ(place(keys, "node 'n', tools.json: it is damaged"), "4:9");
  EXPECT_EQ(place(keys, "cannot read rows/a.jsonl."), "5:8");
  EXPECT_EQ(place(keys, "x.py: no such function"), "");
}

TEST(NamedFile, IsNoPartOfALongerName) {
  const std::string keys = "data = \"a.jsonl\"\n";
  EXPECT_EQ(place(keys, "a.jsonl.gz is damaged"), "");
  EXPECT_EQ(place(keys, "data.jsonl is damaged"), "");
  EXPECT_EQ(place(keys, "x/a.jsonl is damaged"), "");
  EXPECT_EQ(place(keys, "of data.jsonl and (a.jsonl)"), "3:8");
}

TEST(NamedFile, OfAFolderOrPatternIsThePlaceOfWhatItStandsFor) {
  EXPECT_EQ(place("data = \"rows\"\n", "rows/b.jsonl holds no rows"), "3:8");
  EXPECT_EQ(place("data = \"rows/*.gz\"\n", "rows/b.gz: the compressed data is cut off"), "3:8");
  EXPECT_EQ(place("data = \"*.gz\"\n", "b.gz: the compressed data is cut off"), "");
}

TEST(NamedFile, OfSeveralTheLongestIsMeant) {
  const std::string keys = "data = [\"rows\", \"rows/b.jsonl\", \"rows/*.jsonl\"]\n";
  EXPECT_EQ(place(keys, "rows/b.jsonl holds no rows"), "3:17");
  EXPECT_EQ(place(keys, "rows/c.jsonl holds no rows"), "3:33");
}

}  // namespace
}  // namespace sluice::engine::named_file_test
