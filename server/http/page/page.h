#ifndef SLIPSTREAM_SERVER_HTTP_PAGE_PAGE_H_
#define SLIPSTREAM_SERVER_HTTP_PAGE_PAGE_H_

#include <string_view>

namespace slipstream {

/// Returns the page that shows a run, as HTML. Scripts and styles are in it; it asks for
/// status/stream and for nothing else. bundle.py writes the source of these functions.
std::string_view RunPage();

/// Returns the Content-Security-Policy under which a browser runs what is in the page, and only
/// that.
std::string_view RunPagePolicy();

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_PAGE_PAGE_H_
