#include "comm/verdict.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/numbers/bytes.h"

namespace sluice::comm {
namespace {

constexpr std::chrono::seconds kForTheVerdict{10};  // longer than rank 0 waits for others
constexpr std::chrono::seconds kForReaders{5};      // before rank 0 ends, and its store with it
constexpr std::chrono::milliseconds kBetweenLooks{10};

std::string written(const Verdict& verdict) {
  ByteWriter bytes;
  for (const std::string* text : {&verdict.problem, &verdict.help, &verdict.facts}) bytes.text(*text);
  return bytes.take();
}

Verdict verdict_of(const std::string& text) {
  ByteReader bytes(text);
  Verdict verdict;
  for (std::string* part : {&verdict.problem, &verdict.help, &verdict.facts}) *part = bytes.text();
  return verdict;
}

std::string key_of(const std::string& name, int rank) { return name + "/" + std::to_string(rank); }

std::vector<std::optional<std::string>> collect(StoreConnection& store, const std::string& name, int ranks,
                                                Clock::time_point until) {
  std::vector<std::optional<std::string>> handed_in;
  for (int rank = 0; rank < ranks; ++rank) handed_in.push_back(store.wait_for(key_of(name, rank), until));
  return handed_in;
}

void wait_for_readers(StoreConnection& store, const std::string& key, int64_t readers) {
  for (const auto until = Clock::now() + kForReaders; store.add(key, 0) < readers && Clock::now() < until;)
    std::this_thread::sleep_for(kBetweenLooks);
}

Verdict give(StoreConnection& store, int ranks, const std::string& name, Clock::time_point until, const Judge& judge) {
  const auto handed_in = collect(store, name, ranks, until);
  Verdict verdict = judge(handed_in);
  store.set(name + "/verdict", written(verdict));
  if (verdict.problem.empty()) return verdict;
  const auto came = std::ranges::count_if(handed_in, [](const auto& one) { return one.has_value(); });
  wait_for_readers(store, name + "/read", came - 1);
  return verdict;
}

Verdict take(StoreConnection& store, const std::string& name, Clock::time_point until) {
  const auto text = store.wait_for(name + "/verdict", until + kForTheVerdict);
  if (!text) throw UserError("rank 0 has not said whether all ranks are there", "look at what rank 0 said last");
  store.add(name + "/read", 1);
  return verdict_of(*text);
}

std::string checked_facts(const Verdict& verdict) {
  if (!verdict.problem.empty()) throw UserError(verdict.problem, verdict.help);
  return verdict.facts;
}

}  // namespace

std::string all_agree(StoreConnection& store, const engine::World& world, const std::string& name, const std::string& mine,
                      Clock::time_point until, const Judge& judge) {
  if (store.set_first(key_of(name, world.rank), mine) != mine) {
    throw UserError("two processes say that they are rank " + std::to_string(world.rank), "give each process another rank");
  }
  return checked_facts(world.rank == 0 ? give(store, world.size, name, until, judge) : take(store, name, until));
}

bool has_handed_in(StoreConnection& store, const std::string& name, int rank) {
  return store.wait_for(key_of(name, rank), Clock::now()).has_value();
}

std::string handed_in_by(StoreConnection& store, const std::string& name, int rank, Clock::time_point until) {
  const auto text = store.wait_for(key_of(name, rank), until);
  if (!text) throw UserError("rank " + std::to_string(rank) + " has not said what it is to run", "look at what it says");
  return *text;
}

std::string facts_of(StoreConnection& store, const std::string& name, Clock::time_point until) {
  return checked_facts(take(store, name, until));
}

}  // namespace sluice::comm
