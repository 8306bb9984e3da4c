#include "test/apiserver/endpoint_group.h"

#include <algorithm>

#include "test/apiserver/endpoint_text.h"
#include "test/apiserver/json_text.h"
#include "test/apiserver/load_names.h"
#include "test/apiserver/load_objects.h"
#include "test/apiserver/write_api.h"

namespace shunt::test_api {
namespace {

TableRef slice_table() { return *resource_of_kind("EndpointSlice"); }

// The text of a new, still empty slice beside another one.
std::string sibling(const std::string& slice, const std::string& name) {
  const std::string_view old = member(slice, "metadata").value_or("{}");
  const std::string metadata = with_member(
      with_member(
          with_member(old, "name", json_string(name)), "uid", json_string(uid_of(mixed(1, name)))),
      "generation",
      "0");
  return with_member(slice, "metadata", metadata);
}

}  // namespace

bool write_slice(Store& store, const std::string& key, const std::string& text, UnixTime now) {
  const auto change = store.change(
      slice_table().index,
      key,
      [&](const ObjectPtr& current, std::uint64_t next) -> Answer<ObjectPtr> {
        return current ? make_object(stamped(text, now), next) : current;
      });
  return change.has_value() && change->after;
}

EndpointGroup::EndpointGroup(Store& store, const std::vector<std::string>& keys) : store_(store) {
  for (const std::string& key : keys) {
    if (const ObjectPtr object = store.find(slice_table().index, key)) {
      slices_.push_back(
          {key,
           object->body,
           elements(member(object->body, "endpoints").value_or("")),
           false,
           false});
    }
  }
}

std::string EndpointGroup::address_type() const {
  return slices_.empty() ? "" : text_member(slices_.front().text, "addressType");
}

std::size_t EndpointGroup::size() const {
  std::size_t out = 0;
  for_each([&](const std::string&) { ++out; });
  return out;
}

EndpointGroup::Slice& EndpointGroup::slice_with_room() {
  Slice* best = nullptr;
  for (Slice& slice : slices_) {
    const auto rank = [](const Slice& s) { return std::pair(s.changed, s.endpoints.size()); };
    if (slice.endpoints.size() < kMaxSliceEndpoints &&
        (best == nullptr || rank(slice) > rank(*best))) {
      best = &slice;
    }
  }
  if (best != nullptr) {
    return *best;
  }
  const Slice& first = slices_.front();
  const std::string_view metadata = member(first.text, "metadata").value_or("{}");
  const std::string ns = text_member(metadata, "namespace");
  const std::string base = text_member(metadata, "generateName");
  std::string name;
  std::uint64_t seed = mixed(slices_.size(), first.key);
  do {
    name = (base.empty() ? text_member(metadata, "name") + "-" : base) + suffix_of(seed, 5);
    seed = mixed(seed, 1);
  } while (store_.find(slice_table().index, object_key(ns, name)));
  return slices_.emplace_back(
      Slice{object_key(ns, name), sibling(first.text, name), {}, true, true});
}

void EndpointGroup::add(std::string endpoint) {
  if (slices_.empty()) {
    return;  // the Service lost its slices to somebody else
  }
  Slice& slice = slice_with_room();
  slice.endpoints.push_back(std::move(endpoint));
  slice.changed = true;
}

void EndpointGroup::edit_each(const Edit& edit) {
  for (Slice& slice : slices_) {
    for (std::string& endpoint : slice.endpoints) {
      std::string edited = edit(endpoint);
      if (edited != endpoint) {
        endpoint = std::move(edited);
        slice.changed = true;
      }
    }
  }
}

void EndpointGroup::remove_if(const std::function<bool(const std::string& endpoint)>& gone) {
  for (Slice& slice : slices_) {
    slice.changed = std::erase_if(slice.endpoints, gone) > 0 || slice.changed;
  }
}

void EndpointGroup::for_each(const std::function<void(const std::string& endpoint)>& visit) const {
  for (const Slice& slice : slices_) {
    std::ranges::for_each(slice.endpoints, visit);
  }
}

void EndpointGroup::write(Slice& slice, UnixTime now) {
  slice.text = with_member(slice.text, "endpoints", array_of(slice.endpoints));
  if (slice.is_new) {
    // Only a slice that somebody made under the same name meanwhile can be in the way: replaced.
    (void)store_.change(slice_table().index, slice.key, [&](const ObjectPtr&, std::uint64_t next) {
      return make_object(stamped(slice.text, now), next);
    });
  } else {
    (void)write_slice(store_, slice.key, slice.text, now);  // gone: somebody else deleted it
  }
  slice.changed = false;
  slice.is_new = false;
}

std::size_t EndpointGroup::commit(UnixTime now) {
  std::size_t writes = 0;
  for (Slice& slice : slices_) {
    if (slice.changed && !slice.endpoints.empty()) {
      write(slice, now);
      ++writes;
    }
  }
  const auto is_empty = [](const Slice& slice) { return slice.changed; };
  if (std::ranges::all_of(slices_, is_empty) && !slices_.empty()) {
    write(slices_.front(), now);  // the last one stays, without endpoints
    ++writes;
  }
  for (const Slice& slice : slices_) {
    if (slice.changed) {
      (void)delete_object(store_, slice_table(), slice.key);  // gone already: as it should be
      ++writes;
    }
  }
  std::erase_if(slices_, is_empty);
  return writes;
}

std::vector<std::string> EndpointGroup::keys() const {
  std::vector<std::string> out;
  for (const Slice& slice : slices_) {
    out.push_back(slice.key);
  }
  return out;
}

}  // namespace shunt::test_api
