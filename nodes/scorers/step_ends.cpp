#include "nodes/scorers/step_ends.h"

#include "base/text/strings.h"
#include "text/tokenizer/stream_decoder.h"

namespace sluice::nodes {
namespace {

bool is_blank(std::string_view text) { return trim(text).empty(); }

}  // namespace

std::vector<size_t> step_ends(const text::Tokenizer& tokenizer, std::span<const int64_t> ids, const std::string& separator) {
  text::StreamDecoder all(tokenizer), visible(tokenizer, /*skip_special=*/true);
  std::vector<size_t> ends;
  std::string recent;             // text in which a separator may still become complete
  bool step_has_content = false;  // since the last separator
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string shown = visible.push(ids[i]);
    recent += all.push(ids[i]);
    const size_t last = recent.rfind(separator);
    if (last == std::string::npos) {
      step_has_content = step_has_content || !is_blank(shown);
    } else {
      if (step_has_content || !is_blank(std::string_view(recent).substr(0, recent.find(separator)))) ends.push_back(i);
      recent.erase(0, last + separator.size());
      step_has_content = !is_blank(recent);
    }
    if (recent.size() >= separator.size()) recent.erase(0, recent.size() - separator.size() + 1);
  }
  if (!is_blank(visible.finish())) step_has_content = true;
  if (step_has_content && !ids.empty() && (ends.empty() || ends.back() + 1 < ids.size())) ends.push_back(ids.size() - 1);
  return ends;
}

}  // namespace sluice::nodes
