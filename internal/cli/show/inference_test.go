package show_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/inference"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

func served(t *testing.T, provider, machine, accelerator string, count int, price string) catalog.Listing {
	t.Helper()
	l := catalog.Listing{}
	l.Offer = market.Offer{ID: market.OfferID(provider + "/us-east-1/" + machine + "/on-demand"), Provider: provider,
		Region: "us-east-1", Machine: machine, Capacity: market.OnDemand, Accelerator: accelerator, Accelerators: count,
		Currency: money.USD, Billing: market.Billing{Minimum: time.Minute}}
	rate, err := money.ParseRate(price)
	must.Do(t, err)
	l.Quote = market.Quote{Rate: rate, Priced: true, Source: "example", At: time.Date(2026, 7, 20, 0, 0, 0, 0, time.UTC)}
	return l
}

// chats is two days of requests, most of them from 8 to 18.
func chats() load.Trace {
	var t load.Trace
	for second := 0; second < 48*3600; second += 2 {
		if hour := second / 3600 % 24; (hour < 8 || hour >= 18) && second%600 != 0 {
			continue
		}
		t.At = append(t.At, time.Duration(second)*time.Second)
		t.In, t.Out = append(t.In, int32(100+second%300)), append(t.Out, int32(20+second%80))
		t.BytesOut += 500
	}
	t.Window, t.Sized, t.Dated = 48*time.Hour, true, true
	return t
}

func servePlan(t *testing.T, limit time.Duration, list ...catalog.Listing) inference.Answer {
	t.Helper()
	model, _ := shape.Named("llama-3-8b")
	functions, err := serving.ReadFunctions("f.yaml", []byte(`functions:
  - {name: function-with-a-long-name, provider: aws, memory: 20GiB, per_request: 0.0000002, per_gib_second: 0.00002, cold_start: 20s, source: "example"}
`))
	must.Do(t, err)
	hours, _ := chats().Busiest()
	p, err := serving.NewPlan(catalog.Catalog{}, list, serving.Ask{Trace: chats(), Model: &model, Formats: load.Formats,
		Measured: map[string]load.Measured{"a10g": {{Batch: 1, Seconds: 1.5}, {Batch: 8, Seconds: 2.5}},
			"function-with-a-long-name": {{Batch: 1, Seconds: 6}}},
		Functions: functions,
		Options: serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: limit}}, Kinds: simulation.Kinds, Machines: 16,
			Cold: 90 * time.Second, Keep: 5 * time.Minute, Poll: 15 * time.Second, Warm: hours}})
	must.Do(t, err)
	for i := range p.Runs() {
		p.Play(i)
	}
	v, _, ok := inference.AnswerOf(p, "llama-3-8b")
	if !ok {
		t.Fatal("no answer")
	}
	v.Notes = []string{"an example"}
	return v
}

// What serving costs is printed as people and programs read it; no line is wider than the terminal.
func TestServePlanIsPrinted(t *testing.T) {
	offers := []catalog.Listing{served(t, "aws", "g6.xlarge", "L4", 1, "0.8048"), served(t, "aws", "g5.xlarge", "A10G", 1, "1.006"),
		served(t, "a-provider-of-a-long-name", "gpu_8x_a100_80gb_sxm4_with_a_long_name", "A100-SXM-80GB", 8, "27.44705"),
		served(t, "aws", "g4dn.xlarge", "T4", 1, "0.526"), served(t, "aws", "c6i.2xlarge", "", 0, "0.34")}
	met, missed := servePlan(t, 12*time.Second, offers...), servePlan(t, time.Millisecond, offers[:2]...)
	for name, v := range map[string]inference.Answer{"serve-plan": met, "serve-plan-missed": missed} {
		golden.JSON(t, name+".json", v.Choices[0])
		for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
			text := v.Text(p)
			golden.Check(t, name+"."+width+".txt", text)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); p.Width > 0 && n > p.Width {
					t.Errorf("%s: a line of %d columns: %s", name, n, line)
				}
			}
		}
	}
	b, err := json.Marshal(met.Skipped[0])
	if err != nil || string(b) != `{"offer":"aws/us-east-1/c6i.2xlarge/on-demand","skipped":"nobody measured it, and its rate or bandwidth is unknown"}` {
		t.Errorf("%s, %v", b, err)
	}
}

// Each figure that is printed of a fixed rule is that of a plain sum: machines × hours × price, the same by prediction and by
// million tokens.
func TestServePlan_AddsUpPlainly(t *testing.T) {
	v := servePlan(t, 12*time.Second, served(t, "aws", "g5.xlarge", "A10G", 1, "1.006"))
	for _, c := range v.Choices {
		if c.Rule != simulation.Batched && c.Rule != simulation.Fixed {
			continue
		}
		rate, _ := money.ParseRate("1.006")
		// The last request arrives at the end of the window, and is answered after it.
		whole := rate.Until(48 * time.Hour).Times(c.Max)
		more := rate.Until(48*time.Hour + 5*time.Second).Times(c.Max)
		if c.Machines.Cmp(whole) < 0 || c.Machines.Cmp(more) > 0 {
			t.Errorf("%d machines cost %s, want %s", c.Max, c.Machines, whole)
		}
		sent := money.Picos(int64(len(v.Trace.At)) * 500 * 90) // $0.09 a gigabyte are 90 picos a byte
		all := c.Machines.Add(sent)
		if *c.Egress != sent || *c.Total != all || c.Each != all.Over(len(v.Trace.At)) {
			t.Errorf("egress %s, total %s, a prediction %s; want %s and %s", c.Egress, c.Total, c.Each, sent, all)
		}
		in, out, _ := v.Trace.Tokens()
		if got, want := c.Tokens.Float(), all.Float()*1e6/float64(in+out); got > want || got < want*0.999999 {
			t.Errorf("a million tokens cost %v, want %v", got, want)
		}
		if c.Input != nil || c.Output != nil || c.Estimated {
			t.Errorf("what is unknown has a value: %+v", c)
		}
	}
}

// inferred plays a plan and returns its answer.
func inferred(t *testing.T, ask serving.Ask, list ...catalog.Listing) inference.Answer {
	t.Helper()
	ask.Options.Machines, ask.Options.Kinds, ask.Options.Cold = 4, simulation.Kinds, 90*time.Second
	p, err := serving.NewPlan(catalog.Catalog{}, list, ask)
	must.Do(t, err)
	for i := range p.Runs() {
		p.Play(i)
	}
	v, _, ok := inference.AnswerOf(p, "a model")
	if !ok {
		t.Fatal("no answer")
	}
	return v
}

// What the summary says of the first choice is that of its function, its format and its model, and no figure is rounded to one
// that is exact.
func TestServePlan_SaysWhatHoldsForTheFirstChoice(t *testing.T) {
	functions, err := serving.ReadFunctions("f.yaml", []byte(`functions:
  - {name: fn, memory: 1GiB, per_request: 0, per_gib_second: 0.00001, cold_start: 12s, source: "example"}
`))
	must.Do(t, err)
	trace := load.Trace{At: []time.Duration{0, 20 * time.Hour}, In: []int32{100, 100}, Out: []int32{20, 20}, Window: 48 * time.Hour,
		Sized: true, BytesOut: 10_650}
	within := func(d time.Duration) serving.Options {
		return serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: d}}}
	}
	llama, _ := shape.Named("llama-3-8b")
	resnet, _ := shape.Named("resnet-50")
	runpod := served(t, "runpod", "t4", "T4", 1, "0.2")
	runpod.Quote.At = time.Time{}
	measured := map[string]load.Measured{"fn": {{Batch: 1, Seconds: 1}}}
	for name, x := range map[string]struct {
		ask       serving.Ask
		list      []catalog.Listing
		says, not []string
	}{
		"a function": {ask: serving.Ask{Measured: measured, Functions: functions, Options: within(time.Minute)},
			says: []string{"12s until a new instance of fn answers", "+  yes"}, not: []string{"1m30s"}},
		"quantised weights": {ask: serving.Ask{Model: &llama, Formats: load.Formats, Options: within(time.Hour)},
			list: []catalog.Listing{served(t, "aws", "g4dn.xlarge", "T4", 1, "0.2"), served(t, "aws", "g6.xlarge", "L4", 1, "0.8")},
			says: []string{"quantised weights (int8) change the answers", "in fp16 the first is scale-to-zero on g6.xlarge",
				">99.9 %", "for 10.7 kB"}, not: []string{"100 %", "e-05"}},
		"a model without tokens": {ask: serving.Ask{Model: &resnet, Formats: load.Formats, Options: within(time.Hour)},
			list: []catalog.Listing{runpod}, says: []string{"runpod price list, no date known"}, not: []string{"tokens", "example"}},
	} {
		x.ask.Trace = trace
		v := inferred(t, x.ask, x.list...)
		for width := range 2 {
			text := strings.Join(strings.Fields(v.Text(show.Place{Width: 80 * width, Now: now})), " ")
			for _, part := range x.says {
				if width > 0 && strings.HasSuffix(part, "%") { // IDLE leaves a narrow terminal
					continue
				}
				if !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
					t.Errorf("%s does not say %q: %s", name, part, text)
				}
			}
			for _, part := range append(x.not, "e+") {
				if strings.Contains(text, part) {
					t.Errorf("%s says %q: %s", name, part, text)
				}
			}
			if !strings.Contains(text, "MEETS") || !strings.Contains(text, "BATCH") {
				t.Errorf("%s: a column that is needed is left out: %s", name, text)
			}
		}
	}
}

// Where the price of egress is unknown, each sum that lacks it has the sign of that.
func TestServePlan_MarksEverySumThatLacksEgress(t *testing.T) {
	llama, _ := shape.Named("llama-3-8b")
	v := inferred(t, serving.Ask{Trace: chats(), Model: &llama, Formats: load.Formats,
		Options: serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: time.Hour}}}}, served(t, "nowhere", "m", "L4", 1, "1"))
	text := v.Text(show.Place{})
	dollars := regexp.MustCompile(`\$[0-9.,]+\+?`)
	for _, sum := range dollars.FindAllString(text, -1) {
		if !strings.HasSuffix(sum, "+") {
			t.Errorf("%s has no sign: %s", sum, text)
		}
	}
}
