#include "text/jinja/token_stream.h"

namespace sluice::text::jinja {

bool TokenStream::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

bool TokenStream::skip_operator(std::string_view symbol) {
  if (!current().is_operator(symbol)) return false;
  next();
  return true;
}

const Token& TokenStream::expect(TokenType type, const char* what) {
  if (!current().is(type)) fail(std::string("expected ") + what + ", not " + describe(current()));
  return next();
}

void TokenStream::expect_operator(std::string_view symbol) {
  if (!skip_operator(symbol)) fail("expected '" + std::string(symbol) + "', not " + describe(current()));
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) fail("expected '" + std::string(name) + "', not " + describe(current()));
}

void TokenStream::fail(const std::string& message, int line) const {
  throw SyntaxFailure{message, line > 0 ? line : current().line};
}

}  // namespace sluice::text::jinja
