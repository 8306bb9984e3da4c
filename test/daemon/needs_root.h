// Network namespaces need root; a test that cannot have them says so.
#pragma once

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#define SHUNT_NEEDS_ROOT() \
  if (::geteuid() != 0) {  \
    SKIP("needs root");    \
  }                        \
  static_assert(true)
