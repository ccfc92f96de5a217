#include "engine/observe/rank_trace.h"

#include "base/numbers/bytes.h"

namespace sluice::engine {
namespace {

constexpr size_t kMostChunks = 32;         // of an executor: 2 MB on the way to rank 0
constexpr size_t kMostMeetings = 1 << 14;  // of all

void write_slice(ByteWriter& bytes, const Slice& slice) {
  bytes.number(static_cast<uint32_t>(slice.executor));
  bytes.number(static_cast<uint32_t>(slice.node));
  for (const int64_t number :
       {slice.iteration, slice.micro_batch, slice.tokens, slice.prompt_tokens, slice.begin_ns, slice.end_ns})
    bytes.number(number);
}

Slice read_slice(ByteReader& bytes) {
  Slice slice;
  slice.executor = static_cast<int>(bytes.number<uint32_t>());
  slice.node = static_cast<int>(bytes.number<uint32_t>());
  for (int64_t* number :
       {&slice.iteration, &slice.micro_batch, &slice.tokens, &slice.prompt_tokens, &slice.begin_ns, &slice.end_ns})
    *number = bytes.whole_number();
  return slice;
}

void write_meeting(ByteWriter& bytes, const Meeting& meeting) {
  bytes.number(static_cast<uint32_t>(meeting.executor));
  bytes.number(static_cast<uint32_t>(meeting.node));
  for (const int64_t number : {meeting.iteration, meeting.number, meeting.came_ns, meeting.went_on_ns}) bytes.number(number);
}

Meeting read_meeting(ByteReader& bytes) {
  Meeting meeting;
  meeting.executor = static_cast<int>(bytes.number<uint32_t>());
  meeting.node = static_cast<int>(bytes.number<uint32_t>());
  for (int64_t* number : {&meeting.iteration, &meeting.number, &meeting.came_ns, &meeting.went_on_ns})
    *number = bytes.whole_number();
  return meeting;
}

}  // namespace

std::string bytes_of(const RankSlices& piece) {
  ByteWriter bytes;
  for (const int64_t number : {int64_t{piece.rank}, piece.begin_ns, piece.error_ns, piece.left_out}) bytes.number(number);
  bytes.number(uint64_t{piece.slices.size()});
  for (const Slice& slice : piece.slices) write_slice(bytes, slice);
  bytes.number(uint64_t{piece.meetings.size()});
  for (const Meeting& meeting : piece.meetings) write_meeting(bytes, meeting);
  return bytes.take();
}

RankSlices rank_slices_from(std::string_view text) {
  ByteReader bytes(text);
  RankSlices piece;
  piece.rank = static_cast<int>(bytes.whole_number());
  for (int64_t* number : {&piece.begin_ns, &piece.error_ns, &piece.left_out}) *number = bytes.whole_number();
  for (auto left = bytes.number<uint64_t>(); left > 0; --left) piece.slices.push_back(read_slice(bytes));
  for (auto left = bytes.number<uint64_t>(); left > 0; --left) piece.meetings.push_back(read_meeting(bytes));
  bytes.expect_end();
  return piece;
}

RankTrace::RankTrace(int rank, size_t executors, int64_t begin_ns)
    : rank_(rank),
      begin_ns_(begin_ns),
      rows_(
          executors, [] {}, kMostChunks) {}

void RankTrace::met(const Meeting& meeting) {
  const std::lock_guard lock(mutex_);
  if (meetings_.size() < kMostMeetings) meetings_.push_back(meeting);
}

std::string RankTrace::take(const std::optional<ClockOffset>& offset) {
  if (!offset) return {};
  RankSlices piece{.rank = rank_,
                   .begin_ns = begin_ns_ + offset->ns,
                   .error_ns = offset->error_ns,
                   .left_out = rows_.left_out(),
                   .slices = {},
                   .meetings = {}};
  rows_.take(/*also_last=*/true,
             [&](std::span<const Slice> slices) { piece.slices.insert(piece.slices.end(), slices.begin(), slices.end()); });
  {
    const std::lock_guard lock(mutex_);
    piece.meetings.swap(meetings_);
  }
  return bytes_of(piece);
}

}  // namespace sluice::engine
