package show_test

import (
	"testing"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/figure"
	"scrimp/internal/test/golden"
)

func report(t *testing.T) check.Report {
	budget := amount("200")
	return check.Check(check.Case{
		Job: spec.Job{
			Name: "bert", Command: "python train.py --bf16", Work: spec.Work{Time: spec.Duration(12 * time.Hour)}, Checkpoint: spec.Checkpoint{Dir: "checkpoints"}, Budget: spec.Budget{Dollars: &budget},
			Resources: spec.Resources{Accelerator: "H100:8"}, Data: []spec.Data{{Path: "s3://corpus/tokens", Region: "us-east-1"}}, Team: "vision",
		},
		Now: now, Offers: offers(t).Listings, Facts: map[string]string{"quantised": "int8", "pruning": "no", "predictions_per_second": "120"},
		Runs: []check.Run{{Job: "bert-1", State: "succeeded", Steps: 300, Checkpoints: 12, Resumes: []time.Duration{40 * time.Second}, Utilisation: figure.Known(0.43), Finished: now.Add(-100 * time.Hour)}},
	})
}

func TestChecklist_ShowsEvidenceAndFix(t *testing.T) {
	r := report(t)
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
		golden.Check(t, "check."+width+".txt", show.Checklist(r, true, p))
		golden.Check(t, "check-short."+width+".txt", show.Checklist(r, false, p))
	}
	golden.JSON(t, "json/checklist.json", r)
}
