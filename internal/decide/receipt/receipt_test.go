package receipt

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
)

func amount(s string) money.Amount {
	a, err := money.Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

// sample is a job of two attempts, the first one interrupted without notice.
func sample() Receipt {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	budget, firm, saved, share, met := amount("3"), amount("2"), amount("1.4"), 0.7, true
	restored := "000001-000002"
	deadline, finished := at.Add(3*time.Hour), at.Add(time.Hour)
	begun := at.Add(time.Minute)
	return Receipt{
		Job: "<b>train</b>", State: "succeeded", Reason: "completed", Currency: money.USD, Cost: amount("0.6"),
		CostWithoutRules: amount("0.61"),
		OnDemandCost:     &firm, OnDemandOffer: "p/z/m/on-demand", Saved: &saved, SavedShare: &share, Budget: &budget, DeadlineMet: &met,
		DeadlineMarket: &deadline, FinishedMarket: &finished,
		SubmittedMarket: at, Submitted: at, MarketSpeed: 60, Market: "m", Attempts: 2,
		Interrupted: 1, Interruptions: []Interruption{{Instance: "i-1", At: at, MarketAt: at.Add(30 * time.Minute), Restored: &restored}},
		Tries: []Try{
			{Attempt: "<b>train</b>.1", Instance: "i-1", Offer: "p/z/m/spot", From: at, Begun: &begun,
				Until: at.Add(30 * time.Minute), Cost: amount("0.3"), End: "interrupted",
				Rules: []Rule{{"provider", amount("-0.01")}}},
			{Attempt: "<b>train</b>.2", Instance: "i-2", Offer: "p/z/m/spot", From: at.Add(31 * time.Minute),
				Until: finished, Cost: amount("0.3"), End: "completed"},
		},
		Uses:       map[ledger.Use]money.Amount{ledger.Useful: amount("0.5"), ledger.Lost: amount("0.1")},
		Categories: map[ledger.Category]money.Amount{ledger.Compute: amount("0.55"), ledger.Storage: amount("0.05")},
		Loss:       []Sample{{0, at, 4}, {10, finished, 2}}, LossName: "loss",
		Spend:  []Spent{{at, amount("0")}, {finished, amount("0.6")}},
		Ledger: Ledger{Agrees: true, Postings: 9}, Tips: []Tip{{Text: "save more often"}},
		Telemetry: fed(at),
	}
}

// fed is the telemetry of a machine with two GPUs whose data arrived too late for an hour.
func fed(at time.Time) *Telemetry {
	t := &Telemetry{Machines: 2, Seconds: 3600, Cores: 8, GPUs: 2, GPUName: "NVIDIA L4 <b>", GPUMemory: 23034 << 20,
		Hint: "GPU 23 % used: data loading waits (I/O wait 40 %)", Figures: map[string]Figure{
			"gpu_utilization_ratio": {Average: 0.23, Peak: 0.97}, "gpu_memory_used_bytes": {Average: 15 << 30, Peak: 17 << 30},
			"gpu_power_watts": {Average: 41.25, Peak: 71}, "gpu_temperature_celsius": {Average: 48, Peak: 61},
			"cpu_utilization_ratio": {Average: 0.31, Peak: 0.66}, "cpu_iowait_ratio": {Average: 0.4, Peak: 0.8},
			"task_cpu_cores": {Average: 2.3, Peak: 5}, "task_memory_bytes": {Average: 6 << 30, Peak: 7 << 30},
			"page_cache_bytes":                  {Average: 20 << 30, Peak: 24 << 30},
			"disk_read_bytes_per_second":        {Average: 100 << 20, Peak: 400 << 20, Total: new(360000.0 * (1 << 20))},
			"network_received_bytes_per_second": {Average: 1024, Peak: 4096, Total: new(3600.0 * 1024)},
		}}
	for n := range 60 {
		p := UsePoint{At: at.Add(time.Duration(n) * time.Minute), CPU: new(0.31), IOWait: new(0.4)}
		if n < 20 || n > 24 { // unknown at that time
			p.GPU = new(float64(n%10) / 20)
		}
		t.Points = append(t.Points, p)
	}
	return t
}

func TestCheck_DetectsWrongSums(t *testing.T) {
	t.Parallel()
	must.Do(t, sample().Check())
	for name, spoil := range map[string]func(*Receipt){
		"cost":    func(r *Receipt) { r.Cost = amount("0.600000000001") },
		"attempt": func(r *Receipt) { r.Tries[1].Cost = amount("0.29") },
		"bought":  func(r *Receipt) { r.Categories[ledger.Storage] = amount("0.2") },
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

func TestReceipt_JSONHasDecimalsAndNulls(t *testing.T) {
	t.Parallel()
	r := sample()
	r.OnDemandCost, r.Interruptions[0].Restored = nil, nil
	b, err := json.Marshal(r)
	must.Do(t, err)
	for _, want := range []string{`"cost":"0.6"`, `"budget":"3"`, `"on_demand_cost":null`, `"restored":null`,
		`"notice":0`, `"attempts":2`, `"deadline_met":true`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

// large is a job of many attempts with a long name that used up its budget and missed its deadline, without any
// on-demand offer to compare with.
func large() Receipt {
	r := sample()
	missed, deadline := false, r.SubmittedMarket.Add(30*time.Minute)
	r.Job, r.State, r.Reason, r.DeadlineMet, r.DeadlineMarket = "resnet-on-all-of-imagenet-2", "stopped",
		"budget_spent", &missed, &deadline
	r.OnDemandCost, r.OnDemandOffer, r.Saved, r.SavedShare, r.Tips = nil, "", nil, nil, nil
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
		r.Categories = map[ledger.Category]money.Amount{ledger.Compute: r.Cost}
	}
	r.Attempts, r.LostSeconds, r.Checkpoints = 12, 360_000, 1
	return r
}

func TestReceipt_MatchesTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Receipt{"sample": sample(), "large": large()} {
		if err := r.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, width := range []int{0, 80, 120} {
			golden.Check(t, name+"."+strconv.Itoa(width)+".txt", r.Text(width))
		}
		golden.JSON(t, name+".json", r)
		page, err := r.HTML()
		must.Do(t, err)
		golden.Check(t, name+".html", string(page))
	}
}

func TestText_FitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 120, 200} {
		for _, line := range strings.Split(sample().Text(width)+large().Text(width), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

func TestHTML_IsOneSafeFile(t *testing.T) {
	t.Parallel()
	page, err := sample().HTML()
	must.Do(t, err)
	text := string(page)
	if strings.Contains(text, "<b>train</b>") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page does not escape what it shows")
	}
	for _, outside := range []string{"<script", "src=", "@import", "url("} {
		if strings.Contains(text, outside) {
			t.Errorf("the page holds %q: it must need nothing else", outside)
		}
	}
	if strings.Count(text, "<svg") != 4 {
		t.Errorf("%d drawings, want timeline, spend, use and loss", strings.Count(text, "<svg"))
	}
}

// Launches that the provider refused leave no gap in the numbers of the attempts.
func TestText_NumbersAttemptsWithoutGaps(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Tries[0].Attempt, r.Tries[1].Attempt = r.Job+".2", r.Job+".5"
	text := r.Text(100)
	for _, want := range []string{"      1  p/z/m/spot", "      2  p/z/m/spot"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// On a phone each value is next to the name of its column, drawings scroll at a readable size, and a money axis has
// its unit.
func TestHTML_IsReadableOnAPhone(t *testing.T) {
	t.Parallel()
	b, err := sample().HTML()
	must.Do(t, err)
	text := string(b)
	if n := len(regexp.MustCompile(`<td(?: class="n")?>`).FindAllString(text, -1)); n > 0 || !strings.Contains(text, `data-l="cost"`) {
		t.Errorf("%d values have no name of their column", n)
	}
	drawn := strings.Count(text, "<svg")
	if in := strings.Count(text, `<div class="wide"><svg`); drawn == 0 || in != drawn {
		t.Errorf("%d of %d drawings scroll", in, drawn)
	}
	if !regexp.MustCompile(`class="tick end">\$[0-9.]+<`).MatchString(text) {
		t.Error("the axis of money has no unit")
	}
}

// A receipt shows a small sum with the digits that status shows, in the text and on the page, also beside a large cost.
func TestReceipt_ShowsSmallSumsAsStatusDoes(t *testing.T) {
	for text, want := range map[string]string{"0": "$0.0000", "0.6": "$0.6000", "0.01": "$0.0100", "0.00999": "$0.00999",
		"0.0063279": "$0.00633", "-0.0063279": "-$0.00633", "0.0000316": "$0.0000316", "0.000000000001": "$0.000000000001"} {
		r := sample()
		if got := r.money(amount(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if a := amount(text); !a.IsZero() && a.Float() < 0.01 && r.money(a) != money.Short(a, money.USD) {
			t.Errorf("%s: %s in the receipt, %s in status", text, r.money(a), money.Short(a, money.USD))
		}
	}
	r, again := sample(), amount("0.00031641")
	lost := amount("0.0000063279")
	r.Tries[0].End, r.Tries[0].Preemption = "preempted", &Preemption{By: "urgent", At: r.Tries[0].Until, Lost: lost,
		StartUp: &again}
	r.Tries[0].Rules[0].Amount = lost
	if text := r.preemptions(0); !strings.Contains(text, "$0.00000633 of work lost, $0.000316 to start again") {
		t.Error(text)
	}
	page, err := r.HTML()
	if err != nil || !strings.Contains(string(page), "$0.00000633") {
		t.Errorf("the page lacks the small sum: %v", err)
	}
}
