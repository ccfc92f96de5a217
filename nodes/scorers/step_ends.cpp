#include "nodes/scorers/step_ends.h"

#include "base/text/strings.h"
#include "text/tokenizer/response_text.h"

namespace sluice::nodes {
namespace {

bool is_blank(std::string_view text) { return trim(text).empty(); }

}  // namespace

std::vector<size_t> step_ends(const text::Tokenizer& tokenizer, std::span<const int64_t> ids, const std::string& separator) {
  text::ResponseText text(tokenizer);  // a step is a turn of it
  std::vector<size_t> ends;
  bool step_has_content = false;  // that came in the token which ended the one before
  for (size_t i = 0; i < ids.size(); ++i) {
    text.push(ids[i]);
    if (!text.has({separator})) continue;
    const std::string step = text.turn();
    const size_t first = step.find(separator), last = step.rfind(separator);  // in no text where a special token separates
    if (step_has_content || !is_blank(step.substr(0, first))) ends.push_back(i);
    step_has_content = last != std::string::npos && !is_blank(step.substr(last + separator.size()));
    text.begin_turn();
  }
  const bool within = step_has_content || !is_blank(text.turn());
  if (within && !ids.empty() && (ends.empty() || ends.back() + 1 < ids.size())) ends.push_back(ids.size() - 1);
  return ends;
}

}  // namespace sluice::nodes
