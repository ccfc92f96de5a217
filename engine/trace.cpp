#include "engine/trace.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "base/json.h"

namespace sluice::engine {
namespace {

constexpr int64_t kPause_ns = 200'000;          // steps closer than this belong together
constexpr int64_t kLongest_ns = 1'000'000'000;  // so that a slice is on the disk soon
constexpr auto kPeriod = std::chrono::milliseconds(250);

std::vector<std::string> quoted_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanNode& node : plan.nodes) names.push_back(Json(node.name).dump());
  return names;
}

bool is_step(const Slice& slice) { return slice.micro_batch < 0 && !slice.ends_iteration; }

bool continues(const Slice& last, const Slice& next) {
  return is_step(last) && is_step(next) && last.node == next.node && last.iteration == next.iteration &&
         next.begin_ns - last.end_ns < kPause_ns && next.end_ns - last.begin_ns < kLongest_ns;
}

void append(std::string& text, int64_t number) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// Microseconds with three decimals, which is what the format counts in.
void append_us(std::string& text, int64_t ns) {
  append(text, ns / 1000);
  const int64_t rest = ns % 1000;
  text += {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10), static_cast<char>('0' + rest % 10)};
}

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, const Plan& plan, std::function<void()> on_error)
    : nodes_(quoted_names(plan)), on_error_(std::move(on_error)), file_(path), rows_(plan.executors.size()) {
  std::string text = "[\n";
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    const Json name = {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i}, {"args", {{"name", plan.executors[i].name}}}};
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

void TraceWriter::ended(const Slice& slice) {
  Row& row = rows_[static_cast<size_t>(slice.executor)];
  const std::lock_guard lock(row.mutex);
  if (row.last && continues(*row.last, slice)) {
    row.last->end_ns = slice.end_ns;
    row.last->tokens += slice.tokens;
    row.last->prompt_tokens += slice.prompt_tokens;
    return;
  }
  if (row.last) row.slices.push_back(*row.last);
  row.last = slice;
}

void TraceWriter::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (broken_) return;  // told already
  write_finished(/*also_last=*/true);
  file_.write("\n]\n");
  file_.close();
}

// Waits for: a quarter of a second to pass. Ends when: close() or the destructor.
void TraceWriter::loop() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPeriod, [this] { return closing_; })) {
    lock.unlock();
    if (!broken_) {
      try {
        write_finished(/*also_last=*/false);
      } catch (...) {
        broken_ = true;
        on_error_();
      }
    }
    lock.lock();
  }
}

void TraceWriter::write_finished(bool also_last) {
  std::string text;
  for (Row& row : rows_) {
    std::vector<Slice> slices;
    {
      const std::lock_guard lock(row.mutex);
      slices.swap(row.slices);
      if (also_last && row.last) slices.push_back(*std::exchange(row.last, std::nullopt));
    }
    for (const Slice& slice : slices) text += text_of(slice);
  }
  if (!text.empty()) file_.write(text);
}

std::string TraceWriter::text_of(const Slice& slice) const {
  std::string text = ",\n{\"name\":" + nodes_[static_cast<size_t>(slice.node)] + ",\"ph\":\"X\",\"pid\":1,\"tid\":";
  append(text, slice.executor);
  text += ",\"ts\":";
  append_us(text, slice.begin_ns);
  text += ",\"dur\":";
  append_us(text, slice.end_ns - slice.begin_ns);
  text += ",\"args\":{\"iteration\":";
  append(text, slice.iteration);
  text += ",\"tokens\":";
  append(text, slice.tokens);
  if (slice.prompt_tokens > 0) text += ",\"prompt_tokens\":", append(text, slice.prompt_tokens);
  if (slice.micro_batch >= 0) text += ",\"micro_batch\":", append(text, slice.micro_batch);
  return text + "}}";
}

}  // namespace sluice::engine
