#include "comm/rank_loss.h"

#include <string_view>

#include "base/numbers/bytes.h"
#include "base/text/printable.h"
#include "base/text/strings.h"

namespace sluice::comm {
namespace {

constexpr size_t kShownOfALoss = 300;

// Of an error its first line: those below say where to look on that rank.
std::string reason_of(std::string_view why) {
  constexpr std::string_view kError = "error: ";
  std::string_view line = trim(first_line(why));
  if (line.starts_with(kError)) line.remove_prefix(kError.size());
  return shortened(line, kShownOfALoss);
}

std::string what_came(const RankLoss& loss) {
  switch (loss.how) {
    case RankLoss::How::kSilent:
      return " gave no sign for " + fixed(loss.seconds, 0) + " s";
    case RankLoss::How::kClosed:
      return " has ended without a word";
    case RankLoss::How::kFailed:
      return " failed: " + reason_of(loss.why);
  }
  return {};
}

}  // namespace

std::string text_of(const RankLoss& loss) {
  const std::string who = "rank " + std::to_string(loss.rank) + " (host " + loss.host + ", pid " + std::to_string(loss.pid) + ")";
  const bool says_where = loss.how != RankLoss::How::kFailed && !loss.doing.empty();
  return who + what_came(loss) + (says_where ? "; it was last " + shortened(loss.doing, kShownOfALoss) : "");
}

std::string bytes_of(const RankLoss& loss) {
  ByteWriter bytes;
  bytes.number(int64_t{loss.rank});
  bytes.text(loss.host);
  bytes.number(loss.pid);
  bytes.number(static_cast<uint8_t>(loss.how));
  bytes.number(loss.seconds);
  bytes.text(loss.why);
  bytes.text(loss.doing);
  return bytes.take();
}

RankLoss loss_from(const std::string& text) {
  ByteReader bytes(text);
  RankLoss loss;
  loss.rank = static_cast<int>(bytes.whole_number());
  loss.host = bytes.text();
  loss.pid = bytes.whole_number();
  const auto how = bytes.number<uint8_t>();
  SLUICE_CHECK(how <= static_cast<uint8_t>(RankLoss::How::kFailed), "bytes that are no loss of a rank");
  loss.how = static_cast<RankLoss::How>(how);
  loss.seconds = bytes.real_number();
  loss.why = bytes.text();
  loss.doing = bytes.text();
  bytes.expect_end();
  return loss;
}

}  // namespace sluice::comm
