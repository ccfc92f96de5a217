#include "models/folder/safetensors.h"
#include "models/folder/safetensors_index.h"
#include "models/folder/safetensors_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "tests/source_folder.h"
#include "tests/temporary_folder.h"

namespace sluice::models::safetensors_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_with(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

std::vector<TensorEntry> parse(const std::string& bytes) {
  return parse_safetensors_header(std::as_bytes(std::span(bytes)), "some.safetensors");
}

std::string error_for(const std::string& header, size_t data_bytes) {
  return message_of<UserError>([&] { parse(file_with(header, std::string(data_bytes, '\0'))); });
}

// The folder of the reference implementation's own test cases; empty where it is not there.
fs::path reference_cases() {
  const char* data = std::getenv("SLUICE_TEST_DATA");
  return (data != nullptr ? fs::path(data) : fs::path(tests::source_folder()) / "../shared/data") / "safetensors_cases";
}

TEST(SafetensorsHeader, AgreesWithTheReferenceImplementationOnItsTestCases) {
  const fs::path folder = reference_cases();
  if (!fs::exists(folder / "expected.tsv")) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << folder << " is missing";
    GTEST_SKIP() << folder << " is missing";
  }
  std::ifstream table(folder / "expected.tsv");
  std::string line;
  int seen = 0;
  while (std::getline(table, line)) {
    std::istringstream row(line);
    std::string name, expected;
    std::getline(row, name, '\t');
    std::getline(row, expected, '\t');
    if (!fs::exists(folder / name)) continue;  // the heading, and cases that the collection lists but does not hold
    ++seen;
    const MappedFile file(folder / name);
    if (expected == "ok") {
      EXPECT_NO_THROW(parse_safetensors_header(file.bytes(), name)) << name;
    } else {
      EXPECT_THROW(parse_safetensors_header(file.bytes(), name), UserError) << name << " should be " << expected;
    }
  }
  EXPECT_GE(seen, 10);
}

TEST(SafetensorsHeader, GivesTensorsInTheOrderOfTheirData) {
  const auto tensors = parse(file_with(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},"__metadata__":{"format":"pt"},)"
                                       R"("a":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]}})",
                                       std::string(10, '\0')));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[1].name, "b");
  EXPECT_THAT(tensors[0].shape, ElementsAre(1, 1));
  EXPECT_EQ(tensors[1].end - tensors[1].begin, 8u);
}

TEST(SafetensorsHeader, HolesAndOverlapsAreRefused) {
  const std::string first = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)";
  EXPECT_THAT(error_for(first + R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})", 9),
              AllOf(HasSubstr("some.safetensors"), HasSubstr("\"b\""), HasSubstr("[5, 9]"), HasSubstr("begin at 4")));
  EXPECT_THAT(error_for(first + R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})", 7), HasSubstr("begin at 4"));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5), HasSubstr("begin at 0"));
  EXPECT_THAT(error_for(first.substr(0, first.size() - 1) + "}", 5), HasSubstr("4 bytes of data, but 5 follow"));
}

TEST(SafetensorsHeader, ShapeThatOverflowsIsRefused) {
  EXPECT_THAT(error_for(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0),
              HasSubstr("more elements"));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U8","shape":[36893488147419103232],"data_offsets":[0,0]}})", 0), HasSubstr("63 bits"));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})", 0), HasSubstr("negative"));
}

TEST(SafetensorsHeader, DuplicatesAndUnknownsAreRefused) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(error_for("{" + entry + "," + entry + "}", 0), HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U9","shape":[0],"data_offsets":[0,0]}})", 0), HasSubstr("unknown dtype \"U9\""));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0), HasSubstr("\"x\""));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
              HasSubstr("\"dtype\" twice"));
  EXPECT_THAT(error_for(R"({"a":{"dtype":"U8","shape":[0]}})", 0), HasSubstr("needs two data_offsets"));
  EXPECT_THAT(error_for(R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0), HasSubstr("no dtype"));
}

TEST(SafetensorsHeader, WrongKindsOfValuesAreRefused) {
  EXPECT_THAT(error_for("[]", 0), HasSubstr("must be a JSON object"));
  EXPECT_THAT(error_for(R"({"a":3})", 0), HasSubstr("\"a\" must be an object"));
  EXPECT_THAT(error_for(R"({"a":{"shape":[[1]]}})", 0), HasSubstr("a list"));
  EXPECT_THAT(error_for(R"({"a":{"shape":{"x":1}}})", 0), HasSubstr("an object"));
  EXPECT_THAT(error_for(R"({"a":{"shape":[1],"data_offsets":[0,1,2]}})", 0), HasSubstr("more than two"));
  EXPECT_THAT(error_for(R"({"__metadata__":{"format":1}})", 0), HasSubstr("a number"));
}

TEST(SafetensorsHeader, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_THAT(error_for(R"({"a":{"shape":)" + std::string(1'000'000, '['), 0), HasSubstr("a list"));
}

TEST(SafetensorsHeader, ReadsChecksumsOfTheMetadata) {
  const std::string tensors =
      R"(,"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})";
  const auto entries = parse(file_with(R"({"__metadata__":{"crc32c/a":"0012aBfF"})" + tensors, ""));
  EXPECT_EQ(entries[0].checksum, 0x0012ABFFu);
  EXPECT_FALSE(entries[1].checksum.has_value());
  for (const std::string wrong : {"", "12", "0012abfg", "0x12abff", "00012abff"}) {
    EXPECT_THAT(error_for(R"({"__metadata__":{"crc32c/a":")" + wrong + "\"}" + tensors, 0), HasSubstr("eight hexadecimal digits"))
        << wrong;
  }
}

TEST(SafetensorsHeader, ExtremeHeadersAreRefused) {
  const std::string rest = R"("dtype":"U8","data_offsets":[0,0],"shape":[0)";
  EXPECT_THAT(error_for("{\"" + std::string(2000, 'n') + "\":{" + rest + "]}}", 0), HasSubstr("2000 bytes"));
  std::string dims;
  for (int i = 0; i < 64; ++i) dims += ",1";
  EXPECT_THAT(error_for("{\"a\":{" + rest + dims + "]}}", 0), HasSubstr("64 dimensions"));
  std::string many = "{\"x\":{" + rest + "]}";
  for (int i = 0; i <= 200'000; ++i) many += ",\"" + std::to_string(i) + "\":{" + rest + "]}";
  EXPECT_THAT(error_for(many + "}", 0), HasSubstr("more than 200000 tensors"));
}

TEST(SafetensorsIndex, GivesTheTensorsOfEachFile) {
  const auto files = parse_safetensors_index(
      R"({"metadata":{"total_size":8,"nested":[{"a":[1]}]},"weight_map":{"x":"2.safetensors","y":"1.safetensors","z":"2.safetensors"}})",
      "i");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_THAT(files.at("2.safetensors"), ElementsAre("x", "z"));
  EXPECT_THAT(files.at("1.safetensors"), ElementsAre("y"));
}

TEST(SafetensorsIndex, WhatIsNoIndexIsRefused) {
  const auto error_of = [](const std::string& text) {
    return message_of<UserError>([&] { parse_safetensors_index(text, "i.json"); });
  };
  EXPECT_THAT(error_of(""), HasSubstr("i.json: is not JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("weight_map is missing"));
  EXPECT_THAT(error_of(R"({"weight_map":{}})"), HasSubstr("weight_map names no tensor"));
  EXPECT_THAT(error_of(R"({"weight_map":["a"]})"), HasSubstr("needs an object weight_map"));
  EXPECT_THAT(error_of(R"({"weight_map":{"a":1}})"), HasSubstr("must give a file name for \"a\""));
  EXPECT_THAT(error_of(R"({"weight_map":{"a":{"b":"c"}}})"), HasSubstr("not an object"));
  EXPECT_THAT(error_of(R"({"weight_map":{"a":"x","a":"y"}})"), HasSubstr("\"a\" twice"));
  EXPECT_THAT(error_of(R"({"weight_map":{},"weight_map":{}})"), HasSubstr("weight_map twice"));
  for (const std::string place : {"", ".", "..", "/etc/passwd", "a/b"}) {
    EXPECT_THAT(error_of(R"({"weight_map":{"a":")" + place + "\"}}"), HasSubstr("a file of the same folder")) << place;
  }
}

TEST(TensorFolder, ReadsPartsAlongBothDimensions) {
  const TemporaryFolder folder;
  const at::Tensor whole = at::arange(1'500'000, at::kFloat).reshape({1000, 1500});  // more than one chunk
  write_safetensors(folder.path() / "model.safetensors", {{"x", whole}});
  const TensorFolder tensors(folder.path());
  const at::Tensor rows = at::empty({700, 1500}, at::kFloat), columns = at::empty({20, 1000}, at::kFloat);
  tensors.read_into("x", 0, 250, rows);
  tensors.read_into("x", 1, 30, columns.t());
  EXPECT_TRUE(rows.equal(whole.narrow(0, 250, 700)));
  EXPECT_TRUE(columns.equal(whole.narrow(1, 30, 20).t()));
}

TEST(TensorFolder, ReadsTensorsThatAreNotAligned) {
  const TemporaryFolder folder;
  folder.write(
      "model.safetensors",
      file_with(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                std::string("\x01\x00\x00\xC0\x3F", 5)));
  EXPECT_EQ(TensorFolder(folder.path()).read("b", {1}).item<float>(), 1.5f);
}

TEST(TensorFolder, ReadsHalfPrecisionAsFloat) {
  const TemporaryFolder folder;
  // 1.5 is 0x3FC0 in bfloat16 and 0x3E00 in float16
  folder.write(
      "model.safetensors",
      file_with(R"({"b":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"h":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})",
                std::string("\xC0\x3F\x00\x3E", 4)));
  const TensorFolder tensors(folder.path());
  EXPECT_EQ(tensors.read("b", {1}).item<float>(), 1.5f);
  EXPECT_EQ(tensors.read("h", {1}).item<float>(), 1.5f);
}

TEST(TensorFolder, WrongTensorsAreNamedWithFileAndExpectation) {
  const TemporaryFolder folder;
  folder.write("model.safetensors",
               file_with(R"({"weight":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", std::string(8, '\0')));
  const TensorFolder tensors(folder.path());
  EXPECT_THAT(
      message_of<UserError>([&] {
        tensors.read("weights", {2, 3});
      }),
      AllOf(HasSubstr("model.safetensors"), HasSubstr("\"weights\" of shape [2, 3] is missing"), HasSubstr("has \"weight\"")));
  EXPECT_THAT(message_of<UserError>([&] { tensors.read("weight", {2}); }), HasSubstr("has shape [1]; config.json asks for [2]"));
  EXPECT_THAT(message_of<UserError>([&] { tensors.read("weight", {1}); }), HasSubstr("has dtype I64; expected F32, BF16 or F16"));
}

TEST(TensorFolder, ReadsShardsThatTheIndexNames) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "one.safetensors", {{"a", at::arange(3, at::kFloat)}});
  write_safetensors(folder.path() / "two.safetensors", {{"b", at::arange(4, at::kFloat)}});
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  const TensorFolder tensors(folder.path());
  EXPECT_THAT(tensors.names(), ElementsAre("a", "b"));
  EXPECT_TRUE(tensors.read("b", {4}).equal(at::arange(4, at::kFloat)));
}

TEST(TensorFolder, IndexThatPromisesWhatShardsDoNotHoldIsRefused) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "one.safetensors", {{"a", at::arange(3, at::kFloat)}});
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}})");
  EXPECT_THAT(message_of<UserError>([&] { TensorFolder{folder.path()}; }), HasSubstr("\"b\" is missing"));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "../one.safetensors"}})");
  EXPECT_THAT(message_of<UserError>([&] { TensorFolder{folder.path()}; }), HasSubstr("a file of the same folder"));
}

TEST(TensorFolder, FolderWithoutWeightsSaysHowToStartWithout) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { TensorFolder{folder.path()}; }), HasSubstr("init = \"random\""));
}

TEST(TensorFolder, WeightsThatAreNotReadAreNamed) {
  const TemporaryFolder folder;
  const auto error = [&] { return message_of<UserError>([&] { TensorFolder{folder.path()}; }); };
  folder.write("training_args.bin", "");
  EXPECT_THAT(error(), HasSubstr("init = \"random\""));
  folder.write("model-q4.gguf", "");
  EXPECT_THAT(error(), HasSubstr("but model-q4.gguf"));
  folder.write("pytorch_model-00001-of-00002.bin", "");
  EXPECT_THAT(error(), AllOf(HasSubstr("but pytorch_model-00001-of-00002.bin"), HasSubstr("save_pretrained()")));
  folder.write("model-00001-of-00002.safetensors", "");
  EXPECT_THAT(error(), AllOf(HasSubstr("but model-00001-of-00002.safetensors"), HasSubstr("fetch the folder again")));
  folder.write("adapter_model.safetensors", "");
  EXPECT_THAT(error(), AllOf(HasSubstr("but adapter_model.safetensors"), HasSubstr("lora = { adapter")));
}

TEST(TensorFolder, ALinkToAFileThatIsNotThereIsSaidToBeOne) {
  const TemporaryFolder folder;
  fs::create_symlink("../../blobs/none", folder.path() / "model.safetensors");
  EXPECT_THAT(message_of<UserError>([&] { TensorFolder{folder.path()}; }),
              HasSubstr("but model.safetensors, a link to a file that is not there"));
}

TEST(TensorFolder, APointerOfGitLfsIsSaidToBeOne) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 42\n");
  EXPECT_THAT(message_of<UserError>([&] { TensorFolder{folder.path()}; }), HasSubstr("is a pointer of Git LFS"));
}

TEST(TensorFolder, NamesATensorWhoseBytesHaveChanged) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model.safetensors";
  write_safetensors(path, {{"a", at::arange(3, at::kFloat)}, {"b", at::arange(4, at::kLong)}});
  std::string bytes = read_file(path);
  EXPECT_EQ(TensorFolder::of_file(path).damage_of("b"), "");
  bytes.back() ^= 1;
  folder.write("model.safetensors", bytes);
  const TensorFolder tensors(folder.path());
  EXPECT_EQ(tensors.damage_of("a"), "");
  EXPECT_THAT(tensors.damage_of("b"), AllOf(HasSubstr(path.string()), HasSubstr("tensor \"b\" has the checksum")));
}

TEST(WriteSafetensors, WholeNumbersStayWhole) {
  const TemporaryFolder folder;
  const int64_t large = (int64_t{1} << 53) + 1;  // no float holds it
  write_safetensors(folder.path() / "model.safetensors", {{"n", at::full({1}, large, at::kLong)}});
  const TensorFolder tensors(folder.path());
  EXPECT_EQ(tensors.entry("n").dtype, "I64");
  int64_t read = 0;
  tensors.for_each_bytes("n", [&](std::string_view bytes) { std::memcpy(&read, bytes.data(), sizeof read); });
  EXPECT_EQ(read, large);
}

TEST(WriteSafetensors, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model.safetensors";
  write_safetensors(path, {{"x", at::tensor({1.0f}).reshape({1, 1})}});
  const std::string header =
      R"({"__metadata__":{"format":"pt","crc32c/x":"dd54c4ab"},"x":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_file(path), file_with(header + padding, std::string("\x00\x00\x80\x3F", 4)));
}

}  // namespace
}  // namespace sluice::models::safetensors_test
