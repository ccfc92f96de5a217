#include "engine/schedule/help/mutual_help.h"

#include <utility>

#include "base/error.h"
#include "engine/schedule/help/group_message.h"

namespace sluice::engine {

MutualHelp::MutualHelp(const Plan& plan, RankLinks links, std::function<void()> changed, GroupAsker::Events events)
    : links_(std::make_shared<GroupLinks>(plan, links, std::move(changed))),
      asker_(*links_, plan.paths.size(), std::move(events)),
      owner_(*links_, plan.paths.size()) {}

void MutualHelp::listen() {
  links_->listen([this](int from, const std::string& message) { hear(from, message); });
}

void MutualHelp::hear(int from, const std::string& message) {
  ByteReader bytes(message);
  const GroupMessage head = GroupMessage::read(bytes);
  switch (head.kind) {
    case GroupMessage::Kind::kAsk:
      return owner_.be_asked(from, head, bytes);
    case GroupMessage::Kind::kNone:
      return asker_.be_refused(from, head, bytes);
    case GroupMessage::Kind::kGive:
      return asker_.be_given(from, head, bytes);
    case GroupMessage::Kind::kMade:
      return owner_.hear_made(from, head, bytes);
    case GroupMessage::Kind::kDeclined:
      return owner_.hear_declined(from, head, bytes);
    case GroupMessage::Kind::kNews:
      return asker_.hear_news(from, head, bytes);
    case GroupMessage::Kind::kEndBehind:
      return asker_.hear_end_behind(head);
  }
  throw InternalError("a message about groups that is none");
}

void MutualHelp::forget() {
  links_->forget();
  asker_.forget();
}

}  // namespace sluice::engine
