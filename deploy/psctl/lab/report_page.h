#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_REPORT_PAGE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_REPORT_PAGE_H_

#include <string>

namespace slipstream {

struct LabReport;

/// Returns the report as one HTML page with plots, which needs no other file and follows the
/// reader's choice of a light or a dark page.
std::string ReportPage(const LabReport& report);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_REPORT_PAGE_H_
