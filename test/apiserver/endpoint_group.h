// The slices of one Service and address type, changed as the EndpointSlice controller changes them:
// new endpoints go where something is written anyway, then where there is room, then into a new
// slice; a slice that ran empty goes, unless it is the last one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/apiserver/rfc3339.h"
#include "test/apiserver/store.h"

namespace shunt::test_api {

class EndpointGroup {
 public:
  // `keys`: of slices; those that are gone by now are left out.
  EndpointGroup(Store& store, const std::vector<std::string>& keys);

  std::string address_type() const;
  std::size_t size() const;

  void add(std::string endpoint);
  // `edit` answers the new text; an unchanged one leaves the slice alone.
  using Edit = std::function<std::string(const std::string& endpoint)>;
  void edit_each(const Edit& edit);
  void remove_if(const std::function<bool(const std::string& endpoint)>& gone);
  void for_each(const std::function<void(const std::string& endpoint)>& visit) const;

  // Writes what changed; answers how many writes. The keys afterwards are `keys()`.
  std::size_t commit(UnixTime now);
  std::vector<std::string> keys() const;

 private:
  struct Slice {
    std::string key;
    std::string text;  // as stored; its endpoints are below
    std::vector<std::string> endpoints;
    bool changed = false;
    bool is_new = false;
  };
  Slice& slice_with_room();
  void write(Slice& slice, UnixTime now);

  Store& store_;
  std::vector<Slice> slices_;
};

// Replaces the text of a slice, as the controller would; false when the slice is gone.
bool write_slice(Store& store, const std::string& key, const std::string& text, UnixTime now);

}  // namespace shunt::test_api
