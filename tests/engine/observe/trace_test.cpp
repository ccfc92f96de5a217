#include "engine/observe/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "engine/observe/trace_cut.h"
#include "tests/files/faulty_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

Slice batch(int64_t iteration, int64_t begin_ms, int64_t micro_batch = 0) {
  return {.iteration = iteration, .micro_batch = micro_batch, .begin_ns = begin_ms * kMs, .end_ns = (begin_ms + 1) * kMs};
}

Slice step(int64_t begin_ms) { return {.begin_ns = begin_ms * kMs, .end_ns = (begin_ms + 1) * kMs}; }

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    plan_.executors.push_back({.name = "cpu"});
    plan_.nodes.emplace_back().name = "train";
  }

  TraceWriter opened(int64_t begin_ns = 0) {
    return {path(), plan_, begin_ns, [] { FAIL(); }, disk()};
  }

  std::filesystem::path path() const { return folder_.path() / "trace.json"; }

  // Of the slices of a process, in milliseconds.
  std::vector<double> begins_of(int pid) const {
    std::vector<double> begins;
    for (const Json& event : parse_json(read_file(path()), "trace.json")) {
      if (event.at("ph") == "X" && event.at("pid") == pid) begins.push_back(event.at("ts").get<double>() * 1e-3);
    }
    return begins;
  }

  TemporaryFolder folder_;
  Plan plan_{};
};

std::vector<Slice> taken(SliceRows& rows) {
  std::vector<Slice> all;
  rows.take(/*also_last=*/true, [&](std::span<const Slice> slices) { all.insert(all.end(), slices.begin(), slices.end()); });
  return all;
}

TEST(SliceRows, MakeOneOfStepsThatFollowEachOther) {
  SliceRows rows(1, [] {});
  for (const int64_t begin : {0, 1, 5}) rows.ended(step(begin));
  rows.ended(batch(0, 7));
  const std::vector<Slice> slices = taken(rows);
  ASSERT_THAT(slices, SizeIs(3));
  EXPECT_EQ(slices[0].end_ns, 2 * kMs);
  EXPECT_EQ(slices[1].begin_ns, 5 * kMs);
  EXPECT_THAT(taken(rows), IsEmpty());
}

TEST(SliceRows, LeaveOutWhatThereIsNoRoomFor) {
  int full = 0;
  SliceRows rows(
      1, [&] { ++full; }, /*most_full=*/2);
  for (int64_t i = 0; i < 5 * 512; ++i) rows.ended(batch(0, i));
  EXPECT_EQ(full, 5);
  EXPECT_EQ(rows.left_out(), 3 * 512);
  EXPECT_EQ(taken(rows).size(), 2u * 512);
  rows.ended(batch(0, 0));
  EXPECT_THAT(taken(rows), SizeIs(1)) << "there is room again";
}

TEST(RankTrace, KeepsItsSlicesUntilTheClockOfRank0IsKnown) {
  RankTrace trace(/*rank=*/3, /*executors=*/1, /*begin_ns=*/100);
  trace.ended(batch(5, 1, 7));
  EXPECT_EQ(trace.take({}), "");
  const RankSlices piece = rank_slices_from(trace.take(ClockOffset{.ns = 20, .error_ns = 4}));
  EXPECT_EQ(piece.rank, 3);
  EXPECT_EQ(piece.begin_ns, 120);
  EXPECT_EQ(piece.error_ns, 4);
  ASSERT_THAT(piece.slices, SizeIs(1));
  EXPECT_EQ(piece.slices[0].iteration, 5);
  EXPECT_EQ(piece.slices[0].micro_batch, 7);
  EXPECT_EQ(piece.slices[0].end_ns, 2 * kMs);
  EXPECT_THROW(rank_slices_from("something else"), InternalError);
}

TEST(RankTrace, GivesWhereAllRanksCame) {
  RankTrace trace(/*rank=*/3, /*executors=*/1, /*begin_ns=*/100);
  trace.met({.executor = 2, .node = 4, .iteration = 5, .number = 6, .came_ns = 7, .went_on_ns = 8});
  const RankSlices piece = rank_slices_from(trace.take(ClockOffset{}));
  ASSERT_THAT(piece.meetings, SizeIs(1));
  const Meeting& meeting = piece.meetings[0];
  EXPECT_THAT((std::vector<int64_t>{meeting.executor, meeting.node, meeting.iteration, meeting.number, meeting.came_ns,
                                    meeting.went_on_ns}),
              ElementsAre(2, 4, 5, 6, 7, 8));
  EXPECT_THAT(rank_slices_from(trace.take(ClockOffset{})).meetings, IsEmpty()) << "once";
}

// From the rank that came last to the one that waited, on one clock; and what a resume cuts off has no arrow.
TEST_F(TraceTest, HasAnArrowFromWhoCameLastToWhoWaited) {
  plan_.ranks = 2;
  TraceWriter trace = opened();
  trace.met({.iteration = 0, .came_ns = 2 * kMs, .went_on_ns = 9 * kMs});
  trace.met({.iteration = 1, .came_ns = 12 * kMs, .went_on_ns = 13 * kMs});
  trace.add({.rank = 1,
             .slices = {},
             .meetings = {{.iteration = 0, .came_ns = 3 * kMs, .went_on_ns = 4 * kMs},
                          {.iteration = 1, .came_ns = 1 * kMs, .went_on_ns = 10 * kMs}}},
            /*shift_ns=*/5 * kMs, "rank 1");
  trace.close();
  const auto arrows = [&] {
    std::vector<std::string> ends;
    for (const Json& event : parse_json(read_file(path()), "trace.json")) {
      if (event.at("ph") != "s" && event.at("ph") != "f") continue;
      ends.push_back(event.at("ph").get<std::string>() + " " + event.at("id").get<std::string>() + " pid " +
                     event.at("pid").dump() + " at " + event.at("ts").dump());
    }
    return ends;
  };
  EXPECT_THAT(arrows(), ElementsAre("s 0.0.0.0 pid 2 at 8000.0", "f 0.0.0.0 pid 1 at 9000.0", "s 1.0.0.1 pid 1 at 12000.0",
                                    "f 1.0.0.1 pid 2 at 15000.0"));
  EXPECT_EQ(cut_trace(path(), /*iterations=*/1, disk()), 9 * kMs);
  opened(9 * kMs).close();
  EXPECT_THAT(arrows(), SizeIs(2));
}

TEST_F(TraceTest, OfOneRankNamesNoProcess) {
  TraceWriter trace = opened();
  trace.ended(batch(0, 3));
  trace.close();
  EXPECT_THAT(begins_of(1), ElementsAre(3));
  EXPECT_THAT(read_file(path()), ::testing::Not(HasSubstr("process")));
}

TEST_F(TraceTest, HasAProcessARankOnOneClock) {
  TraceWriter trace = opened();
  trace.name_own_process("rank 0 (n1, pid 4)");
  trace.ended(batch(0, 3));
  for (const int64_t iteration : {0, 1}) {
    trace.add({.rank = 1, .error_ns = 120'000, .slices = {batch(iteration, 10 * iteration)}}, /*shift_ns=*/2 * kMs,
              "rank 1 (n2, pid 5)");
  }
  trace.close();
  EXPECT_THAT(begins_of(1), ElementsAre(3));
  EXPECT_THAT(begins_of(2), ElementsAre(2, 12));
  std::vector<std::string> names, labels;
  int threads = 0;
  for (const Json& event : parse_json(read_file(path()), "trace.json")) {
    if (event.at("name") == "process_name") names.push_back(event.at("args").at("name"));
    if (event.at("name") == "process_labels") labels.push_back(event.at("args").at("labels"));
    if (event.at("name") == "thread_name") ++threads;
  }
  EXPECT_THAT(names, ElementsAre("rank 0 (n1, pid 4)", "rank 1 (n2, pid 5)"));
  EXPECT_THAT(labels, ElementsAre("on the clock of rank 0, within 0.120 ms"));
  EXPECT_EQ(threads, 2);
}

TEST_F(TraceTest, SaysThatAnotherRankHadMoreThanThereWasRoomFor) {
  TraceWriter trace = opened();
  for (int piece = 0; piece < 2; ++piece) trace.add({.rank = 1, .left_out = 512, .slices = {batch(piece, piece)}}, 0, "rank 1");
  trace.close();
  const std::string text = read_file(path());
  EXPECT_TRUE(parse_json(text, "trace.json").is_array());
  const size_t said = text.find("512 slices left out");
  EXPECT_NE(said, std::string::npos);
  EXPECT_EQ(text.find("left out", said + 20), std::string::npos) << "once";
}

TEST_F(TraceTest, RefusesSlicesOfAnotherPlan) {
  TraceWriter trace = opened();
  Slice strange = batch(0, 0);
  strange.node = 1;
  EXPECT_THROW(trace.add({.rank = 1, .slices = {strange}}, 0, "rank 1"), InternalError);
}

// Neither closed nor cut by a run that goes on: what a reader sees of a run that was killed.
TEST_F(TraceTest, OfAllRanksIsCutToTheIterationsThatStay) {
  {
    TraceWriter trace = opened();
    trace.name_own_process("rank 0");
    for (const int64_t iteration : {0, 1}) {
      trace.ended(batch(iteration, 10 * iteration));
      trace.add({.rank = 1, .slices = {batch(iteration, 10 * iteration + 1)}}, 0, "rank 1");
    }
    trace.flush();
  }
  const int64_t end_ns = cut_trace(path(), /*iterations=*/1, disk());
  EXPECT_EQ(end_ns, 2 * kMs);
  TraceWriter trace = opened(end_ns);
  trace.name_own_process("rank 0");
  trace.add({.rank = 1, .slices = {batch(1, 1)}}, 0, "rank 1");
  trace.close();
  EXPECT_THAT(begins_of(1), ElementsAre(0));
  EXPECT_THAT(begins_of(2), ElementsAre(1, 3));
}

TEST_F(TraceTest, IsAsItWasWhereTheDiskIsFullWhenItIsCut) {
  opened().close();
  const std::string before = read_file(path());
  for (const int64_t at : {0, 1, 2}) {
    FaultyFileSystem full({.kind = Fault::Kind::kDiskIsFull, .at = at, .error = ENOSPC});
    EXPECT_THROW(cut_trace(path(), /*iterations=*/1, full), UserError) << at;
    EXPECT_EQ(read_file(path()), before) << at;
    EXPECT_THAT(entries_of(folder_.path()), ElementsAre(path())) << at;
  }
}

}  // namespace
}  // namespace sluice::engine::trace_test
