package estimate

import (
	"fmt"
	"strconv"
	"strings"

	"scrimp/internal/estimate"
)

// stages parses lists such as 128:0.5,224:0.5.
func stages(s string) ([]estimate.Stage, error) {
	if s == "" {
		return nil, nil
	}
	var out []estimate.Stage
	for _, part := range strings.Split(s, ",") {
		px, share, shared := strings.Cut(part, ":")
		st := estimate.Stage{Share: 1}
		var err, err2 error
		st.Pixels, err = strconv.ParseFloat(strings.TrimSpace(px), 64)
		if shared {
			st.Share, err2 = strconv.ParseFloat(strings.TrimSpace(share), 64)
		}
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("--resize %q is not pixels and shares such as 128:0.5,224:0.5", s)
		}
		out = append(out, st)
	}
	return out, nil
}

// weekly returns the number of runs a week.
func (f *estimateFlags) weekly() (float64, error) {
	k, ok := map[string]float64{"day": 7, "week": 1, "month": 12.0 / 52, "year": 1.0 / 52}[f.per]
	if !ok {
		return 0, fmt.Errorf("--per %q is not one of day, week, month, year", f.per)
	}
	if !(f.runs >= 0 && f.runs <= 1e9) {
		return 0, fmt.Errorf("--runs %g is not a number of runs", f.runs)
	}
	return f.runs * k, nil
}
