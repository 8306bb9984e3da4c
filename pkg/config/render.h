// Settings in effect as text: kube-proxy's v1alpha1 object with our section.
#pragma once

#include <map>
#include <string>

#include "config/value.h"

namespace shunt::config {

// A file that gives the same settings again.
std::string as_yaml(const Settings& settings);
// What /configz answers; our section stands beside kube-proxy's object.
std::string as_configz(const Settings& settings);
// Each field as JSON.
std::map<std::string, std::string> as_texts(const Settings& settings);

}  // namespace shunt::config
