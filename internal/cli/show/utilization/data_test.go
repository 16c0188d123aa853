package utilization

import (
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/money"
)

// The sum of jobs contains the amounts that are known, and says how many bytes have none.
func TestDataOfJobs_SumsKnownPricesOnly(t *testing.T) {
	read := client.DataRead{Attempt: "a.1", Name: "corpus", Bytes: 4 << 30, HitBytes: 1 << 30, Fetched: 3 << 30}
	unknown := JobData{Job: "a", Name: "lm", DataUse: client.DataUse{Bytes: 4 << 30, HitBytes: 1 << 30, Fetched: 3 << 30,
		Requests: 5, UnpricedFetched: 3 << 30, UnpricedHits: 1 << 30, Reads: []client.DataRead{read}}}
	known := unknown
	known.Job, known.UnpricedFetched, known.UnpricedHits = "b", 0, 0
	known.Cost, known.Saved = new(money.Picos(3e12)), new(money.Picos(1e12))
	got := DataOfJobs([]JobData{unknown, known}, show.Place{})
	want := `JOB  NAME  BYTES  CACHED  READ  TOOK  COST   SAVED
a    lm    4GiB   1GiB    3GiB  0.0s  -      -
b    lm    4GiB   1GiB    3GiB  0.0s  $3.00  $1.00

2GiB of 8GiB came from caches (25 %), and 6GiB was read with 10 requests; reading cost $3.00, and the caches saved $1.00; the price of 4GiB is unknown: give region under data in the job file. Charges for requests are unknown.
`
	if squeezed(got) != squeezed(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Data(unknown, show.Place{Width: 80}); !strings.Contains(got, "a.1") || !strings.Contains(got, "corpus") {
		t.Errorf("%s", got)
	}
	lost := JobData{Job: "d", DataUse: client.DataUse{Unreported: 2}}
	if got := Data(lost, show.Place{}); !strings.Contains(got, "2 machines ended before a report, so what was read there is "+
		"unknown") {
		t.Errorf("%s", got)
	}
	if got := Data(JobData{Job: "c"}, show.Place{}); !strings.Contains(got, "c: no machine has brought an input") {
		t.Errorf("%s", got)
	}
}

func TestNoJobs_NamesWhatSelectedNone(t *testing.T) {
	for got, want := range map[string]string{
		NoJobs("", "", show.Place{}):          "No job that you may see was submitted in this span.\n",
		NoJobs("a\x1bb", "ocr", show.Place{}): "No job that you may see was submitted in this span by team " + show.Clean("a\x1bb") + " in project ocr.\n",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// squeezed returns text with one space for several.
func squeezed(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Join(lines, "\n")
}
