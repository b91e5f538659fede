#include "deploy/psctl/lab/report_page.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "deploy/psctl/compare/plot_style.h"
#include "deploy/psctl/compare/svg_document.h"
#include "deploy/psctl/lab/lab_plots.h"
#include "deploy/psctl/lab/lab_report.h"

namespace slipstream {
namespace {

constexpr std::string_view kStyle =
    ":root { color-scheme: light dark; }\n"
    "body { margin: 2rem auto; max-width: 1320px; padding: 0 1rem; background: #ffffff; "
    "color: #222222; font: 15px/1.5 system-ui, sans-serif; }\n"
    "h2 { margin-top: 2.5rem; }\n"
    "section.plots { display: flex; flex-wrap: wrap; gap: 1.5rem; }\n"
    "figure { margin: 0; max-width: 100%; }\n"
    "figcaption { color: #555555; font-size: 13px; max-width: 620px; }\n"
    "figure.small figcaption { max-width: 300px; }\n"
    "svg { max-width: 100%; height: auto; }\n"
    "pre { overflow-x: auto; white-space: pre-wrap; }\n"
    "div.table { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: 0.2rem 0.7rem; text-align: right; white-space: nowrap; "
    "border-bottom: 1px solid #dddddd; }\n"
    "th { font-weight: 600; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "body { background: #15181d; color: #dddddd; }\nfigcaption { color: #aab0b8; }\n"
    "th, td { border-color: #333a44; }\n}\n";

std::string HtmlTable(const ReportTable& table) {
  std::string text = "<div class=\"table\"><table>\n<tr>";
  for (const std::string& cell : table.heading) text += "<th>" + XmlText(cell) + "</th>";
  text += "</tr>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += "<td>" + XmlText(cell) + "</td>";
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

/// Returns lines of text, of which XmlText would make one.
std::string HtmlLines(const std::string& lines) {
  std::string text;
  const std::vector<std::string> each = absl::StrSplit(lines, '\n');
  for (const std::string& line : each) text += XmlText(line) + "\n";
  return text;
}

std::string HtmlSection(const ReportSection& section) {
  std::string text;
  for (const std::string& fact : section.facts) text += "<li>" + XmlText(fact) + "</li>\n";
  if (!section.facts.empty()) text = "<ul>\n" + text + "</ul>\n";
  if (!section.heading.empty()) text = "<h2>" + XmlText(section.heading) + "</h2>\n" + text;
  if (!section.text.empty()) text += fmt::format("<p>{}</p>\n", XmlText(section.text));
  if (!section.table.rows.empty()) text += HtmlTable(section.table);
  if (section.settings.empty()) return text;
  return text + fmt::format("<details><summary>Base settings</summary><pre>{}</pre></details>\n",
                            HtmlLines(section.settings));
}

std::string Figures(const std::vector<LabPlot>& plots, std::string_view size) {
  std::string text = "<section class=\"plots\">\n";
  for (const LabPlot& plot : plots) {
    text += fmt::format("<figure{}>\n{}<figcaption>{}</figcaption>\n</figure>\n", size, plot.svg,
                        XmlText(plot.caption));
  }
  return text + "</section>\n";
}

}  // namespace

std::string ReportPage(const LabReport& report) {
  const std::string name = XmlText(report.grid->name);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      name, kStyle, PlotStyleSheet());
  for (const ReportSection& section : ReportSections(report)) {
    text += HtmlSection(section);
    if (section.heading.empty()) text += Figures(LabPlots(report), "");
  }
  if (const std::vector<LabPlot> plots = SigmaPlots(report); !plots.empty()) {
    text +=
        "<h2>Staleness</h2>\n<p>Columns are the shares of gradients by their staleness, "
        "scaled to the tallest; the line is the share of all up to it; the dashed line is the "
        "bound 2n, where n is λ over the gradients of an update.</p>\n";
    text += Figures(plots, " class=\"small\"");
  }
  return text + "</body>\n</html>\n";
}

}  // namespace slipstream
