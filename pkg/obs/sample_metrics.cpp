#include <cstdio>

#include "obs/sample.h"

int main() {
  using shunt::net::Family;
  shunt::obs::Metrics metrics(
      {"0.1.0", "abc", "2026-01-02"}, {Family::IPv4, Family::IPv6}, shunt::obs::sample_suppliers());
  for (const Family family : {Family::IPv4, Family::IPv6}) {
    shunt::obs::tell_everything(metrics, family);
  }
  const std::string text = metrics.text() + metrics.slis();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
