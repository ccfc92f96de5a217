#include "engine/observe/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace sluice::engine {
namespace {

constexpr int64_t kPause_ns = 200'000;          // steps closer than this belong together
constexpr int64_t kLongest_ns = 1'000'000'000;  // so that a slice is on the disk soon
constexpr size_t kMostSpare = 4;                // chunks of an executor that are kept to be filled again
constexpr auto kWritingPeriod = std::chrono::milliseconds(250);

// How the slices of each node begin.
std::vector<std::string> heads_of(const Plan& plan) {
  std::vector<std::string> heads;
  for (const PlanNode& node : plan.nodes)
    heads.push_back(",\n{\"name\":" + Json(node.name).dump() + ",\"ph\":\"X\",\"pid\":1,\"tid\":");
  return heads;
}

bool is_step(const Slice& slice) { return slice.micro_batch < 0 && !slice.ends_iteration; }

bool continues(const Slice& last, const Slice& next) {
  return is_step(last) && is_step(next) && last.node == next.node && last.iteration == next.iteration &&
         next.begin_ns - last.end_ns < kPause_ns && next.end_ns - last.begin_ns < kLongest_ns;
}

// What stands behind the head of a slice. A slice is written for each micro-batch and node: one append to a string, not twelve.
class Tail {
 public:
  template <size_t size>
  Tail& operator<<(const char (&literal)[size]) {
    end_ = std::copy_n(literal, size - 1, end_);
    return *this;
  }

  Tail& operator<<(int64_t number) {
    end_ = std::to_chars(end_, end_ + kMostDigits, number).ptr;
    return *this;
  }

  /// Microseconds with three decimals, which is what the format counts in.
  Tail& us(int64_t ns) {
    *this << ns / 1000;
    const int64_t rest = ns % 1000;
    *this << ".";
    for (const int64_t digit : {rest / 100, rest / 10 % 10, rest % 10}) *end_++ = static_cast<char>('0' + digit);
    return *this;
  }

  std::string_view text() const { return {text_.data(), end_}; }

 private:
  static constexpr ptrdiff_t kMostDigits = 20;  // and a sign: of an int64_t

  std::array<char, 320> text_;  // eight numbers, two with decimals, and the words between them
  char* end_ = text_.data();
};

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, const Plan& plan, int64_t begin_ns, std::function<void()> on_error,
                         FileSystem& files)
    : heads_(heads_of(plan)),
      begin_ns_(begin_ns),
      on_error_(std::move(on_error)),
      file_(path, begin_ns > 0 ? OutputFile::Mode::kAppend : OutputFile::Mode::kTruncate, files),
      rows_(plan.executors.size()) {
  std::string text = begin_ns > 0 ? "" : "[\n";
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    const Json name = {
        {"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i}, {"args", {{"name", plan.executors[i].name}}}};
    text += (i == 0 ? "" : ",\n") + name.dump();
  }
  file_.write(text);
  thread_ = std::thread([this] { loop(); });
}

TraceWriter::~TraceWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// Only steps may grow. Everything else goes where the writer finds it without a lock, which is what makes it cheap.
void TraceWriter::ended(const Slice& slice) {
  Row& row = rows_[static_cast<size_t>(slice.executor)];
  if (row.grows || is_step(slice)) {
    if (const std::optional<Slice> finished = grow(row, slice)) put(row, *finished);
    if (row.grows) return;
  }
  put(row, slice);
}

// What was a step before `slice` and does not go on with it.
std::optional<Slice> TraceWriter::grow(Row& row, const Slice& slice) {
  const std::lock_guard lock(row.mutex);
  if (row.step && continues(*row.step, slice)) {
    row.step->end_ns = slice.end_ns;
    row.step->tokens += slice.tokens;
    row.step->prompt_tokens += slice.prompt_tokens;
    return std::nullopt;
  }
  row.grows = is_step(slice);
  return std::exchange(row.step, row.grows ? std::optional(slice) : std::nullopt);
}

void TraceWriter::put(Row& row, const Slice& slice) {
  const size_t place = row.open->filled.load(std::memory_order_relaxed);
  row.open->slices[place] = slice;
  row.open->filled.store(place + 1, std::memory_order_release);
  if (place + 1 < Chunk::kSlices) return;
  {
    const std::lock_guard lock(row.mutex);
    if (row.spare.empty()) row.spare.push_back(std::make_unique<Chunk>());
    row.full.push_back(std::exchange(row.open, std::move(row.spare.back())));
    row.spare.pop_back();
  }
  {
    const std::lock_guard lock(mutex_);
    full_ = true;
  }
  wake_.notify_one();
}

void TraceWriter::flush() {
  const std::lock_guard lock(writing_);
  if (broken_ || closed_) return;
  write_finished(/*also_last=*/true);
  file_.sync();
}

void TraceWriter::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
  flush();
  const std::lock_guard lock(writing_);
  closed_ = true;
  if (broken_) return;  // told already
  file_.write("\n]\n");
  file_.close();
}

// Waits for: a quarter of a second to pass, or a chunk to be full. Ends when: close() or the destructor.
void TraceWriter::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, kWritingPeriod, [this] { return closing_ || full_; });
    if (closing_) return;
    full_ = false;
    lock.unlock();
    write_or_break();
    lock.lock();
  }
}

void TraceWriter::write_or_break() {
  const std::lock_guard lock(writing_);
  if (broken_) return;
  try {
    write_finished(/*also_last=*/false);
  } catch (...) {
    broken_ = true;
    on_error_();
  }
}

void TraceWriter::write_finished(bool also_last) {
  for (Row& row : rows_) write_row(row, also_last);
}

void TraceWriter::write_row(Row& row, bool also_last) {
  std::vector<std::unique_ptr<Chunk>> full;
  std::vector<Slice> rest;  // of the chunk that is still being filled
  {
    const std::lock_guard lock(row.mutex);
    full.swap(row.full);
    const std::span<const Slice> filled(row.open->slices.data(), row.open->filled.load(std::memory_order_acquire));
    rest.assign(filled.begin() + static_cast<std::ptrdiff_t>(row.open->written), filled.end());
    row.open->written = filled.size();
    if (also_last && row.step) rest.push_back(*std::exchange(row.step, std::nullopt));
  }
  for (const auto& chunk : full) {
    write(std::span(chunk->slices).subspan(chunk->written));
    chunk->filled = chunk->written = 0;
  }
  write(rest);
  const std::lock_guard lock(row.mutex);
  for (auto& chunk : full) {
    if (row.spare.size() < kMostSpare) row.spare.push_back(std::move(chunk));
  }
}

void TraceWriter::write(std::span<const Slice> slices) {
  if (slices.empty()) return;
  text_.clear();
  for (const Slice& slice : slices) append(slice);
  file_.write(text_);
}

void TraceWriter::append(const Slice& slice) {
  Tail tail;
  tail << static_cast<int64_t>(slice.executor) << ",\"ts\":";
  tail.us(begin_ns_ + slice.begin_ns) << ",\"dur\":";
  tail.us(slice.end_ns - slice.begin_ns) << ",\"args\":{\"iteration\":" << slice.iteration << ",\"tokens\":" << slice.tokens;
  if (slice.prompt_tokens > 0) tail << ",\"prompt_tokens\":" << slice.prompt_tokens;
  if (slice.micro_batch >= 0) tail << ",\"micro_batch\":" << slice.micro_batch;
  tail << "}}";
  text_ += heads_[static_cast<size_t>(slice.node)];
  text_ += tail.text();
}

}  // namespace sluice::engine
