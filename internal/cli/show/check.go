package show

import (
	"fmt"
	"strings"

	"scrimp/internal/check"
	"scrimp/internal/draw"
)

// Checklist is a report of scrimp check for people. What passed is listed too:
// its evidence is what the verdict rests on.
func Checklist(r check.Report, p Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", fmt.Sprintf("%s: %d pass, %d warn, %d fail, %d unknown", r.Job, r.Counts[check.Pass],
		r.Counts[check.Warn], r.Counts[check.Fail], r.Counts[check.Unknown]), p.width()))
	for _, s := range check.Stages {
		fmt.Fprintf(&b, "\n%s%s\n", strings.ToUpper(string(s[:1])), s[1:])
		for _, f := range r.Findings {
			if f.Stage != s {
				continue
			}
			word := string(f.Verdict)
			if f.Verdict == check.Fail {
				word = "FAIL"
			}
			b.WriteString(draw.Wrap(fmt.Sprintf("  %-7s  ", word), f.Title+": "+f.Evidence, p.width()))
			if f.Fix != "" {
				b.WriteString(draw.Wrap("           → ", f.Fix, p.width()))
			}
		}
	}
	return b.String()
}

// Facts lists what the user may state with --fact.
func Facts(p Place) string {
	var b strings.Builder
	for _, f := range check.Facts {
		b.WriteString(draw.Wrap(fmt.Sprintf("  %-32s ", f.Name+"="+f.Example), f.Doc, p.width()))
	}
	return b.String()
}
