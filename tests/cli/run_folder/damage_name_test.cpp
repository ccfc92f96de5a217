#include "cli/run_folder/damage_name.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/files/file.h"
#include "base/numbers/crc32c.h"
#include "tests/temporary_folder.h"

namespace sluice::cli::damage_name_test {
namespace {

constexpr const char* kWhat = "has another checksum than when it was saved";

std::string checksum_of(const std::string& bytes) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32c(bytes));
  return text;
}

// Two tensors of 8 and 4 bytes, as a run writes them.
struct TensorFile {
  std::string a = "\1\2\3\4\5\6\7\10", b = "abcd";
  std::string header = "{\"__metadata__\":{\"crc32c/a\":\"" + checksum_of(a) + "\",\"crc32c/b\":\"" + checksum_of(b) +
                       "\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," +
                       "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}";
  std::string content() const {
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + a + b;
  }
};

std::string text_of(const TemporaryFolder& folder, const std::string& file, bool whole = true) {
  return damage_text(folder.path(), {.file = folder.path() / file, .what = kWhat, .whole = whole});
}

TEST(DamageName, EachFlippedBitOfDataIsNamedByItsTensor) {
  const TemporaryFolder folder;
  const TensorFile file;
  const std::string content = file.content();
  const size_t data = content.size() - file.a.size() - file.b.size();
  for (size_t bit = 8 * data; bit < 8 * content.size(); ++bit) {
    std::string spoiled = content;
    spoiled[bit / 8] = static_cast<char>(spoiled[bit / 8] ^ (1 << bit % 8));
    folder.write("m.safetensors", spoiled);
    const std::string tensor = bit / 8 < data + file.a.size() ? "\"a\"" : "\"b\"";
    ASSERT_EQ(text_of(folder, "m.safetensors"), "m.safetensors: tensor " + tensor + " " + kWhat) << "bit " << bit;
  }
}

TEST(DamageName, EachFlippedBitOfTheHeaderIsNamedByTheHeaderOrTheTensorThatItTellsOf) {
  const TemporaryFolder folder;
  const TensorFile file;
  const std::string content = file.content();
  for (size_t bit = 0; bit < 8 * (content.size() - file.a.size() - file.b.size()); ++bit) {
    std::string spoiled = content;
    spoiled[bit / 8] = static_cast<char>(spoiled[bit / 8] ^ (1 << bit % 8));
    folder.write("m.safetensors", spoiled);
    ASSERT_THAT(text_of(folder, "m.safetensors"),
                ::testing::MatchesRegex(std::string("m.safetensors: (its header|tensor .*) ") + kWhat))
        << "bit " << bit;
  }
}

TEST(DamageName, OtherFilesAndOtherLengthsAreNamedByTheFile) {
  const TemporaryFolder folder;
  folder.write("config.json", "{}");
  EXPECT_EQ(text_of(folder, "config.json"), std::string("config.json ") + kWhat);
  folder.write("m.safetensors", "half");
  EXPECT_EQ(text_of(folder, "m.safetensors", /*whole=*/false), std::string("m.safetensors ") + kWhat);
  EXPECT_EQ(text_of(folder, "actor/model.safetensors", /*whole=*/false), std::string("actor/model.safetensors ") + kWhat);
}

TEST(DamageName, FileThatGoesMeanwhileIsNamedTheSame) {
  const TemporaryFolder folder;
  EXPECT_EQ(text_of(folder, "gone.safetensors"), std::string("gone.safetensors: its header ") + kWhat);
}

}  // namespace
}  // namespace sluice::cli::damage_name_test
