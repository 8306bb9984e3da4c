// GET of a collection: versions, pages, selectors.
#include <fmt/format.h>

#include <memory>

#include "test/apiserver/api.h"
#include "test/apiserver/gzip.h"
#include "test/apiserver/selector.h"

namespace shunt::test_api {
namespace {

// The state that the request asks for.
Answer<Store::Listing> state_for(Context context, std::size_t table, const ListOptions& options) {
  if (!options.continue_token.empty()) {
    const auto token = parse_continue(options.continue_token);
    if (!token) {
      return refuse(bad_request("continue key is not valid: decoding failed"));
    }
    auto listing = context.store.list_at(table, token->version);
    if (!listing) {
      return refuse(expired_continue());
    }
    return listing;
  }
  if (options.exact) {
    return context.store.list_at(table, options.version);
  }
  const std::uint64_t current = context.store.version();
  if (options.version > current) {
    return refuse(version_too_large(options.version, current));
  }
  return context.store.list(table);
}

struct Page {
  std::vector<ObjectPtr> objects;
  std::string next_start;  // "": this is the last page
  std::size_t remaining = 0;
};

std::string key_of(const Object& object) { return object_key(object.ns, object.name); }

Page cut_page(
    const Store::Listing& listing,
    const Target& target,
    const Selector& selector,
    const ListOptions& options) {
  Page page;
  // Version "0" is served from the watch cache, which does not page.
  const std::size_t limit = options.version_text == "0" ? 0 : options.limit;
  const std::string start =
      options.continue_token.empty() ? "" : parse_continue(options.continue_token)->start;
  for (const ObjectPtr& object : listing.objects) {
    const bool here = target.ns.empty() || object->ns == target.ns;
    if (!here || (!start.empty() && key_of(*object) < start) || !selector.matches(*object)) {
      continue;
    }
    if (limit > 0 && page.objects.size() == limit) {
      if (page.remaining++ == 0) {
        // The first key after the last one sent, as the real token has it.
        page.next_start = key_of(*page.objects.back()) + '\0';
      }
      continue;
    }
    page.objects.push_back(object);
  }
  return page;
}

std::string list_head(
    const Resource& resource, std::uint64_t version, const Page& page, bool count_rest) {
  std::string metadata = fmt::format(R"("resourceVersion":"{}")", version);
  if (!page.next_start.empty()) {
    metadata += fmt::format(R"(,"continue":"{}")", to_text({version, page.next_start}));
    if (count_rest) {
      metadata += fmt::format(R"(,"remainingItemCount":{})", page.remaining);
    }
  }
  return fmt::format(
      R"({{"kind":"{}List","apiVersion":"{}","metadata":{{{}}},"items":[)",
      resource.kind,
      resource.api_version(),
      metadata);
}

// Indents for people, compresses large lists for those who accept it, and streams: a long list
// never exists as one string.
class ListWriter {
 public:
  ListWriter(const Request& request, Response& response, const Page& page)
      : response_(response), pretty_(wants_pretty(request)) {
    auto headers = standard_headers("application/json");
    const bool accepted = request.header("accept-encoding").find("gzip") != std::string::npos;
    if (accepted && !response.started() && is_large(page)) {
      gzip_ = std::make_unique<Gzip>();
      headers.emplace("Content-Encoding", "gzip");
      headers.emplace("Vary", "Accept-Encoding");
    }
    response_.begin(200, std::move(headers));
  }

  bool write(std::string_view piece, bool last = false) {
    std::string indented;
    if (pretty_) {
      indenter_.feed(piece, indented);
      piece = indented;
    }
    return response_.write(gzip_ ? gzip_->feed(piece, last) : piece);
  }

  void finish(std::string_view piece) {
    (void)write(std::string(piece) + (pretty_ ? "" : "\n"), true);  // end() answers for both
    (void)response_.end();  // a client that left needs no goodbye
  }

 private:
  static bool is_large(const Page& page) {
    constexpr std::size_t kThreshold = 131072;  // 128 KiB
    std::size_t size = 0;
    for (const ObjectPtr& object : page.objects) {
      size += object->body.size();
    }
    return size > kThreshold;
  }

  Response& response_;
  const bool pretty_;
  Indenter indenter_;
  std::unique_ptr<Gzip> gzip_;
};

}  // namespace

Answer<> handle_list(
    Context context, const Target& target, const Request& request, Response& response) {
  const Resource& resource = *target.table.resource;
  const auto options = parse_list_options(request, context.options.streaming_lists);
  if (!options) {
    return refuse(options.error());
  }
  const auto selector = Selector::parse(resource, options->labels, options->fields);
  if (!selector) {
    return refuse(selector.error());
  }
  const auto listing = state_for(context, target.table.index, *options);
  if (!listing) {
    return refuse(listing.error());
  }
  const Page page = cut_page(*listing, target, *selector, *options);
  ListWriter writer(request, response, page);
  writer.write(list_head(resource, listing->version, page, selector->everything()));
  std::string_view comma;
  for (const ObjectPtr& object : page.objects) {
    writer.write(comma);
    if (!writer.write(object->body)) {
      return {};  // the client left: nobody to tell
    }
    comma = ",";
  }
  writer.finish("]}");
  return {};
}

}  // namespace shunt::test_api
