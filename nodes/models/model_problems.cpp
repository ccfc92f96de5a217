#include "nodes/models/model_problems.h"

#include <utility>

namespace sluice::nodes {

std::string ModelProblems::model() const { return "model '" + spec_.name.text + "'"; }

SourceSpan ModelProblems::place_of(const char* key) const {
  const engine::Entry* entry = spec_.params.find(key);
  return entry != nullptr ? entry->value.where : spec_.params.where;
}

void ModelProblems::report(const char* kind, const char* key, const std::string& message, const std::string& help,
                           Severity severity) {
  add({.kind = kind, .where = place_of(key), .message = message, .caret = {}, .notes = {}, .help = help, .severity = severity});
}

void ModelProblems::without_effect(const char* key, const std::string& why, const std::string& help) {
  report("setting-without-effect", key, std::string(key) + " of " + model() + " has no effect: " + why, help);
}

void ModelProblems::unusable(const char* key, const std::string& message, const std::string& help,
                             const std::vector<std::string>& notes) {
  add({.kind = "setting-unusable", .where = place_of(key), .message = message, .caret = {}, .notes = notes, .help = help});
}

void ModelProblems::missing(const char* key, const std::string& help) {
  report("missing-key", key, "[models." + spec_.name.text + "] needs " + key, help);
}

void ModelProblems::thrown(const UserError& error, const char* kind, const char* key, Severity severity) {
  for (Problem problem : error.problems()) {
    problem.kind = kind;
    problem.severity = severity;
    if (!problem.where.known()) problem.where = place_of(key);
    add(std::move(problem));
  }
}

void ModelProblems::add(Problem problem) { problems_.push_back(std::move(problem)); }

}  // namespace sluice::nodes
