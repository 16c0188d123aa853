package pages

import (
	"strings"
	"testing"

	"scrimp/client"
)

// A job whose machine was busy is listed with what was measured, and counts neither as one with a cause nor as one that
// was not measured.
func TestDiagnoses_ListJobsOnBusyMachinesApart(t *testing.T) {
	f, s := full(t, "x")
	f.answers["/v1/diagnoses"] = []client.Diagnosis{{Job: "beside", Busy: true, Note: "12 threads want 4 cores"},
		{Job: "a", Causes: []client.DiagnosisCause{{Class: "data_loading"}}}, {Job: "b", Note: "nothing was measured"}, {Job: "c"}}
	text := asks(s, "GET", "/diagnoses", "").Body.String()
	for _, want := range []string{"/jobs/beside/diagnosis", "machine busy", "12 threads want 4 cores",
		"1 job with a cause, 1 without, 1 on a busy machine, 1 not measured."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
