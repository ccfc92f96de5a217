#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/problem.h"
#include "engine/contract/model.h"

namespace sluice::nodes {

/// What is wrong with the table of one model, each at its key. Borrows what it is given.
class ModelProblems {
 public:
  ModelProblems(const engine::ModelSpec& spec, Problems& problems) : spec_(spec), problems_(problems) {}

  /// "model 'actor'"
  std::string model() const;

  /// Of the kind `kind` (engine/check/problem_kinds.cpp), at `key`.
  void report(const char* kind, const char* key, const std::string& message, const std::string& help,
              Severity severity = Severity::kError);

  /// A key with another value than its default, which another key makes mean nothing.
  void without_effect(const char* key, const std::string& why, const std::string& help);

  /// A key whose value cannot be.
  void unusable(const char* key, const std::string& message, const std::string& help, const std::vector<std::string>& notes = {});

  /// A key that has to be there.
  void missing(const char* key, const std::string& help);

  /// What was thrown. What of it has no place in a file of a model folder is told at the key.
  void thrown(const UserError& error, const char* kind, const char* key, Severity severity = Severity::kError);

 private:
  SourceSpan place_of(const char* key) const;  // of its value; of the table where it is not written
  void add(Problem problem);

  const engine::ModelSpec& spec_;
  Problems& problems_;
};

}  // namespace sluice::nodes
