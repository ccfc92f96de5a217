// Every key and value remembers the piece of text it was written as.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/parse.h"

namespace sluice::dsl::spans_test {
namespace {

using engine::Entry;
using engine::Table;
using testing::ElementsAre;

// The text under a span, cut out by code points: an oracle that knows only lines and UTF-8.
std::string text_under(const SourceSpan& span) {
  std::u32string line;
  std::string bytes = span.source->text;
  for (int i = 1; i < span.line; ++i) bytes = bytes.substr(bytes.find('\n') + 1);
  bytes = bytes.substr(0, bytes.find('\n'));
  std::vector<std::string> points;
  for (const char byte : bytes) {
    if ((static_cast<unsigned char>(byte) & 0xC0) == 0x80)
      points.back() += byte;
    else
      points.emplace_back(1, byte);
  }
  std::string text;
  for (int i = 0; i < span.length; ++i) text += points.at(span.column - 1 + i);
  return text;
}

engine::PipelineSpec parsed(const std::string& text) {
  LoadResult result = parse_pipeline(text, "x.toml", "folder", {});
  EXPECT_EQ(render(result.problems), "");
  return std::move(result.spec);
}

std::vector<std::string> texts_of(const std::string& toml) {
  const engine::PipelineSpec spec = parsed("[pipeline]\n" + toml);
  std::vector<std::string> texts;
  for (const Entry& entry : spec.pipeline.entries) {
    texts.push_back(text_under(entry.key_where));
    texts.push_back(text_under(entry.value.where));
  }
  return texts;
}

TEST(Spans, CoverNumbersAndBooleansAsWritten) {
  EXPECT_THAT(texts_of("a = 0x1F\nb=-1.5e-3\nc   =   true  # on\nd = 1_000"),
              ElementsAre("a", "0x1F", "b", "-1.5e-3", "c", "true", "d", "1_000"));
}

TEST(Spans, CoverStringsWithTheirQuotes) {
  EXPECT_THAT(texts_of("a = \"x\\\"y\"\nb = 'lit'  \nc = \"\"\"one\"\"\" # c"),
              ElementsAre("a", "\"x\\\"y\"", "b", "'lit'", "c", "\"\"\"one\"\"\""));
}

TEST(Spans, CountCodePointsAndTabsAsOneColumn) {
  EXPECT_THAT(texts_of("\t\"größe\"\t=\t\"数学\"\t# é"), ElementsAre("\"größe\"", "\"数学\""));
}

TEST(Spans, CoverArraysAndInlineTables) {
  EXPECT_THAT(texts_of("a = [1, [2]] # x\nb = { c = 1, d.e = 2 }"), ElementsAre("a", "[1, [2]]", "b", "{ c = 1, d.e = 2 }"));
}

TEST(Spans, AreClippedToTheFirstLine) {
  EXPECT_THAT(texts_of("a = [ 1,  \r\n  2 ]\r\nb = '''x\ny'''\n"), ElementsAre("a", "[ 1,", "b", "'''x"));
}

TEST(Spans, OfElementsAndInnerKeysAreTheirOwn) {
  const engine::PipelineSpec spec = parsed("[pipeline]\na = [10, \"b\",\n  { c = 'd' }]\n");
  const auto& array = std::get<engine::Array>(spec.pipeline.entries[0].value.data);
  EXPECT_EQ(text_under(array[0].where), "10");
  EXPECT_EQ(text_under(array[1].where), "\"b\"");
  const Entry& inner = std::get<Table>(array[2].data).entries[0];
  EXPECT_EQ(inner.key_where.line, 3);
  EXPECT_EQ(text_under(inner.key_where), "c");
  EXPECT_EQ(text_under(inner.value.where), "'d'");
}

TEST(Spans, OfDottedKeysAreTheirParts) {
  const engine::PipelineSpec spec = parsed("[models.actor]\noptimizer . \"type\" = \"adamw\"\noptimizer.eps = 1e-8\n");
  const Entry& optimizer = spec.models.at(0).params.entries.at(0);
  EXPECT_EQ(text_under(optimizer.key_where), "optimizer");
  const Table& table = std::get<Table>(optimizer.value.data);
  EXPECT_EQ(text_under(table.entries.at(0).key_where), "\"type\"");
  EXPECT_EQ(text_under(table.entries.at(1).key_where), "eps");
  EXPECT_EQ(table.entries.at(1).key_where.line, 3);
}

TEST(Spans, OfANodeIsItsWholeHeader) {
  const engine::PipelineSpec spec = parsed("  [ nodes . advantages ]  # x\ntype = \"gae\"\n");
  EXPECT_EQ(text_under(spec.nodes.at(0).name.where), "[ nodes . advantages ]");
  EXPECT_EQ(text_under(spec.nodes.at(0).params.where), "[ nodes . advantages ]");
  EXPECT_EQ(text_under(spec.nodes.at(0).type.where), "\"gae\"");
}

TEST(Spans, OfANodeWithoutAHeaderIsItsKey) {
  const engine::PipelineSpec spec = parsed("nodes.a.type = \"x\"\n");
  EXPECT_EQ(text_under(spec.nodes.at(0).name.where), "a");
  const engine::PipelineSpec inlined = parsed("[nodes]\nb = { type = \"x\" }\n");
  EXPECT_EQ(text_under(inlined.nodes.at(0).name.where), "b");
}

TEST(Spans, KeysKeepTheOrderOfTheText) {
  const engine::PipelineSpec spec =
      parsed("[nodes.z]\ntype = \"x\"\nq = 1\na = 2\n[nodes.b]\ntype = \"x\"\n[models.m]\n[nodes.a]\ntype = \"x\"\n");
  std::vector<std::string> names;
  for (const engine::NodeSpec& node : spec.nodes) names.push_back(node.name.text);
  EXPECT_THAT(names, ElementsAre("z", "b", "a"));
  EXPECT_EQ(spec.nodes[0].params.entries[0].key, "q");
}

TEST(Spans, ValuesKnowTheirFolder) {
  const engine::PipelineSpec spec = parsed("plugins = [\"a.so\"]\n[models.m]\ncheckpoint = \"x\"\n");
  EXPECT_EQ(spec.plugins_base, "folder");
  EXPECT_EQ(spec.models.at(0).params.entries.at(0).value.base, "folder");
}

}  // namespace
}  // namespace sluice::dsl::spans_test
