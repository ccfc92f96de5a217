#include "nodes/scorers/json/json_schema_checker.h"

#include <memory>
#include <string>
#include <utility>

#define VALIJSON_USE_EXCEPTIONS 1  // else a schema that is wrong ends the program
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "nodes/scorers/exact_json.h"
#include "nodes/scorers/json/json_schema_checks.h"
#include "nodes/scorers/json/json_schema_document.h"

namespace sluice::nodes {
namespace {

using nlohmann::json;
using valijson::adapters::NlohmannJsonAdapter;

// A keyword that json_schema_checks.h checks, as the library knows constraints.
class OwnConstraint final : public valijson::constraints::PolyConstraint {
 public:
  explicit OwnConstraint(ValueCheck check) : check_(std::make_shared<const ValueCheck>(std::move(check))) {}

  bool validate(const valijson::adapters::Adapter& target, const std::vector<std::string>&,
                valijson::ValidationResults*) const override {
    return (*check_)(target);
  }

 private:
  Constraint* cloneInto(void* place) const override { return new (place) OwnConstraint(*this); }
  size_t sizeOf() const override { return sizeof(OwnConstraint); }

  std::shared_ptr<const ValueCheck> check_;
};

class OwnConstraintBuilder final : public valijson::ConstraintBuilder {
 public:
  explicit OwnConstraintBuilder(std::string keyword) : keyword_(std::move(keyword)) {}

  valijson::constraints::Constraint* make(const valijson::adapters::Adapter& argument) const override {
    return new OwnConstraint(check_of(keyword_, argument));
  }

 private:
  std::string keyword_;
};

json document_of(const std::filesystem::path& path) {
  try {
    read_json(path);  // says what is wrong, and where
    return exact_json(read_file(path), WholeFloats::kBecomeIntegers);
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
  for (const char* keyword : kOwnKeywords)
    parser.addConstraintBuilder(own_name(keyword), new OwnConstraintBuilder(keyword));  // the parser owns it
  try {
    prepare_schema(document);
    parser.populateSchema(NlohmannJsonAdapter(document), schema_->schema);
  } catch (const UserError& error) {
    throw UserError(path.string() + " " + error.message(), error.help());
  } catch (const std::exception& error) {
    throw UserError(path.string() + " is no JSON schema (draft 7): " + error.what());
  }
}

JsonSchemaChecker::~JsonSchemaChecker() = default;

bool JsonSchemaChecker::accepts(std::string_view text) const {
  const Json read = exact_json(text, WholeFloats::kBecomeIntegers);
  if (read.is_discarded()) return false;
  const json value = read;  // its objects in the order of their keys
  return valijson::Validator().validate(schema_->schema, NlohmannJsonAdapter(value), nullptr);
}

}  // namespace sluice::nodes
