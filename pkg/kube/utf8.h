// Whether bytes are text. JSON's parser checks by itself; protobuf leaves it to the reader.
#pragma once

#include <string_view>

namespace shunt::kube {

// Well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

}  // namespace shunt::kube
