// Tokenizers of real models against llama.cpp's vocabulary tests and against the `tokenizers` package.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <sstream>

#include "base/text/strings.h"
#include "tests/text/tokenizer_fixtures.h"
#include "text/tokenizer/first_tokens.h"

namespace sluice::text::tokenizer_real_test {
namespace {

std::vector<std::string> llama_cpp_texts(const fs::path& folder) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string file = read_file(folder / "cases.inp");
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t end; (end = file.find(kSeparator, begin)) != std::string::npos; begin = end + kSeparator.size()) {
    texts.push_back(file.substr(begin, end - begin));
  }
  return texts;  // what follows the last separator is no case
}

std::vector<int64_t> integers(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<int64_t>(stream), {}};
}

class RealTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = real_tokenizer(GetParam());
    if (!folder_) GTEST_SKIP() << "needs tokenizers/" << GetParam() << " of the test data (SLUICE_TEST_DATA)";
  }
  std::optional<fs::path> folder_;
};

TEST_P(RealTokenizer, AgreesWithLlamaCppOnItsVocabularyTest) {
  const Tokenizer tokenizer = Tokenizer::load(*folder_);
  const auto texts = llama_cpp_texts(*folder_);
  const auto lines = split(read_file(*folder_ / "cases.out"), '\n');
  ASSERT_GT(texts.size(), 40u);
  ASSERT_GE(lines.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(tokenizer.encode(texts[i]), integers(lines[i])) << json(texts[i]);
}

TEST_P(RealTokenizer, AgreesWithTheReferenceOnRandomText) {
  const fs::path golden = golden_tokenizer_folder() / (std::string(GetParam()) + ".jsonl");
  const Tokenizer tokenizer = Tokenizer::load(*folder_);
  const auto lines = split(std::string(trim(read_file(golden))), '\n');
  ASSERT_EQ(lines.size(), 200u);
  for (const std::string& line : lines) {
    const json expected = json::parse(line);
    const auto ids = tokenizer.encode(expected.at("text").get<std::string>());
    EXPECT_EQ(json(ids), expected.at("ids")) << line;
    EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << line;
  }
}

TEST_P(RealTokenizer, GivesTheFirstTokensOfATextWithoutTheRest) {
  const Tokenizer tokenizer = Tokenizer::load(*folder_);
  std::string text;
  for (int i = 0; i < 20; ++i)
    for (const std::string& part : llama_cpp_texts(*folder_)) text += part + "\n";
  const std::vector<int64_t> all = tokenizer.encode(text);
  for (const size_t most : {0, 1, 2, 17, 300, 2000, 1'000'000}) {
    const std::vector<int64_t> expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size())));
    EXPECT_EQ(first_tokens(tokenizer, text, most), expected) << most;
  }
  // Pages that nobody has written, of which there are more than a text may have.
  constexpr size_t kTooMany = size_t{1} << 30;
  void* pages = ::mmap(nullptr, kTooMany, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  if (!tokenizer.encode(std::string(1, '\0')).empty())  // else all of them are read in vain
    EXPECT_EQ(first_tokens(tokenizer, {static_cast<const char*>(pages), kTooMany}, 10).size(), 10);
  ::munmap(pages, kTooMany);
}

// A quadratic step anywhere would take hours here and run into the time limit of the test.
TEST_P(RealTokenizer, TakesALongTextOfOneCharacter) {
  const Tokenizer tokenizer = Tokenizer::load(*folder_);
  for (const std::string unit :
       {"a", " ", "\n", "\xCC\x81", "\xCC\xA3", "\xE4\xB8\xAD", "'", "<", "9", "<|", "\U0001F469\u200D", "\xFF"}) {
    std::string text;
    while (text.size() < kLongText) text += unit;
    const std::string decoded = tokenizer.decode(tokenizer.encode(text));
    if (unit == "\xFF") {
      EXPECT_EQ(decoded.size(), 3 * text.size()) << "one U+FFFD a byte";
    } else {
      EXPECT_TRUE(decoded == text) << json(unit);
    }
  }
}

// Marks of class 230 before marks of class 220: canonical order turns the whole run around.
TEST_P(RealTokenizer, TakesALongTextOfMarksInTheWrongOrder) {
  const Tokenizer tokenizer = Tokenizer::load(*folder_);
  std::string above, below;
  for (size_t i = 0; i < kLongText / 4; ++i) {
    above += "\xCC\x81";
    below += "\xCC\xA3";
  }
  const std::string decoded = tokenizer.decode(tokenizer.encode("x" + above + below));
  const bool normalizes = std::string_view(GetParam()) == "qwen2";
  EXPECT_TRUE(decoded == (normalizes ? "x" + below + above : "x" + above + below));
}

INSTANTIATE_TEST_SUITE_P(Models, RealTokenizer, testing::Values("gpt2", "qwen2", "falcon", "phi-3-mini"), [](const auto& info) {
  const std::string name = info.param;
  return name == "phi-3-mini" ? "phi3" : name;
});

TEST(RealTokenizers, EndOfSequenceIsReadFromTheConfigBesideIt) {
  const auto folder = real_tokenizer("qwen2");
  if (!folder) GTEST_SKIP() << "needs tokenizers/qwen2 of the test data (SLUICE_TEST_DATA)";
  EXPECT_EQ(Tokenizer::load(*folder).end_of_sequence(), 151643);
  EXPECT_EQ(Tokenizer::load(*folder / "tokenizer.json").vocab_size(), 151646);
}

}  // namespace
}  // namespace sluice::text::tokenizer_real_test
