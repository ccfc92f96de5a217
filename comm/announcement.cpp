#include "comm/announcement.h"

#include <array>
#include <bit>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::comm {
namespace {

constexpr int kTagOfAnnouncements = 3;  // those before are of sums and of what is gathered
constexpr size_t kWords = 6;

// Transfers take floats along as they are, whatever their bits mean.
using Words = std::array<float, kWords>;

float word(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

uint64_t bits(float word) { return std::bit_cast<uint32_t>(word); }

Words words_of(const Announcement& a) {
  const auto floats = static_cast<uint64_t>(a.floats), sequence = static_cast<uint64_t>(a.sequence);
  return {word(static_cast<uint64_t>(a.operation)),
          word(floats),
          word(floats >> 32),
          word(a.shares),
          word(sequence),
          word(sequence >> 32)};
}

Announcement announcement_of(const Words& words) {
  return {.operation = static_cast<Announcement::Operation>(bits(words[0])),
          .floats = static_cast<int64_t>(bits(words[1]) | bits(words[2]) << 32),
          .shares = static_cast<uint32_t>(bits(words[3])),
          .sequence = static_cast<int64_t>(bits(words[4]) | bits(words[5]) << 32)};
}

const char* name_of(Announcement::Operation operation) {
  switch (operation) {
    case Announcement::Operation::kAllReduce:
      return "all_reduce";
    case Announcement::Operation::kReduceScatter:
      return "reduce_scatter";
    case Announcement::Operation::kAllGather:
      return "all_gather";
    case Announcement::Operation::kExchange:
      return "exchange";
  }
  return "something unknown";
}

}  // namespace

std::string text_of(const Announcement& announcement) {
  return std::string(name_of(announcement.operation)) + " of " + plural(announcement.floats, "float") + ", operation " +
         std::to_string(announcement.sequence);
}

void announce(engine::World world, Transfers& transfers, const Announcement& announcement) {
  if (world.size == 1) return;
  const int before = (world.rank + world.size - 1) % world.size, next = (world.rank + 1) % world.size;
  const Words own = words_of(announcement);
  Words theirs{};
  transfers.receive(0, theirs.data(), kWords, before, kTagOfAnnouncements);
  transfers.send(0, own.data(), kWords, next, kTagOfAnnouncements);
  transfers.wait(0);
  const Announcement other = announcement_of(theirs);
  if (other == announcement) return;
  throw InternalError("rank " + std::to_string(before) + " began " + text_of(other) + " of the group, where rank " +
                      std::to_string(world.rank) + " began " + text_of(announcement));
}

}  // namespace sluice::comm
