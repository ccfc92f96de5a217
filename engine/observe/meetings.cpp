#include "engine/observe/meetings.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr size_t kMostOpen = 1 << 14;

}  // namespace

std::vector<Meetings::Arrow> Meetings::add(int rank, const Meeting& meeting) {
  const Key key{.iteration = meeting.iteration, .node = meeting.node, .number = meeting.number};
  std::vector<Told>& told = open_[key];
  told.push_back({rank, meeting});
  std::vector<Arrow> arrows;
  if (told.size() < ranks_) {
    if (open_.size() > kMostOpen) open_.erase(open_.begin());
    return arrows;
  }
  const std::vector<Told> all = std::move(open_.extract(key).mapped());
  const Told& last = *std::ranges::max_element(all, {}, [](const Told& one) { return one.meeting.came_ns; });
  for (const Told& one : all) {
    if (&one == &last || one.meeting.went_on_ns < last.meeting.came_ns) continue;
    arrows.push_back({.from = {last.rank, last.meeting.executor, last.meeting.came_ns},
                      .to = {one.rank, one.meeting.executor, one.meeting.went_on_ns}});
  }
  std::ranges::sort(arrows, {}, [](const Arrow& arrow) { return arrow.to.rank; });
  return arrows;
}

}  // namespace sluice::engine
