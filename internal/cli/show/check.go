package show

import (
	"fmt"
	"strings"

	"scrimp/internal/job/check"
	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
)

// Checklist formats a report of scrimp check. It lists passed items, too: their evidence supports the verdict. all
// lists the stages after training even if nothing is known about them.
func Checklist(r check.Report, all bool, p Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", fmt.Sprintf("%s: %d pass, %d warn, %d fail, %d unknown", r.Job, r.Counts[check.Pass],
		r.Counts[check.Warn], r.Counts[check.Fail], r.Counts[check.Unknown]), p.Columns()))
	left := 0
	for _, s := range check.Stages {
		if n := silent(r, s); n > 0 && !all {
			left += n
			continue
		}
		fmt.Fprintf(&b, "\n%s%s\n", strings.ToUpper(string(s[:1])), s[1:])
		for _, f := range r.Findings {
			if f.Stage != s {
				continue
			}
			word := string(f.Verdict)
			if f.Verdict == check.Fail {
				word = "FAIL"
			}
			b.WriteString(draw.Wrap(fmt.Sprintf("  %-7s  ", word), f.Title+": "+f.Evidence, p.Columns()))
			if f.Fix != "" {
				b.WriteString(draw.Wrap("           → ", f.Fix, p.Columns()))
			}
		}
	}
	if left > 0 {
		b.WriteString("\n" + draw.Wrap("", fmt.Sprintf("%s of deployment and production, of which nothing is known "+
			"yet: --all", draw.Count(left, "more item")), p.Columns()))
	}
	return b.String()
}

// silent counts the items of a stage after training if nothing is known about any of them.
func silent(r check.Report, s check.Stage) (n int) {
	if s != check.Deployment && s != check.Production {
		return 0
	}
	for _, f := range r.Findings {
		if f.Stage == s {
			if n++; f.Verdict != check.Unknown {
				return 0
			}
		}
	}
	return n
}

// Facts lists the facts that --fact accepts.
func Facts(p Place) string {
	var b strings.Builder
	for _, f := range fact.All {
		b.WriteString(draw.Wrap(fmt.Sprintf("  %-32s ", f.Name+"="+f.Example), f.Doc, p.Columns()))
	}
	return b.String()
}
