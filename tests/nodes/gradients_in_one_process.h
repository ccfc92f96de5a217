#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/numbers/float_range.h"
#include "base/numbers/sum_tree.h"
#include "engine/contract/world/gradient_group.h"
#include "engine/contract/world/world.h"

namespace sluice::nodes::testing {

/// The gradient groups of all ranks of a run, in one thread: an operation is carried out when the last rank asks for it, in the
/// order in which each has. Not thread-safe.
class GradientsInOneProcess {
 public:
  GradientsInOneProcess(int ranks, int slots) : slots_(slots) {
    for (int rank = 0; rank < ranks; ++rank) groups_.push_back(std::make_unique<OfRank>(*this));
  }

  engine::GradientGroup* rank(int rank) { return groups_[static_cast<size_t>(rank)].get(); }

  /// Operations that a rank has asked for so far.
  int asked_by(int rank) const { return groups_[static_cast<size_t>(rank)]->count; }

 private:
  using Stretches = std::vector<engine::GradientGroup::Stretch>;

  struct Asked {
    std::vector<float*> parts;
    int64_t count = 0;
    std::vector<int64_t> begins;                                    // of an all_gather()
    std::optional<std::pair<Stretches, Stretches>> exchanged = {};  // out and in
    bool whole = false;                                             // of an all_reduce()
    engine::GradientGroup::Added added;
    std::function<void()> done;
  };

  class OfRank final : public engine::GradientGroup {
   public:
    explicit OfRank(GradientsInOneProcess& all) : all_(all) {}

    void all_reduce(std::span<float* const> parts, int64_t count, std::function<void()> done) override {
      ask({.parts = {parts.begin(), parts.end()}, .count = count, .whole = true, .done = std::move(done)});
    }
    void reduce_scatter(std::span<float* const> parts, int64_t count, Added added, std::function<void()> done) override {
      ask({.parts = {parts.begin(), parts.end()}, .count = count, .added = std::move(added), .done = std::move(done)});
    }
    void exchange(Stretches out, Stretches in, std::function<void()> done) override {
      ask({.exchanged = std::pair{std::move(out), std::move(in)}, .done = std::move(done)});
    }
    void all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) override {
      ask({.parts = {values}, .count = begins.back(), .begins = std::move(begins), .done = std::move(done)});
    }

    std::deque<Asked> asked;  // and not carried out
    int count = 0;

   private:
    void ask(Asked what) {
      asked.push_back(std::move(what));
      ++count;
      all_.carry_out();
    }

    GradientsInOneProcess& all_;
  };

  void carry_out() {
    std::vector<Asked> all;
    if (std::ranges::any_of(groups_, [](const auto& group) { return group->asked.empty(); })) return;
    for (const auto& group : groups_) {
      all.push_back(std::move(group->asked.front()));
      group->asked.pop_front();
    }
    if (all.front().exchanged)
      exchange(all);
    else if (all.front().begins.empty())
      add(all);
    else
      gather(all);
    for (const Asked& one : all)
      if (one.done) one.done();
  }

  void add(std::vector<Asked>& all) const {
    const auto ranks = static_cast<int>(all.size());
    const int64_t count = all.front().count;
    std::vector<SlotRange> ranges;
    std::vector<std::vector<float>> values;
    for (int rank = 0; rank < ranks; ++rank) {
      Asked& one = all[static_cast<size_t>(rank)];
      const auto own = subtrees_of(slots_, engine::World{rank, ranks, slots_}.mine());
      ranges.insert(ranges.end(), own.begin(), own.end());
      for (float* part : one.parts) {
        values.emplace_back(part, part + count);
        std::fill(part, part + count, 0.0F);
      }
    }
    for (const auto& [into, from] : tree_additions(slots_, ranges))
      move_sum(values[static_cast<size_t>(into)].data(), values[static_cast<size_t>(from)].data(), count);
    for (int rank = 0; rank < ranks; ++rank) give(all[static_cast<size_t>(rank)], values.front(), rank, ranks);
  }

  static void give(const Asked& one, const std::vector<float>& sum, int rank, int ranks) {
    const FloatRange range = one.whole ? FloatRange{0, one.count} : owned_floats(one.count, rank, ranks);
    std::copy(sum.begin() + range.begin, sum.begin() + range.end, one.parts[0] + range.begin);
    for (int64_t begin = range.begin; one.added && begin < range.end; begin += kFloatsOfABlock)
      one.added(begin, {one.parts[0] + begin, static_cast<size_t>(std::min(kFloatsOfABlock, range.end - begin))});
  }

  // What others give a rank, all at once.
  static void exchange(std::vector<Asked>& all) {
    for (size_t from = 0; from < all.size(); ++from) {
      for (const auto& out : all[from].exchanged->first) {
        const Stretches& into = all[static_cast<size_t>(out.rank)].exchanged->second;
        const auto in = std::ranges::find(into, static_cast<int>(from), &engine::GradientGroup::Stretch::rank);
        EXPECT_NE(in, into.end());
        EXPECT_EQ(in->count, out.count);
        std::memcpy(in->values, out.values, static_cast<size_t>(out.count) * sizeof(float));
      }
    }
  }

  static void gather(std::vector<Asked>& all) {
    for (size_t from = 0; from < all.size(); ++from) {
      const int64_t begin = all[from].begins[from], end = all[from].begins[from + 1];
      for (const Asked& to : all) {
        if (to.parts[0] != all[from].parts[0])
          std::copy(all[from].parts[0] + begin, all[from].parts[0] + end, to.parts[0] + begin);
      }
    }
  }

  const int slots_;
  std::vector<std::unique_ptr<OfRank>> groups_;
};

}  // namespace sluice::nodes::testing
