#include "engine/observe/slice_rows.h"

#include <utility>

namespace sluice::engine {
namespace {

constexpr int64_t kPause_ns = 200'000;          // steps closer than this belong together
constexpr int64_t kLongest_ns = 1'000'000'000;  // so that a slice is on the disk soon
constexpr size_t kMostSpare = 4;                // chunks of an executor that are kept to be filled again

bool is_step(const Slice& slice) { return slice.micro_batch < 0 && !slice.ends_iteration; }

bool continues(const Slice& last, const Slice& next) {
  return is_step(last) && is_step(next) && last.node == next.node && last.iteration == next.iteration &&
         next.begin_ns - last.end_ns < kPause_ns && next.end_ns - last.begin_ns < kLongest_ns;
}

}  // namespace

SliceRows::SliceRows(size_t executors, std::function<void()> on_full, size_t most_full)
    : on_full_(std::move(on_full)), most_full_(most_full), rows_(executors) {}

// Only steps may grow. Everything else goes where it is found without a lock, which is what makes it cheap.
void SliceRows::ended(const Slice& slice) {
  Row& row = rows_[static_cast<size_t>(slice.executor)];
  if (row.grows || is_step(slice)) {
    if (const std::optional<Slice> finished = grow(row, slice)) put(row, *finished);
    if (row.grows) return;
  }
  put(row, slice);
}

// What was a step before `slice` and does not go on with it.
std::optional<Slice> SliceRows::grow(Row& row, const Slice& slice) {
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

void SliceRows::put(Row& row, const Slice& slice) {
  const size_t place = row.open->filled.load(std::memory_order_relaxed);
  row.open->slices[place] = slice;
  row.open->filled.store(place + 1, std::memory_order_release);
  if (place + 1 < Chunk::kSlices) return;
  close_chunk(row);
  on_full_();
}

void SliceRows::close_chunk(Row& row) {
  const std::lock_guard lock(row.mutex);
  if (row.full.size() >= most_full_) {
    left_out_ += static_cast<int64_t>(Chunk::kSlices - row.open->taken);
    row.open->filled = row.open->taken = 0;
    return;
  }
  if (row.spare.empty()) row.spare.push_back(std::make_unique<Chunk>());
  row.full.push_back(std::exchange(row.open, std::move(row.spare.back())));
  row.spare.pop_back();
}

void SliceRows::take(bool also_last, const Sink& sink) {
  for (Row& row : rows_) take_row(row, also_last, sink);
}

void SliceRows::take_row(Row& row, bool also_last, const Sink& sink) {
  std::vector<std::unique_ptr<Chunk>> full;
  std::vector<Slice> rest;  // of the chunk that is still being filled
  {
    const std::lock_guard lock(row.mutex);
    full.swap(row.full);
    const std::span<const Slice> filled(row.open->slices.data(), row.open->filled.load(std::memory_order_acquire));
    rest.assign(filled.begin() + static_cast<std::ptrdiff_t>(row.open->taken), filled.end());
    row.open->taken = filled.size();
    if (also_last && row.step) rest.push_back(*std::exchange(row.step, std::nullopt));
  }
  for (const auto& chunk : full) {
    sink(std::span(chunk->slices).subspan(chunk->taken));
    chunk->filled = chunk->taken = 0;
  }
  if (!rest.empty()) sink(rest);
  const std::lock_guard lock(row.mutex);
  for (auto& chunk : full) {
    if (row.spare.size() < kMostSpare) row.spare.push_back(std::move(chunk));
  }
}

}  // namespace sluice::engine
