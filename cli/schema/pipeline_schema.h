#pragma once

#include "base/json/json.h"
#include "engine/contract/registry.h"

namespace sluice::cli {

/// The JSON Schema (draft 7) of pipeline files, as editors and taplo read it: everything that the tables of the language and the
/// contracts of the registry say of single keys and values. What needs more than one value at a time (names of nodes, columns,
/// settings that go together, files that must be there) `validate` finds. A file that extends another may lack what is required
/// and remove what is inherited; one that names plugins may name types that the registry does not have.
Json pipeline_schema(const engine::Registry& registry);

}  // namespace sluice::cli
