package show_test

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/utilization"
	"scrimp/internal/lib/draw"
	"scrimp/internal/test/golden"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/profile"
)

// diagnosed is a report with a priced cause, an unpriced one, and operators.
func diagnosed() diagnose.Report {
	change, effort, risk := class.Words(class.DataLoading, class.PyTorch)
	return diagnose.Report{Job: "train-lm", Measured: 745, HourlyUSD: new(3.2), Phases: diagnose.Phases{SetUp: 31, Work: 700, After: 14},
		Use: map[string]float64{"gpu_utilization_ratio": 0.34, "gpu_memory_used_ratio": 0.12, "task_cpu_ratio": 0.14,
			"cpu_iowait_ratio": 0.01, "task_memory_bytes": 5 << 30, "network_received_bytes_per_second": 2 << 20},
		Causes: []diagnose.Cause{
			{Class: class.DataLoading, Group: "data", Evidence: "GPU 34 % used; the main process waits 55 % of the time\x1b[2J, and " +
				"its workers use 1.9 cores", SavingUSD: new(1.9), Low: new(1.0), High: new(2.1), Change: change, Effort: effort, Risk: risk,
				Share: &diagnose.Range{Low: 0.32, Value: 0.6, High: 0.66}},
			{Class: class.Leak, Group: "code", Evidence: "the program's memory grows by 4GiB an hour without end", Change: "bound lists",
				Effort: "medium", Risk: "none", AB: new("scrimp ab train-lm --set env.OMP_NUM_THREADS=8")},
		},
		Operators: []profile.Operator{{Name: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Share: 0.61, Part: profile.Loading},
			{Name: "aten::addmm", Share: 0.2, Part: profile.Compute}}}
}

func TestDiagnosis_FitsItsTerminal(t *testing.T) {
	unpriced := diagnosed()
	unpriced.HourlyUSD, unpriced.Causes[0].SavingUSD = nil, nil
	none := diagnose.Diagnose(diagnose.Input{Job: "queued"})
	team := []diagnose.Report{diagnosed(), unpriced, none, {Job: "well", Measured: 900, HourlyUSD: new(1.0)},
		{Job: "beside", Measured: 900, Busy: true, Note: "Other programs have the processors most of the time: 12 threads want 4 cores."}}
	for width, name := range map[int]string{100: "100", 80: "80", 60: "60", 0: "piped"} {
		p := show.Place{Width: width, Now: now}
		text := utilization.Diagnosis(diagnosed(), p) + "\n" + utilization.Diagnosis(unpriced, p) + "\n" + utilization.Diagnosis(none, p) + "\n" +
			utilization.Diagnosis(team[3], p) + "\n" + utilization.Diagnoses("vision", team, p)
		golden.Check(t, fmt.Sprintf("diagnose.%s.txt", name), text)
		for line := range strings.Lines(text) {
			if n := draw.Width(strings.TrimRight(line, "\n")); width > 0 && n > width {
				t.Errorf("%d columns: %d in %q", width, n, line)
			}
		}
		if strings.Contains(text, "\x1b") {
			t.Error("evidence steers the terminal")
		}
	}
}
