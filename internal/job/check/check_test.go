package check_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/job/check"
	"scrimp/internal/job/check/fact"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/market/catalog"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const sale = `provider,region,machine,capacity,accelerator,accelerators,cpus,memory_gib,price,currency,at,source
aws,us-east-1,t4,on-demand,T4,1,4,16,0.50,USD,2026-11-20,list
aws,us-east-1,l4,on-demand,L4,1,8,32,0.80,USD,2026-11-20,list
aws,us-east-1,l4,spot,L4,1,8,32,0.30,USD,2026-11-21T11:50:00Z,list
aws,us-east-1,a100,on-demand,A100-SXM-80GB,8,96,1152,27.00,USD,2026-11-20,list
aws,us-east-1,a100h,on-demand,A100-SXM-80GB,4,48,576,13.00,USD,2026-11-20,list
aws,us-east-1,h100,on-demand,H100-SXM-80GB,8,192,2048,55.00,USD,2026-11-20,list
aws,us-east-1,h200,on-demand,H200-SXM,8,192,2048,80.00,USD,2026-11-20,list
aws,us-east-1,c,on-demand,,,4,8,0.10,USD,2026-11-20,list
aws,us-east-1,big,on-demand,,,96,384,4.00,USD,2026-11-20,list
aws,us-east-1,mid1,on-demand,,,8,16,0.20,USD,2026-11-20,list
aws,us-east-1,mid2,on-demand,,,16,32,0.40,USD,2026-11-20,list
aws,us-east-1,mid3,on-demand,,,32,64,0.80,USD,2026-11-20,list
aws,us-east-1,mid4,on-demand,,,48,96,1.20,USD,2026-11-20,list
`

func offers() []catalog.Listing {
	c, err := catalog.Read("test", sale)
	if err != nil || len(c.Skipped) > 0 {
		panic(err)
	}
	return c.Listings
}

func dollars(s string) *money.Amount {
	a, err := money.Parse(s)
	if err != nil {
		panic(err)
	}
	return &a
}

func rate(s string) money.Rate {
	r, err := money.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

func verdict(t interface{ Fatalf(string, ...any) }, c check.Case, id string) check.Finding {
	for _, f := range check.Check(c).Findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no item %s", id)
	return check.Finding{}
}

// bare is a job with only a command.
func bare() check.Case {
	return check.Case{Job: spec.Job{Name: "j", Command: "exec ./train"}, Now: now, Offers: offers()}
}

// hours sets the job's duration.
func hours(c *check.Case, h float64) {
	c.Job.Work.Time = spec.Duration(h * float64(time.Hour))
}

func offer(c *check.Case, machine string) catalog.Listing {
	for _, l := range c.Offers {
		if l.Offer.Machine == machine {
			return l
		}
	}
	panic(machine)
}

func TestCheck_JudgesEachItem(t *testing.T) {
	reached := map[string]bool{}
	for _, x := range slices.Concat(cases, phaseCases, practiceCases) {
		c := bare()
		x.set(&c)
		f := verdict(t, c, x.id)
		reached[x.id] = true
		if f.Verdict != x.verdict || !strings.Contains(f.Evidence, x.why) {
			t.Errorf("%s: %s (%s), want %s (… %s …)", x.id, f.Verdict, f.Evidence, x.verdict, x.why)
		}
	}
	for _, i := range check.Items() {
		if !reached[i.ID] {
			t.Errorf("no case of %s", i.ID)
		}
	}
}

// TestCheck_UnstatedItemsAreUnknown lists the items that a job with only a command may pass, because the command settles
// them.
func TestCheck_UnstatedItemsAreUnknown(t *testing.T) {
	settled := map[string]string{"machine": "the cheapest is taken", "precision": "no accelerator",
		"accumulation": "no accelerator", "secrets": "it has no variables", "distributed": "no accelerator"}
	c := bare()
	c.Offers = nil
	for _, f := range check.Check(c).Findings {
		if f.Verdict == check.Pass && settled[f.ID] == "" {
			t.Errorf("%s passes on nothing: %s", f.ID, f.Evidence)
		}
	}
	c.Job.Resources.Accelerator = "L4"
	for _, f := range check.Check(c).Findings {
		if f.Verdict == check.Pass && f.ID != "secrets" && f.ID != "distributed" {
			t.Errorf("%s passes on nothing: %s", f.ID, f.Evidence)
		}
	}
}

func TestCheck_FailuresHaveEvidenceAndFix(t *testing.T) {
	for _, x := range slices.Concat(cases, phaseCases, practiceCases) {
		c := bare()
		x.set(&c)
		r := check.Check(c)
		n := 0
		for _, f := range r.Findings {
			if f.Evidence == "" || f.Verdict != check.Pass && f.Fix == "" || f.Verdict == check.Pass && f.Fix != "" {
				t.Errorf("%s of the case %s: %+v", f.ID, x.id, f)
			}
			if f.Verdict == check.Fail {
				n++
			}
		}
		if r.OK != (n == 0) || r.Counts[check.Fail] != n || len(r.Findings) != len(check.Items()) {
			t.Errorf("%s: OK is %v with %d failures, %d findings", x.id, r.OK, n, len(r.Findings))
		}
	}
}

// A verdict depends on nothing but its input, and not on the order of offers.
func TestCheck_IsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := bare()
		for range rapid.IntRange(0, 8).Draw(t, "settings") {
			cases[rapid.IntRange(0, len(cases)-1).Draw(t, "case")].set(&c)
		}
		first := check.Check(c)
		c.Offers = rapid.Permutation(c.Offers).Draw(t, "offers")
		if again := check.Check(c); !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v\n%+v", first, again)
		}
	})
}

func TestCheck_IgnoresOffersWithoutDollarPrice(t *testing.T) {
	c := bare()
	hours(&c, 10)
	c.Job.Resources.Accelerator = "L4"
	free := offer(&c, "l4")
	free.Offer.ID, free.Quote.Priced, free.Quote.Rate = "free/x/l4/on-demand", false, 0
	euro := offer(&c, "l4")
	euro.Offer.ID, euro.Offer.Currency, euro.Quote.Rate = "euro/x/l4/on-demand", "EUR", rate("0.01")
	before := verdict(t, c, "cost")
	c.Offers = append([]catalog.Listing{free, euro}, c.Offers...)
	if after := verdict(t, c, "cost"); after != before {
		t.Errorf("%s, then %s", before.Evidence, after.Evidence)
	}
	c.Offers = c.Offers[:2]
	if f := verdict(t, c, "cost"); f.Verdict != check.Unknown {
		t.Errorf("%+v", f)
	}
}

func TestParseFact_ErrorListsFacts(t *testing.T) {
	for _, f := range fact.All {
		if name, value, err := fact.Parse(f.Name + "=" + f.Example); err != nil || name != f.Name || value != f.Example {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	for _, bad := range []string{"", "=", "pruning", "pruning=perhaps", "colour=red", "utilisation=fast",
		"utilisation=120%", "utilisation=101", "predictions_per_second=-1", "predictions_per_second=1e400",
		"reviewed=today", "resume=soon", "quantised=", "quantised=banana", "precision=bf99"} {
		if _, _, err := fact.Parse(bad); err == nil {
			t.Errorf("%q is a fact", bad)
		}
	}
}

// The error for a wrong value names it, the bounds, and an example.
func TestParseFact_ErrorNamesBounds(t *testing.T) {
	for bad, want := range map[string]string{
		"utilisation=182%":       "utilisation=182%: write a share from 0% to 100%, or from 0.0 to 1.0, such as utilisation=82%",
		"utilisation=NaN":        "write a share from 0% to 100%",
		"seeds=-1":               "write a number from 0 to 999999999999",
		"seeds=1e308":            "write a number from 0 to 999999999999",
		"resume=99999999999999h": "write a time with its unit (ms, s, m or h), up to 1000h, such as resume=90s",
		"resume=1001h":           "up to 1000h",
		"reviewed=2026-02-30":    "write a day of the calendar",
		"pruning=":               "pruning=: write yes or no, such as pruning=yes",
		"utilization=82%":        `"utilization" is not a fact: did you mean utilisation?`,
		"colour=red":             "use one of precision, accumulation",
	} {
		if _, _, err := fact.Parse(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, which does not say %q", bad, err, want)
		}
	}
}

func TestDocs_NameEveryItemAndFact(t *testing.T) {
	b, err := os.ReadFile("../../../docs/reference/check.md")
	must.Do(t, err)
	for _, i := range check.Items() {
		if !strings.Contains(string(b), "| `"+i.ID+"` | "+i.Title+" |") {
			t.Errorf("docs/reference/check.md has no row | `%s` | %s |", i.ID, i.Title)
		}
	}
	for _, f := range fact.All {
		if !strings.Contains(string(b), "`"+f.Name+"="+f.Example+"`") {
			t.Errorf("docs/reference/check.md does not name `%s=%s`", f.Name, f.Example)
		}
	}
}

func FuzzCheck_ReadsAnyProgram(f *testing.F) {
	f.Add("with torch.autocast('cuda'):", "python t.py --bf16")
	f.Add("p.add_argument('--grad_accum', type=int)", "")
	f.Add("minReplicas: 99999999999999999999", "\x00\xff")
	f.Fuzz(func(t *testing.T, body, command string) {
		c := bare()
		c.Job.Command, c.Job.Kind, c.Job.Resources.Accelerator = command, "inference", "L4"
		c.Texts = []check.Text{{"t.py", body}}
		if r := check.Check(c); len(r.Findings) != len(check.Items()) {
			t.Errorf("%d findings", len(r.Findings))
		}
	})
}

// The fix for a long job on spot that saves nothing is to save: no run of it can be seen to go on from a checkpoint.
func TestCheck_FixOfUnprovenSpotIsToSaveWhereNothingIs(t *testing.T) {
	for dir, want := range map[string]string{"": "under checkpoint.dir", "ck": "see it go on"} {
		var j spec.Job
		j.Command, j.Checkpoint.Dir, j.Work.Time = "python train.py", dir, spec.Duration(10*time.Hour)
		for _, f := range check.Check(check.Case{Job: j}).Findings {
			if f.ID == "spot-proven" && (f.Verdict != check.Fail || !strings.Contains(f.Fix, want)) {
				t.Errorf("dir %q: %v, %q, want %q", dir, f.Verdict, f.Fix, want)
			}
		}
	}
}
