#include "base/error.h"

namespace sluice {

UserError::UserError(Problems problems) : std::runtime_error(render(problems)), problems_(std::move(problems)) {}

UserError::UserError(std::string message, std::string help)
    : UserError(Problem{.where = {}, .message = std::move(message), .caret = {}, .notes = {}, .help = std::move(help)}) {}

std::string message_of(const std::exception& error) {
  const auto* told = dynamic_cast<const UserError*>(&error);
  return told != nullptr ? told->message() : error.what();
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(message + " (" + condition + ", " + file + ":" + std::to_string(line) + ")");
}

}  // namespace sluice
