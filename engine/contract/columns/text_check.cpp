#include "engine/contract/columns/text_check.h"

#include "base/error.h"
#include "base/text/shown_text.h"

namespace sluice::engine {

void TextCheck::look_at(const std::string& text) const {
  try {
    check(text);
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    throw UserError("node '" + node + "' cannot use " + column + " " + shown_text(text) + ": it " + problem.message,
                    problem.help);
  }
}

}  // namespace sluice::engine
