#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/json/json.h"
#include "cli/model/commands.h"
#include "models/sample/sample.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {

/// Which sample it is: the `index`th of a row's.
struct SampleName {
  size_t row = 0;
  int64_t index = 0;
};

/// Prints samples one after the other. Not thread-safe.
class SamplePrinter {
 public:
  virtual ~SamplePrinter() = default;

  /// What the sample at hand has sampled so far.
  virtual void grown(std::span<const int64_t> tokens) = 0;

  /// The sample at hand is complete; the next call is about the next one. `prompt`: as it was given.
  virtual void ended(const SampleName& name, const Json& prompt, const models::SampleResult& result) = 0;

  /// All have ended.
  virtual void finish() {}
};

/// As the arguments ask for it: the text as it grows, or one JSON object a line, into a file or to standard output. Borrows both.
/// Throws UserError when the file cannot be written, then and later.
std::unique_ptr<SamplePrinter> sample_printer(const SampleArguments& arguments, const text::Tokenizer& tokenizer);

}  // namespace sluice::cli
