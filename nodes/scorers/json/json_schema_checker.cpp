#include "nodes/scorers/json/json_schema_checker.h"

#include <functional>
#include <string>
#include <utility>

#define VALIJSON_USE_EXCEPTIONS 1  // else a schema that is wrong ends the program
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/error.h"
#include "base/json.h"
#include "nodes/scorers/json/json_schema_document.h"

namespace sluice::nodes {
namespace {

using nlohmann::json;
using valijson::adapters::NlohmannJsonAdapter;

using TextCheck = std::function<bool(const std::string&)>;

// Values that are no strings are none of its business.
class TextConstraint final : public valijson::constraints::PolyConstraint {
 public:
  explicit TextConstraint(TextCheck check) : check_(std::make_shared<const TextCheck>(std::move(check))) {}

  bool validate(const valijson::adapters::Adapter& target, const std::vector<std::string>&,
                valijson::ValidationResults*) const override {
    return !target.isString() || (*check_)(target.asString());
  }

 private:
  Constraint* cloneInto(void* place) const override { return new (place) TextConstraint(*this); }
  size_t sizeOf() const override { return sizeof(TextConstraint); }

  std::shared_ptr<const TextCheck> check_;
};

class TextConstraintBuilder final : public valijson::ConstraintBuilder {
 public:
  explicit TextConstraintBuilder(std::function<TextCheck(const std::string&)> check_of) : check_of_(std::move(check_of)) {}

  valijson::constraints::Constraint* make(const valijson::adapters::Adapter& value) const override {
    return new TextConstraint(check_of_(value.asString()));
  }

 private:
  std::function<TextCheck(const std::string&)> check_of_;
};

TextCheck pattern_check(const std::string& pattern) {
  auto regex = std::make_shared<const text::Regex>(schema_pattern(pattern));
  return [regex](const std::string& text) { return !regex->find_all(text).empty(); };
}

TextCheck format_check(const std::string& format) {
  return [format](const std::string& text) { return has_format(text, format); };
}

json document_of(const std::filesystem::path& path) {
  try {
    json document = read_json(path);
    make_integers(document);
    return document;
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    if (!problem.where.known()) throw;
    const std::string place = std::to_string(problem.where.line) + ":" + std::to_string(problem.where.column);
    throw UserError(path.string() + ":" + place + ": " + problem.message + ": " + problem.caret);
  }
}

}  // namespace

struct JsonSchemaChecker::Schema {
  valijson::Schema schema;
};

JsonSchemaChecker::JsonSchemaChecker(const std::filesystem::path& path) : schema_(std::make_unique<Schema>()) {
  json document = document_of(path);
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.addConstraintBuilder(kPatternCheck, new TextConstraintBuilder(pattern_check));  // the parser owns them
  parser.addConstraintBuilder(kFormatCheck, new TextConstraintBuilder(format_check));
  try {
    prepare_schema(document);
    parser.populateSchema(NlohmannJsonAdapter(document), schema_->schema);
  } catch (const UserError& error) {
    throw UserError(path.string() + " " + error.problems().front().message, error.problems().front().help);
  } catch (const std::exception& error) {
    throw UserError(path.string() + " is no JSON schema (draft 7): " + error.what());
  }
}

JsonSchemaChecker::~JsonSchemaChecker() = default;

bool JsonSchemaChecker::accepts(std::string_view text) const {
  json value;
  try {
    value = parse_json(text, "the response");
  } catch (const UserError&) {
    return false;
  }
  make_integers(value);
  return valijson::Validator().validate(schema_->schema, NlohmannJsonAdapter(value), nullptr);
}

}  // namespace sluice::nodes
