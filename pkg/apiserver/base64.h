// Base64 as kubeconfig and ExecCredential have it (standard alphabet, padded). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shunt::apiserver {

std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);  // line breaks are skipped

}  // namespace shunt::apiserver
