package receipt

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/golden"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
)

func amount(s string) money.Amount {
	a, err := money.Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

// sample is a job of two attempts, the first of which was interrupted without notice.
func sample() Receipt {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	budget, firm, saved, share, met := amount("3"), amount("2"), amount("1.4"), 0.7, true
	restored := "000001-000002"
	deadline, finished := at.Add(3*time.Hour), at.Add(time.Hour)
	begun := at.Add(time.Minute)
	return Receipt{
		Job: "<b>train</b>", State: "succeeded", Reason: "completed", Currency: money.USD, Cost: amount("0.6"),
		CostWithoutRules: amount("0.61"),
		OnDemandCost:     &firm, Saved: &saved, SavedShare: &share, Budget: &budget, DeadlineMet: &met,
		DeadlineMarket: &deadline, FinishedMarket: &finished,
		SubmittedMarket: at, Submitted: at, MarketSpeed: 60, Market: "m", Attempts: 2,
		Interruptions: []Interruption{{Instance: "i-1", At: at, MarketAt: at.Add(30 * time.Minute), Restored: &restored}},
		Tries: []Try{
			{Attempt: "<b>train</b>.1", Instance: "i-1", Offer: "p/z/m/spot", From: at, Begun: &begun,
				Until: at.Add(30 * time.Minute), Cost: amount("0.3"), End: "interrupted",
				Rules: []Rule{{"provider", amount("-0.01")}}},
			{Attempt: "<b>train</b>.2", Instance: "i-2", Offer: "p/z/m/spot", From: at.Add(31 * time.Minute),
				Until: finished, Cost: amount("0.3"), End: "completed"},
		},
		Uses: map[ledger.Use]money.Amount{ledger.Useful: amount("0.5"), ledger.Lost: amount("0.1")},
		Loss: []Sample{{0, at, 4}, {10, finished, 2}}, LossName: "loss",
		Spend:  []Spent{{at, amount("0")}, {finished, amount("0.6")}},
		Ledger: Ledger{Agrees: true, Postings: 9}, Tips: []Tip{{Text: "save more often"}},
	}
}

func TestAReceiptThatDoesNotAddUpIsFound(t *testing.T) {
	if err := sample().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Receipt){
		"cost":    func(r *Receipt) { r.Cost = amount("0.600000000001") },
		"attempt": func(r *Receipt) { r.Tries[1].Cost = amount("0.29") },
		"use":     func(r *Receipt) { r.Uses[ledger.Lost] = amount("0.2") },
		"rule":    func(r *Receipt) { r.CostWithoutRules = amount("0.6") },
	} {
		r := sample()
		spoil(&r)
		if r.Check() == nil {
			t.Errorf("a wrong %s was not found", name)
		}
	}
}

func TestAmountsAreDecimalsAndUnknownIsNull(t *testing.T) {
	r := sample()
	r.OnDemandCost, r.Interruptions[0].Restored = nil, nil
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"cost":"0.6"`, `"budget":"3"`, `"on_demand_cost":null`, `"restored":null`,
		`"notice":0`, `"attempts":2`, `"deadline_met":true`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

// large is a job of many attempts with a long name that ran out of its budget
// and missed its deadline, and nothing at all on-demand to compare with.
func large() Receipt {
	r := sample()
	missed, deadline := false, r.SubmittedMarket.Add(30*time.Minute)
	r.Job, r.State, r.Reason, r.DeadlineMet, r.DeadlineMarket = "resnet-on-all-of-imagenet-2", "stopped",
		"budget_spent", &missed, &deadline
	r.OnDemandCost, r.Saved, r.SavedShare, r.Tips = nil, nil, nil, nil
	r.Cost, r.CostWithoutRules, r.Tries, r.Loss = money.Amount{}, money.Amount{}, nil, nil
	r.Uses, r.IdleAfter = map[ledger.Use]money.Amount{}, new(money.Picos(12_500_000_000))
	for i := range 12 {
		from := r.SubmittedMarket.Add(time.Duration(i) * 30 * time.Hour)
		begun := from.Add(time.Minute)
		c := amount("1234.5678")
		r.Tries = append(r.Tries, Try{Attempt: "resnet-on-all-of-imagenet-2." + strconv.Itoa(i+1), Instance: "i-1",
			Offer: "gcp/europe-west4-a/a2-highgpu-1g/spot", Capacity: "spot", From: from, Begun: &begun,
			Until: from.Add(29 * time.Hour), Cost: c, First: int64(i) * 1_000_000, Last: int64(i+1) * 1_000_000,
			End: "interrupted"})
		r.Cost, r.CostWithoutRules = r.Cost.Add(c), r.CostWithoutRules.Add(c)
		r.Loss = append(r.Loss, Sample{int64(i), from, 4 / float64(i+1)})
	}
	for i, u := range []ledger.Use{ledger.Useful, ledger.StartUp, ledger.Lost, ledger.Idle} {
		part := amount("100")
		if i == 0 {
			part = r.Cost.Sub(amount("300"))
		}
		r.Uses[u] = part
	}
	r.Attempts, r.LostSeconds, r.Checkpoints = 12, 360_000, 1
	return r
}

func TestWhatIsPrinted(t *testing.T) {
	for name, r := range map[string]Receipt{"sample": sample(), "large": large()} {
		if err := r.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, width := range []int{0, 80, 120} {
			golden.Check(t, name+"."+strconv.Itoa(width)+".txt", r.Text(width))
		}
		golden.JSON(t, name+".json", r)
		page, err := r.HTML()
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name+".html", string(page))
	}
}

func TestTheTextFitsItsTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		for _, line := range strings.Split(sample().Text(width)+large().Text(width), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

func TestThePageIsOneSafeFile(t *testing.T) {
	page, err := sample().HTML()
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if strings.Contains(text, "<b>train</b>") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page does not escape what it shows")
	}
	for _, outside := range []string{"<script", "src=", "@import", "url("} {
		if strings.Contains(text, outside) {
			t.Errorf("the page holds %q: it must need nothing else", outside)
		}
	}
	if strings.Count(text, "<svg") != 3 {
		t.Errorf("%d drawings, want timeline, spend and loss", strings.Count(text, "<svg"))
	}
}
