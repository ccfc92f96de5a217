#include "nodes/models/weights/versions_together.h"

#include <optional>
#include <string_view>

#include "base/error.h"
#include "nodes/models/weights/received_weights.h"

namespace sluice::nodes {
namespace {

constexpr int kLeadsVersions = 0;  // the place of the rank that does
constexpr const char *kReceive = "receive ", *kTake = "take ", *kNoMore = "no more";

// What stands after the word in front; nothing: it is another word.
std::optional<int64_t> version_behind(const std::string& text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  return std::stoll(text.substr(word.size()));
}

}  // namespace

void VersionsLead::receive(int64_t version) { tell(kReceive + std::to_string(version)); }

void VersionsLead::let_take(int64_t version) { tell(kTake + std::to_string(version)); }

void VersionsLead::dismiss() {
  tell(kNoMore);
  group_.flush();
}

void VersionsLead::tell(const std::string& text) {
  const std::lock_guard lock(mutex_);
  for (int place = 1; place < group_.size(); ++place) group_.send(place, text, {});
}

void follow_versions(engine::PassGroup& group, ReceivedWeights& received, const engine::VersionReceived& told) {
  for (;;) {
    const std::string text = group.receive(kLeadsVersions, 0).text;
    if (text == kNoMore) return;
    if (const auto version = version_behind(text, kReceive))
      received.receive(*version, told);
    else if (const auto packed = version_behind(text, kTake))
      received.let_take(*packed);
    else
      throw InternalError("a word about versions that nobody says: " + text);
  }
}

}  // namespace sluice::nodes
