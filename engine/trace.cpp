#include "engine/trace.h"

#include "base/json.h"

namespace sluice::engine {
namespace {

constexpr int64_t kPause_us = 200;      // steps closer than this belong together
constexpr int64_t kLongest_us = 1'000'000;  // so that a slice is on the disk soon
constexpr size_t kBuffer = 1 << 16;

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, const std::vector<std::string>& executors)
    : file_(path), last_(executors.size()) {
  buffer_ = "[\n";
  for (size_t i = 0; i < executors.size(); ++i) {
    const Json name = {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i}, {"args", {{"name", executors[i]}}}};
    buffer_ += (i == 0 ? "" : ",\n") + name.dump();
  }
}

void TraceWriter::add(Slice slice) {
  const std::lock_guard lock(mutex_);
  std::optional<Slice>& last = last_[static_cast<size_t>(slice.executor)];
  const bool same_work = last && last->node == slice.node && last->iteration == slice.iteration && last->micro_batch == -1 &&
                         slice.micro_batch == -1 && slice.begin_us - last->end_us < kPause_us &&
                         slice.end_us - last->begin_us < kLongest_us;
  if (same_work) {
    last->end_us = slice.end_us;
    last->tokens += slice.tokens;
    return;
  }
  if (last) write(*last);
  last = std::move(slice);
}

void TraceWriter::close() {
  const std::lock_guard lock(mutex_);
  for (const auto& last : last_) {
    if (last) write(*last);
  }
  file_.write(buffer_ + "\n]\n");
  file_.close();
}

void TraceWriter::write(const Slice& slice) {
  Json args = {{"iteration", slice.iteration}, {"tokens", slice.tokens}};
  if (slice.micro_batch >= 0) args["micro_batch"] = slice.micro_batch;
  const Json event = {{"name", slice.node},      {"ph", "X"}, {"pid", 1}, {"tid", slice.executor}, {"ts", slice.begin_us},
                      {"dur", slice.end_us - slice.begin_us}, {"args", args}};
  buffer_ += ",\n" + event.dump();
  if (buffer_.size() < kBuffer) return;
  file_.write(buffer_);
  buffer_.clear();
}

}  // namespace sluice::engine
