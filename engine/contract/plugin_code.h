#pragma once

#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::engine {

[[noreturn]] inline void throw_failed_plugin(const std::string& what, const std::string& why) {
  const std::string said(first_line(why));  // some libraries append a stack
  throw UserError(
      Problem{.kind = "plugin-unusable", .where = {}, .message = what + ": " + said, .caret = {}, .notes = {}, .help = {}});
}

/// What `call` returns, which runs a plugin's code. What that throws and a user cannot be told becomes a UserError: "WHAT: ...".
/// Errors of ours and a lack of memory pass. On the thread of the caller.
template <class Call>
decltype(auto) call_plugin(const std::string& what, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const UserError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw_failed_plugin(what, error.what());
  } catch (...) {
    throw_failed_plugin(what, "it threw something that is no std::exception");
  }
}

}  // namespace sluice::engine
