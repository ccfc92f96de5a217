#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/data_look.h"

namespace sluice::nodes {

/// Before a run: reports which of `texts`, the value of `key`, hold the name of a special token of the model beside other text.
/// A special token is no text and found by its name alone (text::ResponseText), so such a text is never found where it stands.
/// Reads the tokenizer if there are any texts; whatever is wrong with that its users say.
void refuse_special_in_text(const std::string& model, std::string_view key, const std::vector<std::string>& texts,
                            engine::DataLook& look);

}  // namespace sluice::nodes
