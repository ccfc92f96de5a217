#include "engine/observe/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr auto kWritingPeriod = std::chrono::milliseconds(250);

// How the slices of each node begin.
std::vector<std::string> heads_of(const Plan& plan) {
  std::vector<std::string> heads;
  for (const PlanNode& node : plan.nodes) heads.push_back(",\n{\"name\":" + Json(node.name).dump() + ",\"ph\":\"X\",\"pid\":");
  return heads;
}

std::vector<std::string> names_of_executors(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanExecutor& executor : plan.executors) names.push_back(executor.name);
  return names;
}

// Viewers take 0 for the idle process of a kernel.
int pid_of(int rank) { return rank + 1; }

// How far the times of a rank can be trusted.
std::string clock_text(int64_t error_ns) {
  if (error_ns == 0) return "on the clock of rank 0";
  return "on the clock of rank 0, within " + fixed(static_cast<double>(error_ns) * 1e-6, 3) + " ms";
}

std::string metadata(const char* what, int pid, const Json& args) {
  return Json({{"name", what}, {"ph", "M"}, {"pid", pid}, {"args", args}}).dump();
}

// What stands after the head of a slice. A slice is written for each micro-batch and node: one append to a string, not twelve.
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
      executors_(names_of_executors(plan)),
      begin_ns_(begin_ns),
      on_error_(std::move(on_error)),
      file_(path, begin_ns > 0 ? OutputFile::Mode::kAppend : OutputFile::Mode::kTruncate, files),
      rows_(plan.executors.size(),
            [this] {
              {
                const std::lock_guard lock(mutex_);
                full_ = true;
              }
              wake_.notify_one();
            }),
      meetings_(plan.owners()) {
  if (begin_ns == 0) text_ = "[\n";
  name_threads(pid_of(0));
  file_.write(text_);
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

void TraceWriter::flush() {
  const std::lock_guard lock(writing_);
  if (closed_) return;
  unless_broken([this] {
    write_finished(/*also_last=*/true);
    file_.sync();
  });
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
  unless_broken([this] {
    file_.write("\n]\n");
    file_.close();
  });
}

// Waits for: a quarter of a second to pass, or a chunk to be full. Ends when: close() or the destructor.
void TraceWriter::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, kWritingPeriod, [this] { return closing_ || full_; });
    if (closing_) return;
    full_ = false;
    lock.unlock();
    {
      const std::lock_guard writing(writing_);
      unless_broken([this] { write_finished(/*also_last=*/false); });
    }
    lock.lock();
  }
}

// What is half in the file is the last of it. What comes later is taken and forgotten, so that it does not pile up.
void TraceWriter::unless_broken(const std::function<void()>& change) {
  if (broken_) return forget_finished();
  try {
    change();
  } catch (...) {
    broken_ = true;
    on_error_();
  }
}

void TraceWriter::forget_finished() {
  rows_.take(/*also_last=*/true, [](std::span<const Slice>) {});
  const std::lock_guard lock(mutex_);
  own_met_.clear();
}

void TraceWriter::write_finished(bool also_last) {
  rows_.take(also_last, [this](std::span<const Slice> slices) { write(pid_of(0), 0, slices); });
  text_.clear();
  meet_own();
  file_.write(text_);
}

void TraceWriter::write(int pid, int64_t shift_ns, std::span<const Slice> slices) {
  text_.clear();
  for (const Slice& slice : slices) append(pid, shift_ns, slice);
  file_.write(text_);
}

void TraceWriter::append(int pid, int64_t shift_ns, const Slice& slice) {
  Tail tail;
  tail << static_cast<int64_t>(pid) << ",\"tid\":" << static_cast<int64_t>(slice.executor) << ",\"ts\":";
  tail.us(std::max<int64_t>(0, begin_ns_ + slice.begin_ns + shift_ns)) << ",\"dur\":";
  tail.us(slice.end_ns - slice.begin_ns) << ",\"args\":{\"iteration\":" << slice.iteration << ",\"tokens\":" << slice.tokens;
  if (slice.prompt_tokens > 0) tail << ",\"prompt_tokens\":" << slice.prompt_tokens;
  if (slice.micro_batch >= 0) tail << ",\"micro_batch\":" << slice.micro_batch;
  tail << "}}";
  text_ += heads_[static_cast<size_t>(slice.node)];
  text_ += tail.text();
}

// Into text_, as the rest of a list: the first of all lines stands after nothing.
void TraceWriter::name_threads(int pid) {
  for (size_t i = 0; i < executors_.size(); ++i) {
    const Json name = {{"name", "thread_name"}, {"ph", "M"}, {"pid", pid}, {"tid", i}, {"args", {{"name", executors_[i]}}}};
    text_ += (i == 0 ? "" : ",\n") + name.dump();
  }
}

void TraceWriter::name_process(int rank, const std::string& name, const std::string& label) {
  const int pid = pid_of(rank);
  text_ += ",\n" + metadata("process_name", pid, {{"name", name}}) + ",\n" +
           metadata("process_sort_index", pid, {{"sort_index", rank}});
  if (!label.empty()) text_ += ",\n" + metadata("process_labels", pid, {{"labels", label}});
}

void TraceWriter::name_own_process(const std::string& name) {
  const std::lock_guard lock(writing_);
  text_.clear();
  name_process(0, name, {});
  unless_broken([this] { file_.write(text_); });
}

// Where all ranks have told of a point, arrows are drawn.
void TraceWriter::met(const Meeting& meeting) {
  const std::lock_guard lock(mutex_);
  own_met_.push_back(meeting);
}

void TraceWriter::check(const RankSlices& piece) const {
  const auto known = [this](const auto& work) {
    return 0 <= work.executor && static_cast<size_t>(work.executor) < executors_.size() && 0 <= work.node &&
           static_cast<size_t>(work.node) < heads_.size();
  };
  const bool all_known = std::ranges::all_of(piece.slices, known) && std::ranges::all_of(piece.meetings, known);
  SLUICE_CHECK(all_known, "rank " + std::to_string(piece.rank) + " has slices of another plan");
}

void TraceWriter::add(const RankSlices& piece, int64_t shift_ns, const std::string& name) {
  check(piece);
  const std::lock_guard lock(writing_);
  if (closed_) return;
  unless_broken([&] { write_piece(piece, shift_ns, name); });
}

void TraceWriter::write_piece(const RankSlices& piece, int64_t shift_ns, const std::string& name) {
  const int pid = pid_of(piece.rank);
  text_.clear();
  if (named_.insert(piece.rank).second) {
    name_process(piece.rank, name, clock_text(piece.error_ns));
    text_ += ",\n";
    name_threads(pid);
  }
  const int64_t more = piece.left_out - std::exchange(left_out_[piece.rank], piece.left_out);
  for (const Slice& slice : piece.slices) append(pid, shift_ns, slice);
  if (more > 0 && !piece.slices.empty()) note(pid, shift_ns, piece.slices.back(), plural(more, "slice") + " left out");
  meet_own();
  for (const Meeting& meeting : piece.meetings) meet(piece.rank, shift_ns, meeting);
  file_.write(text_);
}

// A moment at the end of a slice, with some words.
void TraceWriter::note(int pid, int64_t shift_ns, const Slice& slice, const std::string& words) {
  Tail tail;
  tail << static_cast<int64_t>(pid) << ",\"tid\":" << static_cast<int64_t>(slice.executor) << ",\"ts\":";
  tail.us(std::max<int64_t>(0, begin_ns_ + slice.end_ns + shift_ns)) << "}";
  text_ += ",\n{\"name\":" + Json(words).dump() + ",\"ph\":\"i\",\"s\":\"p\",\"pid\":";
  text_ += tail.text();
}

void TraceWriter::meet_own() {
  std::vector<Meeting> met;
  {
    const std::lock_guard lock(mutex_);
    met.swap(own_met_);
  }
  for (const Meeting& meeting : met) meet(0, 0, meeting);
}

void TraceWriter::meet(int rank, int64_t shift_ns, Meeting meeting) {
  meeting.came_ns += shift_ns;
  meeting.went_on_ns += shift_ns;
  for (const Meetings::Arrow& arrow : meetings_.add(rank, meeting)) append(arrow, meeting);
}

// Each arrow has an id of its own, which no other part of the run makes: viewers draw one only between two ends of one id.
void TraceWriter::append(const Meetings::Arrow& arrow, const Meeting& meeting) {
  const auto end = [&](std::string_view phase, const Meetings::Place& place) {
    Tail tail;
    tail << static_cast<int64_t>(pid_of(place.rank)) << ",\"tid\":" << static_cast<int64_t>(place.executor) << ",\"ts\":";
    tail.us(std::max<int64_t>(0, begin_ns_ + place.ns)) << ",\"id\":\"" << meeting.iteration << "." << int64_t{meeting.node};
    tail << "." << meeting.number << "." << int64_t{arrow.to.rank} << "\",\"args\":{\"iteration\":" << meeting.iteration << "}}";
    text_ += ",\n{\"name\":\"waited for\",\"cat\":\"ranks\",\"ph\":";
    text_ += phase;
    text_ += ",\"pid\":";
    text_ += tail.text();
  };
  end("\"s\"", arrow.from);
  end("\"f\",\"bp\":\"e\"", arrow.to);
}

}  // namespace sluice::engine
