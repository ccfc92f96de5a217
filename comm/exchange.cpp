#include "comm/exchange.h"

namespace sluice::comm {
namespace {

constexpr int kTagOfExchanges = 4;  // those before are of sums, of what is gathered, and of announcements

}  // namespace

// Where something is to go is said first, for all: what is sent before that waits for a reply.
void exchange(Transfers& transfers, const std::vector<engine::GradientGroup::Stretch>& out,
              const std::vector<engine::GradientGroup::Stretch>& in) {
  for (const auto& stretch : in)
    if (stretch.count > 0) transfers.receive(0, stretch.values, stretch.count, stretch.rank, kTagOfExchanges);
  for (const auto& stretch : out)
    if (stretch.count > 0) transfers.send(0, stretch.values, stretch.count, stretch.rank, kTagOfExchanges);
  transfers.wait(0);
}

}  // namespace sluice::comm
