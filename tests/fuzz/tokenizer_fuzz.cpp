#include "base/error.h"
#include "tests/fuzz/target.h"
#include "text/tokenizer/tokenizer.h"

// A tokenizer.json. One that is accepted must work on any text.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sluice::fuzz::InputFolder folder;
  const auto file = folder.write("tokenizer.json", sluice::fuzz::text_of(data, size));
  try {
    const auto tokenizer = sluice::text::Tokenizer::load(file);
    for (const std::string_view text :
         {"", "Hello world, 123  times!\n", " \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xff e\xcc\x81<s>"})
      tokenizer.decode(tokenizer.encode(text, true), true);
  } catch (const sluice::UserError&) {
  }
  return 0;
}
