package progress

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// Each case lists what a program prints, and the resulting step and total of the job; ? is an unknown total.
func TestCounter_ConvertsToStepsOfJob(t *testing.T) {
	const pattern = `(?:epoch (?P<epoch>\d+)(?:/(?P<epochs>\d+))?)?(?: ?step (?P<step>\d+)(?:/(?P<total>\d+))?)?$`
	for name, c := range map[string]struct {
		from  int64
		anew  bool
		lines string
		want  string
	}{
		"a counter of the job":          {0, false, "epoch 1 step 19/400, epoch 1 step 20/400, epoch 2 step 21/400", "19/400 20/400 21/400"},
		"each epoch":                    {0, false, "epoch 1 step 19/20, epoch 1 step 20/20, epoch 2 step 1/20, epoch 3 step 20/20", "19/20 20/20 21/? 60/?"},
		"each epoch of so many":         {0, false, "epoch 1/3 step 20/20, epoch 2/3 step 1/20, epoch 3/3 step 20/20", "20/20 21/60 60/60"},
		"epochs from 0":                 {0, false, "epoch 0 step 20/20, epoch 1 step 1/20, epoch 2 step 5/20", "20/20 21/? 45/?"},
		"the epoch on its own line":     {0, false, "epoch 1/3, step 20/20, epoch 2/3, step 1/20", "0/? 20/20 20/20 21/60"},
		"no epoch":                      {0, false, "step 900/936, step 100/936, step 900/936, step 100/936", "900/936 1036/? 1836/? 1972/?"},
		"neither epoch nor total":       {0, false, "step 9, step 10, step 1, step 10, step 1", "9/? 10/? 11/? 20/? 21/?"},
		"every tenth step is printed":   {0, false, "epoch 1 step 10/25, epoch 1 step 20/25, epoch 2 step 10/25", "10/25 20/25 35/?"},
		"goes back to a checkpoint":     {0, false, "epoch 2 step 40/400, epoch 2 step 30/400, epoch 2 step 41/400", "40/400 30/400 41/400"},
		"goes back, without epochs":     {0, false, "step 400/900, step 300/900, step 401/900", "400/900 300/900 401/900"},
		"goes on, as is known":          {140, true, "epoch 8 step 1/20, epoch 8 step 20/20, epoch 9 step 1/20", "141/? 160/? 161/?"},
		"goes on, epochs from 0":        {140, true, "epoch 7 step 1/20, epoch 8 step 1/20", "141/? 161/?"},
		"goes on, and it is seen late":  {15, false, "epoch 1 step 16/20, epoch 2 step 1/20", "16/20 21/?"},
		"goes on without epochs":        {140, true, "step 1/20, step 20/20, step 1/20", "141/? 160/? 161/?"},
		"an epoch in parts":             {0, false, "step 0.5", ""},
		"a metric between does nothing": {0, false, "epoch 1 step 20/20, epoch 2, epoch 2 step 1/20", "20/20 0/? 21/?"},
	} {
		p, err := Compile(api.Progressing{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		counter := Counter{Anew: c.anew, From: c.from}
		var got []string
		var all api.Step
		for line := range strings.SplitSeq(c.lines, ", ") {
			f := p.Read([]byte(line))
			if !f.IsStep {
				continue
			}
			s := counter.Count(f.Step, f.Epochs)
			all = Merge(all, s)
			if name == "the epoch on its own line" {
				s = all
			}
			got = append(got, strings.ReplaceAll(fmt.Sprintf("%d/%d", s.Step, s.Total), "/0", "/?"))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}
