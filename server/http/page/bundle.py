"""Writes the page as C++: bundle.py ESBUILD OUTPUT.cc index.html style.css main.ts

main.ts and all that it imports become one script; script and style go into the page. The page's policy
names both by their hashes, so that a browser runs nothing else.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys

# Debian's packages of JavaScript.
LIBRARIES = "/usr/share/nodejs"


SOURCE = """#include "server/http/page/page.h"

namespace slipstream {
namespace {

constexpr unsigned char kPage[] = {BYTES};
constexpr char kPolicy[] = "POLICY";

}  // namespace

std::string_view RunPage() { return {reinterpret_cast<const char*>(kPage), sizeof(kPage)}; }
std::string_view RunPagePolicy() { return kPolicy; }

}  // namespace slipstream
"""


def built(esbuild, source):
    """Returns a .ts or .css file with what it imports, without blanks; licences stay."""
    done = subprocess.run([esbuild, source, "--bundle", "--minify", "--target=es2020", "--charset=utf8",
                           "--legal-comments=inline", "--log-level=warning"],
                          env={**os.environ, "NODE_PATH": LIBRARIES}, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def main():
    esbuild, output, html, css, script = sys.argv[1:]
    style, code = built(esbuild, css), built(esbuild, script)
    if re.search(r"</script|<!--", code, re.IGNORECASE):
        sys.exit(f"{script}: what was made of it would end its element in the page")
    with open(html, encoding="utf-8") as file:
        page = file.read()
    page = page.replace("/* style.css */", style).replace("/* main.js */", code)
    policy = (f"default-src 'none'; script-src {hash_of(code)}; style-src {hash_of(style)}; img-src data:; "
              "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    data = page.encode()
    rows = ",\n".join(",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32))
    with open(output, "w", encoding="utf-8") as file:
        file.write(SOURCE.replace("BYTES", rows).replace("POLICY", policy))


if __name__ == "__main__":
    main()
