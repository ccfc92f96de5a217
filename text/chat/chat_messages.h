#pragma once

#include <string>

#include "base/json/json.h"

namespace sluice::text {

/// Throws UserError under `name` when `messages` is no conversation (an array of objects, not empty), or the rest is not what a
/// template may expect.
void check_chat(const Json& messages, const Json& tools, const Json& documents, const Json& variables, const std::string& name);

/// `messages` as transformers shows them to a template: without the keys that are null, and with the reasoning of a message under
/// the names reasoning_content and thinking whichever of reasoning_content, thinking and reasoning it came under.
Json prepared_messages(const Json& messages);

/// Appends a mark to the text under `key` of the last message and gives that text. Throws UserError when there is none, or when
/// the template does not mention the key.
std::string mark_end_of_final_message(Json& messages, const std::string& key, const std::string& source, const std::string& name);

/// `rendered` up to that mark. Throws UserError when the template has not printed `final_text` or the mark.
std::string cut_at_mark(std::string rendered, const std::string& final_text, const std::string& name);

}  // namespace sluice::text
