#include "engine/observe/event_file.h"

#include <unistd.h>

#include <bit>
#include <chrono>
#include <string>
#include <string_view>

#include "base/files/path_kind.h"
#include "base/numbers/crc32c.h"

namespace sluice::engine {
namespace {

template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (size_t i = 0; i < sizeof word; ++i) bytes += static_cast<char>(static_cast<unsigned char>(word >> (8 * i)));
  return bytes;
}

// One protobuf message in the making. As its writers do, a number that is zero outside a oneof is left out.
class Message {
 public:
  Message& integer(int field, int64_t value) {
    if (value == 0) return *this;
    key(field, kVarint);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, double value) {
    key(field, kFixed64);
    bytes_ += little_endian(std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    key(field, kFixed32);
    bytes_ += little_endian(std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& inner) { return text(field, inner.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

  void key(int field, WireType type) { varint(static_cast<uint64_t>(field) << 3 | type); }

  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Field numbers of event.proto and summary.proto.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;  // Event
constexpr int kValue = 1;                                                // Summary
constexpr int kTag = 1, kSimpleValue = 2;                                // Summary.Value

// TFRecord stores check sums rotated and shifted, because a check sum over data that holds its own check sum is weak.
std::string masked_check_sum(std::string_view bytes) {
  constexpr uint32_t kMaskDelta = 0xA282EAD8;
  return little_endian(std::rotr(crc32c(bytes), 15) + kMaskDelta);
}

std::string record(const Message& event) {
  const std::string length = little_endian(uint64_t{event.bytes().size()});
  return length + masked_check_sum(length) + event.bytes() + masked_check_sum(event.bytes());
}

std::string host_name() {
  char name[256] = {};
  const bool known = ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0';
  const bool usable = known && std::string_view(name).find('/') == std::string_view::npos;
  return usable ? name : "sluice";
}

// One that is not taken: a run that goes on has files of its earlier parts.
std::string file_name(const std::filesystem::path& folder, double wall_time_seconds) {
  const std::string rest = "." + host_name() + "." + std::to_string(::getpid());
  auto seconds = static_cast<int64_t>(wall_time_seconds);
  while (is_there(folder / (kEventFilePrefix + std::to_string(seconds) + rest))) ++seconds;
  return kEventFilePrefix + std::to_string(seconds) + rest;
}

}  // namespace

double wall_clock_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

EventFile::EventFile(const RunFolder& folder, double wall_time_seconds)
    : name_(file_name(folder.path, wall_time_seconds)), file_(folder.path / name_, OutputFile::Mode::kTruncate, *folder.files) {
  write(record(Message().real(kWallTime, wall_time_seconds).text(kFileVersion, "brain.Event:2")));
}

void EventFile::scalars(int64_t step, double wall_time_seconds, const MetricRow& row) {
  Message summary;
  for (const auto& [name, value] : row) {
    summary.message(kValue, Message().text(kTag, name).real(kSimpleValue, static_cast<float>(value)));
  }
  write(record(Message().real(kWallTime, wall_time_seconds).integer(kStep, step).message(kSummary, summary)));
}

void EventFile::write(const std::string& record) {
  file_.write(record);
  whole_ = file_.size();
}

}  // namespace sluice::engine
