// A kernel that takes everything and remembers how much it was, not what: the fake table of
// test/fake copies itself at every transaction, which would drown what is counted here.
#pragma once

#include <memory>

#include "backend/nft/affinity_purger.h"
#include "backend/nft/transport.h"

namespace shunt::test {

class CountingTransport : public backend::nft::Transport {
 public:
  Result<backend::nft::TableState> read_table(net::Family) override {
    return backend::nft::TableState{};  // a bare node
  }
  Result<> read_elements(
      net::Family,
      const backend::nft::Set&,
      const std::function<void(backend::nft::Element&&)>&) override {
    return {};
  }
  Result<> find_elements(
      net::Family,
      const backend::nft::Set&,
      const backend::nft::KeyRuns&,
      const std::function<void(backend::nft::Element&&)>&) override {
    return {};
  }
  Result<> delete_elements(
      net::Family, const backend::nft::Set&, std::span<const backend::nft::Element>) override {
    return {};
  }
  Result<backend::Cost> commit(
      const backend::nft::Program&, const backend::nft::Transaction& transaction) override {
    return backend::Cost{1, transaction.changes.count, transaction.changes.count};
  }
};

class IdlePurger : public backend::nft::Purger {
 public:
  void purge(std::vector<backend::nft::Purge>) override {}
  bool idle() const override { return true; }
};

}  // namespace shunt::test
